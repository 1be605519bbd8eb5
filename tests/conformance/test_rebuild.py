"""What was sent can be rebuilt byte for byte, and what was stored was never touched."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import pytest
from backscroll.agent.agent import Agent
from backscroll.compaction.filter import Compaction
from backscroll.kernel.model import ModelProfile
from backscroll.kernel.tool import tool
from backscroll.providers.openai import OpenAIModel
from scripted_provider import Call, Recorded, Reply, ScriptedProvider, error
from served import Served, request, served, sse_events

CALLS = 60
SUMMARISER = "Write the new notes now."
NOTES = """## Goal
The user reads one report after another and wants each of them summed up in a sentence.
## Constraints and preferences
Project names that the user listed are never to be mentioned.
## Done
The first reports were fetched and read, each of them ended with status ok.
"""
DOWN = error(500, "the summariser is down", type="server_error")
LINE = "line {n} of {name}: checksum {n}{n}{n}, status ok, nothing to see here\n"


@tool
def fetch(name: str) -> str:
    """Fetch a report, which is long."""
    return "".join(LINE.format(n=n, name=name) for n in range(60))


class Scenario:
    """A provider that answers 60 calls; its summariser dies after the first notes."""

    def __init__(self, provider: ScriptedProvider) -> None:
        self.provider = provider
        self.calls: list[Recorded] = []
        self.summaries = 0
        provider.script.answer = self.answer

    def answer(self, record: Recorded) -> Reply:
        """Answer a summary request with notes, later with 500; calls by turns with a tool."""
        if SUMMARISER in json.dumps(record.messages):
            self.summaries += 1
            return Reply(text=NOTES) if self.summaries == 1 else DOWN
        self.calls.append(record)
        if record.messages[-1]["role"] == "user":
            name = f"report-{len(self.calls)}"
            return Reply(text="I look.", calls=(Call("fetch", {"name": name}),))
        return Reply(text=f"Read it, answer {len(self.calls)}.")


def agent_for(provider: ScriptedProvider) -> Agent:
    """Return an agent on the OpenAI wire with a small window."""
    profile = ModelProfile(context_window=7_000, window_source="configured")
    model = OpenAIModel("big", base_url=provider.base_url, api_key="k", profile=profile)
    small = OpenAIModel("small", base_url=provider.base_url, api_key="k", profile=profile)
    return Agent(
        name="a",
        model=model,
        instructions="You read reports.",
        tools=[fetch],
        compaction=Compaction(summariser=small),
    )


async def converse(server: Served, scenario: Scenario) -> list[dict[str, Any]]:
    """Talk until the model was called 60 times; returns the messages clients were shown."""
    shown: list[dict[str, Any]] = []
    turn = 0
    while len(scenario.calls) < CALLS:
        turn += 1
        text = f"Turn {turn}: please read the next report, and never mention project-{turn}."
        message = {"id": f"u{turn}", "role": "user", "content": text}
        body = request("t", f"r{turn}", message, forwardedProps={"backscroll.snapshot": "never"})
        answer = await server.http.post("/agui", json=body)
        events = sse_events(answer.text)
        assert events[-1]["type"] == "RUN_FINISHED", events[-1]
        shown.append(message)
        shown += results_of(events)
    return shown


def results_of(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the texts and results of a run as a client has them."""
    found: dict[str, dict[str, Any]] = {}
    for event in events:
        if event["type"] == "TEXT_MESSAGE_CONTENT":
            text = found.setdefault(event["messageId"], {"id": event["messageId"], "content": ""})
            text["content"] += event["delta"]
        if event["type"] == "TOOL_CALL_RESULT":
            found[event["messageId"]] = {"id": event["messageId"], "content": event["content"]}
    return list(found.values())


@pytest.mark.timeout(120)
async def test_every_call_of_a_long_conversation_is_rebuilt(
    valkey_url: str, prefix: str, provider: ScriptedProvider
) -> None:
    """REC1, E32: micro, summary and drop: each body equals the bytes the provider received."""
    scenario = Scenario(provider)
    async with served(agent_for(provider), valkey_url, prefix) as server:
        shown = await converse(server, scenario)
        calls = (await server.get("/console/api/threads/t/calls"))["calls"]
        decisions = (await server.get("/console/api/threads/t/compactions"))["compactions"]
        for head, record in zip(calls, scenario.calls, strict=True):
            path = f"/console/api/threads/t/calls/{head['call']}"
            rebuilt = await server.get(f"{path}/request")
            assert rebuilt["body"]["messages"] == record.messages, head
            assert rebuilt["sha256"] == hashlib.sha256(record.body).hexdigest(), head
            assert rebuilt["matches"] and rebuilt["sent_matches"], head
        total = CALLS // 2 * 4
        stored = await server.get(f"/console/api/threads/t/messages?fields=full&to={total}")

    stages = {
        stage["stage"] for d in decisions for stage in d["stages"] if stage["status"] == "done"
    }
    assert {"micro", "summary", "drop"} <= stages
    assert provider.problems == []
    # The history is complete and as it was said: every text and every result, whole.
    kept = {m["id"]: m["message"].get("content") for m in stored["messages"]}
    assert stored["total"] == len(kept) == total
    assert {m["id"]: m["content"] for m in shown}.items() <= kept.items()
    assert sum(len(text or "") > 4000 for text in kept.values()) == CALLS // 2


async def test_a_call_is_the_same_seen_from_another_worker(
    valkey_url: str, prefix: str, provider: ScriptedProvider
) -> None:
    """REC1: another process that never saw the conversation rebuilds the same bytes."""
    scenario = Scenario(provider)
    async with served(agent_for(provider), valkey_url, prefix) as server:
        await server.run("t", "r1", "read one")
    async with served(agent_for(provider), valkey_url, prefix) as other:
        rebuilt = [await other.get(f"/console/api/threads/t/calls/{n}/request") for n in (1, 2)]

    sent = [hashlib.sha256(record.body).hexdigest() for record in scenario.calls]
    assert [found["sha256"] for found in rebuilt] == sent
    assert all(found["matches"] for found in rebuilt)
