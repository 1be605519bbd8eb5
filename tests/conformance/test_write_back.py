"""Histories that write-back shortens in Redis: nothing that came meanwhile is lost, nothing sent
before is forgotten."""

from __future__ import annotations

import asyncio
import hashlib
import json

import pytest
from backscroll.agent.agent import Agent
from backscroll.compaction.filter import Compaction
from backscroll.compaction.write_back import write_back_to
from backscroll.kernel.message import user
from backscroll.kernel.model import ModelProfile
from backscroll.kernel.tool import tool
from backscroll.providers.openai import OpenAIModel
from backscroll.runs.verify import verify_thread
from backscroll.store.chat_memory import RedisChatMemory
from deadlines import scaled
from scripted_provider import Call, Recorded, Reply, ScriptedProvider
from served import Served, served, until
from working import key, working

NOTES = """## Goal
The user reads one report after another and wants each of them summed up in a sentence.
## Constraints and preferences
Project names are never to be mentioned in any of them.
## Done
The first reports were fetched and read, each of them ended with status ok.
"""
LINE = "line {n} of {name}: checksum {n}{n}{n}, status ok, nothing to see here\n"
SUMMARISER = "Write the new notes now."


@tool
def fetch(name: str) -> str:
    """Fetch a report, which is long."""
    return "".join(LINE.format(n=n, name=name) for n in range(60))


class Scenario:
    """A provider whose summariser waits while it `holds`."""

    def __init__(self, provider: ScriptedProvider) -> None:
        self.calls: list[Recorded] = []
        self.holds, self.summaries = False, 0
        provider.script.answer = self.answer

    def answer(self, record: Recorded) -> Reply:
        """Answer a summary request with notes; calls by turns with a tool."""
        if SUMMARISER in json.dumps(record.messages):
            self.summaries += 1
            return Reply(text=NOTES, hold_after=0 if self.holds else None)
        self.calls.append(record)
        if record.messages[-1]["role"] == "user":
            name = f"report-{len(self.calls)}"
            return Reply(text="I look.", calls=(Call("fetch", {"name": name}),))
        return Reply(text=f"Read it, answer {len(self.calls)}.")


def agent_for(provider: ScriptedProvider, archive: bool = True) -> Agent:
    """Return an agent that stores its summaries in place of what they stand for."""
    profile = ModelProfile(context_window=7_000, window_source="configured")
    model = OpenAIModel("big", base_url=provider.base_url, api_key="k", profile=profile)
    back = write_back_to(archive=archive)
    compaction = Compaction(write_back=back, exclude_tools=["fetch"])
    return Agent(name="a", model=model, tools=[fetch], compaction=compaction)


async def talk(server: Served, scenario: Scenario, turns: int, summaries: int = 99) -> None:
    """Hold so many turns, or until so many summaries were made; the newest message tells each."""
    for turn in range(1, turns + 1):
        if scenario.summaries == summaries:
            break
        message = {"id": f"u{turn}", "role": "user", "content": f"Turn {turn}: the next report."}
        events = await server.run("t", f"r{turn}", message)  # type: ignore[arg-type]
        assert events[-1]["type"] == "RUN_FINISHED", events[-1]


@pytest.mark.timeout(120)
async def test_calls_before_a_write_back_are_rebuilt(
    valkey_url: str, prefix: str, provider: ScriptedProvider
) -> None:
    """WBK5: over several write-backs each body equals the bytes that the provider received."""
    scenario = Scenario(provider)
    async with served(agent_for(provider), valkey_url, prefix) as server:
        await talk(server, scenario, 20)
        decisions = (await server.get("/console/api/threads/t/compactions"))["compactions"]
        written = [d for d in decisions if d.get("write_back", {}).get("stored")]
        for number, record in enumerate(scenario.calls, start=1):
            path = f"/console/api/threads/t/calls/{number}"
            rebuilt = await server.get(f"{path}/request")
            assert rebuilt["sha256"] == hashlib.sha256(record.body).hexdigest(), number
            assert rebuilt["matches"] and rebuilt["sent_matches"], number
        first = (await server.get("/console/api/threads/t/calls/1"))["attempts"][0]
        last = (await server.get("/console/api/threads/t/calls/latest"))["attempts"][0]
        stored = (await server.get("/console/api/threads/t/messages"))["messages"]

    assert len(written) >= 3 and len(scenario.calls) == 40 and provider.problems == []
    assert first["rewritten"] == {"compaction": written[0]["compaction"], "seq": written[0]["seq"]}
    assert "rewritten" not in last
    # WBK4: no user message that nobody sent, and the summary stands where it ends.
    live = [m for m in stored if "archived" not in m.get("marks", ())]
    assert [m["position"] for m in stored] == list(range(1, len(stored) + 1))
    assert len(live) < len(stored) and live[0]["role"] == "assistant"
    assert {m["id"] for m in stored if m["role"] == "user"} == {f"u{n}" for n in range(1, 21)}


async def test_without_an_archive_the_bodies_are_gone(
    valkey_url: str, prefix: str, provider: ScriptedProvider
) -> None:
    """REC10: the records of earlier calls say so, and those since the write-back are exact."""
    scenario = Scenario(provider)
    async with served(agent_for(provider, archive=False), valkey_url, prefix) as server:
        await talk(server, scenario, 8)
        found = [one async for one in verify_thread(server.worker.log, key())]

    assert found[0].verdict == "missing" and "message at position 1" in found[0].why
    assert found[-1].verdict == "same"


@pytest.mark.timeout(120)
async def test_what_is_appended_during_the_summary_survives(
    valkey_url: str, prefix: str, provider: ScriptedProvider
) -> None:
    """concurrency-06, WBK3: five messages of another worker while the summariser works."""
    scenario = Scenario(provider)
    async with (
        served(agent_for(provider), valkey_url, prefix) as server,
        working(agent_for(provider), valkey_url, prefix) as other,
    ):
        memory = RedisChatMemory(other.log)
        late = [user(f"more {n}", f"x{n}") for n in range(5)]
        scenario.holds = True
        talking = asyncio.create_task(talk(server, scenario, 9, summaries=1))
        await provider.await_held(within_s=scaled(20))
        before = await memory.get("t")
        await memory.add("t", late)
        scenario.holds = False
        provider.release("hold")
        await talking
        after = await memory.get("t")
        decisions = (await server.get("/console/api/threads/t/compactions"))["compactions"]
        events = await server.run("t", "once-more", "and on")

    (written, *_) = [d for d in decisions if d.get("write_back")]
    assert events[-1]["type"] == "RUN_FINISHED"
    assert written["write_back"] == {"result": "done", "stored": True}
    at = after.index(late[0])
    assert after[at : at + 5] == late and after[0].origin == "filter:compaction"
    kept = after[1:at]
    assert kept and kept == before[-len(kept) :] and len(kept) + 1 < len(before)
    assert provider.problems == []


async def test_an_operator_compacts_and_the_history_is_shorter(
    valkey_url: str, prefix: str, provider: ScriptedProvider
) -> None:
    """WBK4: by hand, outside of any run; the next call is sent the stored summary."""
    scenario = Scenario(provider)
    async with served(agent_for(provider), valkey_url, prefix) as server:
        await talk(server, scenario, 3)
        before = (await server.worker.history.read(key())).live
        await server.http.post("/console/api/threads/t/compact", json={})
        await until(lambda: not server.worker.operator._compacting, "the summary is made")
        decisions = (await server.get("/console/api/threads/t/compactions"))["compactions"]
        done = decisions[-1]
        after = (await server.worker.history.read(key())).live
        events = await server.run("t", "next", "and on")
        found = [one async for one in verify_thread(server.worker.log, key())]

    assert done["action"] == "compact" and done["write_back"]["stored"] is True
    assert len(after) < len(before) and after[0].message.origin == "filter:compaction"
    assert events[-1]["type"] == "RUN_FINISHED" and {one.verdict for one in found} == {"same"}
    assert scenario.calls[-1].messages[0]["content"].startswith("<earlier-conversation>")
