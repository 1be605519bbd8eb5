"""The operator API on model calls and compactions."""

from __future__ import annotations

from typing import Any

from backscroll.agent.agent import Agent
from backscroll.agui.options import AgentRules
from backscroll.compaction.extractive import ExtractiveSummariser
from backscroll.compaction.filter import Compaction
from backscroll.kernel.message import tool_call
from backscroll.kernel.model import ModelProfile
from backscroll.kernel.tool import tool
from backscroll.providers.openai import OpenAIModel
from played_model import Said, StreamingModel
from scripted_provider import Reply, ScriptedProvider
from served import Served, served
from working import agent_of, begun, held, key

THREAD = "/console/api/threads/t"
TURNS = 12


@tool
def add(a: int, b: int) -> int:
    """Add."""
    return a + b


def compacting() -> Agent:
    """Return an agent whose window is soon full."""
    profile = ModelProfile(context_window=2_000)
    replies = [f"answer {n} " + "word " * 60 for n in range(TURNS)]
    compaction = Compaction(summariser=ExtractiveSummariser())
    return Agent(name="a", model=StreamingModel(replies, profile=profile), compaction=compaction)


async def long_talk(server: Served) -> None:
    """Talk until the conversation was compacted."""
    for n in range(TURNS):
        text = {"id": f"q{n}", "role": "user", "content": f"question {n} " + "text " * 120}
        await server.run("t", f"r{n}", text)  # type: ignore[arg-type]


async def test_calls_by_number(valkey_url: str, prefix: str) -> None:
    """Heads, and the seq they were read at; one call with its attempts, the latest one."""
    script = (Said("", [tool_call("c", "add", {"a": 1, "b": 2})]), Said("3"))
    async with served(agent_of(*script, tools=[add]), valkey_url, prefix) as server:
        await server.run("t", "r1", "Add")
        answer = await server.get(f"{THREAD}/calls")
        log = await server.worker.log.head(key())
        first = await server.get(f"{THREAD}/calls/1")
        latest = await server.get(f"{THREAD}/calls/latest")
        none = await server.get("/console/api/threads/nope/calls")

    calls = answer["calls"]
    assert answer["head"] == log.seq > 0
    assert [(c["call"], c["status"], c["run"]) for c in calls] == [(1, "ok", "r1"), (2, "ok", "r1")]
    assert calls[0]["message"].startswith("msg_") and calls[0]["ms"] >= 0
    assert first["call"] == 1 and latest["call"] == 2 and none == {"calls": [], "head": 0}
    (attempt,) = latest["attempts"]
    assert attempt["history"]["messages"] == 3 and attempt["sent"]["messages"] == 3
    assert sum(p["tokens"] for p in attempt["budget"]["parts"]) == attempt["sent"]["tokens"]
    assert {span["fate"] for span in attempt["spans"]} == {"kept"}


async def test_a_call_in_flight_is_running(valkey_url: str, prefix: str) -> None:
    """While its run is active it has no outcome, which is not unknown."""
    async with served(agent_of(held()), valkey_url, prefix) as server:
        await begun(server.worker, "r1")
        (head,) = (await server.get(f"{THREAD}/calls"))["calls"]
        whole = await server.get(f"{THREAD}/calls/1")

    assert head["status"] == whole["status"] == whole["attempts"][0]["status"] == "running"


async def test_what_was_sent(valkey_url: str, prefix: str, provider: ScriptedProvider) -> None:
    """Messages by sent position, and the body with its hash compared."""
    provider.add(Reply(text="hello"))
    model = OpenAIModel("m", base_url=provider.base_url, api_key="k")
    agent = Agent(name="a", model=model, instructions="Be kind.")
    async with served(agent, valkey_url, prefix) as server:
        await server.run("t", "r1", "hi")
        path = f"{THREAD}/calls/latest"
        sent = await server.get(f"{path}/messages")
        one = await server.get(f"{path}/messages?from=2&to=2&attempt=1")
        request = await server.get(f"{path}/request")
        wrong = await server.http.get(f"{path}/messages?attempt=2")
        await agent.aclose()

    assert [m["role"] for m in sent["messages"]] == ["system", "user"] and sent["total"] == 2
    assert [(m["sent"], m["content"]) for m in one["messages"]] == [(2, "hi")]
    assert request["matches"] is True and request["body"] == provider.requests[0].json
    assert wrong.status_code == 404 and "missing" not in sent


async def test_what_is_gone_is_named(valkey_url: str, prefix: str) -> None:
    """REC10: the rest is shown."""
    async with served(agent_of("x", instructions="Be kind."), valkey_url, prefix) as server:
        await server.run("t", "r1", "hi")
        await server.worker.clients.write.delete(server.worker.keys.blobs(key()))
        sent = await server.get(f"{THREAD}/calls/1/messages")

    assert sent["missing"] and sent["messages"][0]["missing"] is True
    assert sent["messages"][1]["content"] == "hi"


async def test_compactions_of_a_thread(valkey_url: str, prefix: str) -> None:
    """Decisions with their numbers, the summary's text, the one before, and the card."""
    rules = AgentRules("a", timeline="full")
    async with served(compacting(), valkey_url, prefix, agent_rules=rules) as server:
        await long_talk(server)
        answer = await server.get(f"{THREAD}/compactions")
        made = [c for c in answer["compactions"] if c.get("summary", {}).get("source") == "fresh"]
        every = [c for c in answer["compactions"] if c.get("summary")]
        one = await server.get(f"{THREAD}/compactions/{every[-1]['compaction']}")
        call = await server.get(f"{THREAD}/calls/{one['call']}")
        entry = await server.worker.compaction.get("t")
        gone = await server.http.get(f"{THREAD}/compactions/99")

    assert [c["compaction"] for c in answer["compactions"]] == list(
        range(1, len(answer["compactions"]) + 1)
    )
    assert made and every[-1]["after"]["tokens"] < every[-1]["before"]["tokens"]
    assert entry.cache is not None and one["text"] == entry.cache.summary
    assert one["previous"] < one["compaction"] and one["prompt"]
    card: Any = answer["card"]
    assert (card["failures"], card["paused"], card["cache"]["matches"]) == (0, False, True)
    assert card["cache"]["made"] == entry.cache.made["at"]
    assert card["bytes"] == len(entry.cache.summary.encode())
    assert call["compaction"] == one["compaction"] and gone.status_code == 404
    assert "summarised" in {span["fate"] for span in call["attempts"][0]["spans"]}


async def test_a_thread_without_compactions(valkey_url: str, prefix: str) -> None:
    """There is a card all the same, whether the agent compacts or not."""
    async with served(agent_of("x"), valkey_url, prefix) as server:
        await server.run("t", "r1", "hi")
        answer = await server.get(f"{THREAD}/compactions")

    assert answer.pop("head") > 0
    assert answer == {"card": {"failures": 0, "paused": False}, "compactions": []}
