"""Looking up what is summarised, through both wires and a strict provider."""

from __future__ import annotations

import json
from typing import Any

import pytest
from backscroll.agent.agent import Agent
from backscroll.compaction.filter import Compaction
from backscroll.kernel.model import ChatModel, ModelProfile
from backscroll.kernel.tool import tool
from backscroll.providers.anthropic import AnthropicModel
from backscroll.providers.openai import OpenAIModel
from backscroll.runs.verify import verify_thread
from backscroll.runs.worker import Worker
from scripted_provider import Call, Recorded, Reply, ScriptedProvider
from working import bodies, key, run, working

SECRET = "The torque of bolt 17 is 42.5 Nm."
NOTES = """## Goal
The user reads one report after another and wants each of them summed up in a sentence.
## Done
The first reports were fetched and read, and every one of them ended with the status ok.
"""
TURNS = 12


@tool
def fetch(name: str) -> str:
    """Fetch a report, which is long."""
    middle = f"\n{SECRET}\n" if name == "r1" else "\n"
    return f"{'Nothing of note here. ' * 40}{middle}{'Nothing of note there. ' * 40}"


class Session:
    """Reads reports, and in the end looks up the first one again."""

    def __init__(self, provider: ScriptedProvider) -> None:
        self.sent: list[Recorded] = []
        self.turn = 0
        provider.script.answer = self.answer

    def answer(self, record: Recorded) -> Reply:
        """Answer a call by what the turn is about."""
        if "Write the new notes now." in json.dumps(record.json):
            return Reply(text=NOTES)
        self.sent.append(record)
        said = json.dumps(record.messages[-1])
        if "tool_result" in said or '"tool"' in said or "<recalled>" in said:
            return Reply(text="It is fine.")
        if self.turn == TURNS:
            return Reply(calls=(Call("recall", {"ref": "#3"}, "look_up"),))
        return Reply(calls=(Call("fetch", {"name": f"r{self.turn}"}, f"c{self.turn}"),))


async def told(worker: Worker, session: Session) -> None:
    """Hold the turns."""
    for turn in range(1, TURNS + 1):
        session.turn = turn
        texts = [f"Report {n}, please." for n in range(1, turn + 1)]
        events = await run(worker, "t", f"r{turn}", *texts)
        assert events[-1]["type"] == "RUN_FINISHED", events[-1]


def model_on(wire: str, provider: ScriptedProvider) -> ChatModel:
    """Return a model with a small window."""
    made: Any = OpenAIModel if wire == "openai" else AnthropicModel
    profile = ModelProfile(5_000, "configured")
    model: ChatModel = made("m", base_url=provider.base_url, api_key="k", profile=profile)
    return model


@pytest.mark.parametrize("wire", ["openai", "anthropic"])
async def test_a_look_up_is_sent_after_complete_pairs(
    valkey_url: str, prefix: str, provider: ScriptedProvider, wire: str
) -> None:
    """RCL1, RCL3: the text is in the request, one line is stored, and the record is byte-exact."""
    session = Session(provider)
    compaction = Compaction(recall=True, exclude_tools=["fetch"])
    agent = Agent(name="a", model=model_on(wire, provider), tools=[fetch], compaction=compaction)
    async with working(agent, valkey_url, prefix) as worker:
        await told(worker, session)
        found = [one async for one in verify_thread(worker.log, key())]
        records = [body for body in await bodies(worker, "call") if "view" in body]
        live = [stored.message for stored in (await worker.history.read(key())).live]

    before, after = (json.dumps(record.json) for record in session.sent[-2:])
    assert provider.problems == [] and {one.verdict for one in found} == {"same"}
    assert SECRET not in before and SECRET in after
    assert after.index("look_up") < after.index("<recalled>") < after.index(SECRET)
    spans = [span for span in records[-1]["view"] if span.get("what") == "recall"]
    assert [(span["fate"], span["of"]) for span in spans] == [("injected", [3])]
    line = next(message for message in live if message.tool_call_id == "look_up")
    assert SECRET not in line.text and line.text.startswith("[recalled ")
