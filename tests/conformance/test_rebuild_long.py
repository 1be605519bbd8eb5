"""A session of 200 turns with everything in it: each request is rebuilt byte for byte."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections import Counter
from typing import Any

import pytest
from backscroll.agent.agent import Agent
from backscroll.compaction.filter import Compaction
from backscroll.filters.retrieval import Document, Retrieval
from backscroll.kernel.filter import Filter
from backscroll.kernel.model import ChatModel, ModelOptions, ModelProfile
from backscroll.kernel.tool import tool
from backscroll.providers.anthropic import AnthropicModel
from backscroll.providers.openai import OpenAIModel
from backscroll.runs.verify import verify_thread
from backscroll.runs.worker import Worker
from backscroll.store.keys import LOCAL_OWNER
from deadlines import scaled
from provider_script_anthropic import anthropic_error
from scripted_provider import Call, Recorded, Reply, ScriptedProvider, error
from working import TERMINAL, asked, bodies, key, working

TURNS, SWITCHES = 200, (70, 140)
OVERFLOWS = (41, 111)
AGAIN = 60
SUMMARISER = "Write the new notes now."
NOTES = """## Goal
The user reads one report after another and wants each of them summed up in a sentence.
## Constraints and preferences
Project names that the user listed are never to be mentioned.
## Done
The first reports were fetched and read, each of them ended with status ok.
"""
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNk"


@tool
def fetch(name: str) -> str:
    """Fetch a report, which is long."""
    return "".join(f"line {n} of {name}: checksum {n * 7}, status ok 你好\n" for n in range(30))


class Shelf:
    """A retriever that finds a passage for every third question."""

    async def retrieve(self, query: str, k: int) -> list[Document]:
        """Return it."""
        return [Document(f"a passage about {query}")] if "3" in query else []


class Minding(Filter):
    """Puts a note on every fourth request of a turn's beginning."""

    name = "minding"

    async def iteration(self, request: Any, chain: Any) -> Any:
        """Add the note."""
        asked = request.messages[-1].text if request.messages else ""
        if "4" in asked:
            request = request.replace(notes=(*request.notes, "Mind the date."))
        return await chain(request)


class Session:
    """Answers every call; keeps what was received, summaries apart."""

    def __init__(self, provider: ScriptedProvider) -> None:
        self.sent: list[Recorded] = []
        self.turn, self.refused = 0, set[int]()
        provider.script.answer = self.answer

    def answer(self, record: Recorded) -> Reply:
        """Reason, call tools in every second turn, refuse two requests for their size."""
        whole = json.dumps(record.json, ensure_ascii=False)
        if SUMMARISER in whole:
            return Reply(text=NOTES)
        self.sent.append(record)
        if self.turn in OVERFLOWS and self.turn not in self.refused:
            self.refused.add(self.turn)
            if record.is_anthropic:
                return anthropic_error(400, "prompt is too long: 900000 tokens > 200000 maximum")
            return error(400, "maximum context length", "context_length_exceeded")
        last = json.dumps(record.messages[-1])
        answered = '"tool"' in last or "tool_result" in last or "Mind the date" in last
        if self.turn % 2 or answered:
            return Reply(text=f"Read it, {self.turn}.", reasoning=f"I think of {self.turn}.")
        names = (Call("fetch", {"name": f"r{self.turn}-{n}"}) for n in range(1 + self.turn % 3))
        return Reply(text="I look.", reasoning="I need it.", calls=tuple(names))


def agent_on(model: ChatModel) -> Agent:
    """Return the agent on one of the wires."""
    return Agent(
        name="a",
        model=model,
        instructions="You read reports.",
        tools=[fetch],
        filters=[Retrieval(Shelf()), Minding()],
        compaction=Compaction(),
    )


def openai(provider: ScriptedProvider) -> ChatModel:
    """Return the model on the OpenAI wire; it is sent its reasoning again."""
    profile = ModelProfile(
        9_000, "configured", replay_reasoning="always", parts={"user": ("image/*",)}
    )
    return OpenAIModel("one", base_url=provider.base_url, api_key="k", profile=profile)


def anthropic(provider: ScriptedProvider) -> ChatModel:
    """Return the model on the Anthropic wire, with signed thinking."""
    thinking = {"type": "enabled", "budget_tokens": 1_024}
    return AnthropicModel(
        "two",
        base_url=provider.base_url,
        api_key="k",
        profile=ModelProfile(9_000, "configured", parts={"user": ("image/*",)}),
        options=ModelOptions(max_output_tokens=2_000, thinking=thinking),
    )


def said(turn: int) -> dict[str, Any]:
    """Return the message of a turn; every seventh shows an image."""
    text = f"Turn {turn}: please read the next report, and never mention project-{turn}."
    content: Any = text
    if turn % 7 == 0:
        source = {"type": "data", "value": PIXEL, "mimeType": "image/png"}
        content = [{"type": "text", "text": text}, {"type": "image", "source": source}]
    return {"id": f"u{turn}", "role": "user", "content": content}


async def hold(worker: Worker, session: Session, turns: range) -> None:
    """Hold these turns; one of them is answered again."""
    for turn in turns:
        session.turn = turn
        for name in (f"r{turn}", "again")[: 1 + (turn == AGAIN)]:
            accepted = await worker.registry.submit(LOCAL_OWNER, asked("t", name, said(turn)))
            assert await end_of(worker, accepted.after) == "RUN_FINISHED", name


async def end_of(worker: Worker, cursor: int) -> str:
    """Return the terminal event of the run whose entries begin there; nothing older is read."""
    async with asyncio.timeout(scaled(20)), worker.hub.watch(key()) as feed:
        while True:
            for item in await feed.after(cursor):
                cursor = item.seq
                if item.entry.type in TERMINAL:
                    return item.entry.type


@pytest.fixture
def anyio_backend() -> str:
    """Run without asyncio's debug mode, which would double the time."""
    return "asyncio"


@pytest.mark.timeout(300)
async def test_every_request_of_a_session_of_200_turns(
    valkey_url: str, prefix: str, provider: ScriptedProvider
) -> None:
    """REC1: tools, reasoning, images, retrieval, notes, two switches of model, two overflows."""
    session = Session(provider)
    first, second = SWITCHES
    async with working(agent_on(openai(provider)), valkey_url, prefix) as worker:
        await hold(worker, session, range(1, first + 1))
    async with working(agent_on(anthropic(provider)), valkey_url, prefix) as worker:
        await hold(worker, session, range(first + 1, second + 1))
    async with working(agent_on(openai(provider)), valkey_url, prefix) as worker:
        await hold(worker, session, range(second + 1, TURNS + 1))
        found = [one async for one in verify_thread(worker.log, key())]
        records = [body for body in await bodies(worker, "call") if "view" in body]
        decisions = await bodies(worker, "compaction")

    assert provider.problems == []
    assert Counter(one.verdict for one in found) == {"same": len(session.sent)}
    for record, received in zip(records, session.sent, strict=True):
        assert record["wire_sha256"] == hashlib.sha256(received.body).hexdigest(), record["call"]
    assert_everything_took_place(session, records, decisions)


def assert_everything_took_place(
    session: Session, records: list[Any], decisions: list[Any]
) -> None:
    """Fail unless what the session is about really was in it."""
    bodies = [json.dumps(received.json, ensure_ascii=False) for received in session.sent]
    for words in ("reasoning_content", "signature", "image_url", '"image"', "a passage about"):
        assert any(words in body for body in bodies), words
    assert [r["attempt"] for r in records].count(2) == len(OVERFLOWS) == len(session.refused)
    assert {r["model"]["wire"].split("/")[0] for r in records} == {
        *("openai-chat", "anthropic-messages")
    }
    # Each from its recipe: no list had to be stored whole because the recipe did not give it.
    assert not any("whole" in record for record in records)
    spans = [span for record in records for span in (*record["view"], *record["left_out"])]
    assert {"kept", "placeholder", "rewritten", "summarised"} <= {span["fate"] for span in spans}
    assert {"system", "summary", "note"} <= {span.get("what") for span in spans}
    stages = {stage["stage"] for decision in decisions for stage in decision["stages"]}
    assert {"micro", "summary"} <= stages and len(session.sent) > 250
