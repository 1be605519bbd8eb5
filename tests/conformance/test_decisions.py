"""Each stage of compaction as an operator reads it: before, after, and what it cost."""

from __future__ import annotations

import json
from typing import Any

import pytest
from backscroll.agent.agent import Agent
from backscroll.compaction.filter import Compaction
from backscroll.kernel.model import ModelProfile
from backscroll.kernel.tool import tool
from backscroll.providers.openai import OpenAIModel
from scripted_provider import Call, Recorded, Reply, ScriptedProvider, error
from served import Served, served

NOTES = """## Goal
The user reads one report after another and wants each of them summed up in a sentence.
## Constraints and preferences
Project names that the user listed are never to be mentioned.
## Done
The first reports were fetched and read, and every one of them ended with the status ok.
"""
WORDS = "Nothing of note happened anywhere this week, and nobody said a word about it. "


@tool
def fetch(name: str) -> str:
    """Fetch a report, which is long."""
    return f"report {name}: {WORDS * 24}"


class Session:
    """Answers calls by turns with a tool; refuses one; its summariser dies after one answer."""

    def __init__(self, provider: ScriptedProvider) -> None:
        self.sent: list[Recorded] = []
        self.summaries, self.refuse = 0, False
        provider.script.answer = self.answer

    def answer(self, record: Recorded) -> Reply:
        """Give the next answer."""
        if "Write the new notes now." in json.dumps(record.messages):
            self.summaries += 1
            return Reply(text=NOTES) if self.summaries == 1 else error(500, "down", "server_error")
        self.sent.append(record)
        if self.refuse:
            self.refuse = False
            return error(400, "maximum context length", "context_length_exceeded")
        if record.messages[-1]["role"] == "user":
            return Reply(calls=(Call("fetch", {"name": f"r{len(self.sent)}"}),))
        return Reply(text=f"Fine, {len(self.sent)}.")


def stages(decision: dict[str, Any]) -> set[str]:
    """Return what a decision did."""
    return {stage["stage"] for stage in decision["stages"] if stage["status"] == "done"}


async def told(server: Served, session: Session) -> list[dict[str, Any]]:
    """Talk until each stage was needed and one request was refused; return the decisions."""
    found: list[dict[str, Any]] = []
    for turn in range(1, 60):
        message: Any = {
            "id": f"u{turn}",
            "role": "user",
            "content": f"Turn {turn}: the next. {WORDS * 5}",
        }
        session.refuse = turn == 5
        events = await server.run("t", f"r{turn}", message)
        assert events[-1]["type"] == "RUN_FINISHED", events[-1]
        found = (await server.get("/console/api/threads/t/compactions"))["compactions"]
        if {"micro", "summary", "drop"} <= set().union(*map(stages, found)):
            break
    return found


@pytest.mark.timeout(120)
async def test_every_decision_says_before_and_after(
    valkey_url: str, prefix: str, provider: ScriptedProvider
) -> None:
    """console-05: micro, summary, drop and forced; the numbers are those of the requests."""
    session = Session(provider)
    profile = ModelProfile(7_000, "configured")
    model = OpenAIModel("m", base_url=provider.base_url, api_key="k", profile=profile)
    small = OpenAIModel("small", base_url=provider.base_url, api_key="k", profile=profile)
    agent = Agent(name="a", model=model, tools=[fetch], compaction=Compaction(small))
    async with served(agent, valkey_url, prefix) as server:
        decisions = await told(server, session)
        rows = (await server.get("/console/api/threads/t/entries?kind=compaction"))["entries"]
        attempts = {}
        for decision in decisions:
            call = await server.get(f"/console/api/threads/t/calls/{decision['call']}")
            for attempt in call["attempts"]:
                attempts[decision["call"], attempt["attempt"]] = attempt

    assert provider.problems == [] and [row["seq"] for row in rows] == [d["seq"] for d in decisions]
    assert {"ratio", "overflow"} == {decision["trigger"] for decision in decisions}
    for decision in decisions:
        attempt = attempts[decision["call"], decision["attempt"]]
        assert decision["stages"] and decision["ms"] >= 0
        assert decision["before"]["messages"] == attempt["history"]["messages"]
        assert decision["after"]["messages"] == attempt["sent"]["messages"]
        tokens = sum(part["tokens"] for part in attempt["budget"]["parts"])
        assert decision["after"]["tokens"] == pytest.approx(tokens, rel=0.01)
        assert decision["before"]["tokens"] > decision["after"]["tokens"]
    made = next(d for d in decisions if "summary" in stages(d))
    assert made["covers"][0] == 1 and made["summary"]["model"] == "small"
    assert made["summary"]["usage"]["input_tokens"] > 100 and made["summary"]["ms"] >= 0
    dropped = next(d for d in decisions if "drop" in stages(d) and d["trigger"] == "ratio")
    assert dropped["reason"] == "summariser_failed"
