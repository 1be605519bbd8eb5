"""Every way a turn can go, played with the demo model alone (DEMO2)."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from backscroll import Agent
from backscroll.agent.answers import Approve
from backscroll.agent.events import TextDelta
from backscroll.kernel.errors import ModelError
from backscroll.kernel.message import ToolCall, assistant, tool_call, user
from backscroll.kernel.ports import CancelToken
from backscroll.kernel.tool import tool
from backscroll.kernel.turn import TurnResult
from backscroll.kernel.usage import Usage
from backscroll.providers.demo import DemoModel, DemoReply


@tool
async def look(at: str = "it") -> str:
    """Look at something."""
    return f"saw {at}"


@tool
async def wait() -> str:
    """Wait for ever."""
    await asyncio.Event().wait()
    return "never"


@tool(return_direct=True)
async def ticket() -> str:
    """Make a ticket."""
    return "4711"


@tool(sensitive=True)
async def pay() -> str:
    """Pay."""
    return "paid"


TOOLS = [look, wait, ticket, pay]


def looks(*ids: str) -> DemoReply:
    """Return a reply that looks once per id."""
    return DemoReply(calls=tuple(tool_call(i, "look", {"at": i}) for i in ids))


def agent_of(*script: Any, **settings: Any) -> Agent:
    """Return an agent whose model plays a script, fast."""
    return Agent(name="a", model=DemoModel(script, delay_s=0), tools=TOOLS, **settings)


async def story(agent: Agent) -> list[str]:
    """Return the stored history of thread t, one word a message."""
    found = await agent.memory.get("t")
    return [f"{m.role}{'*' if m.incomplete else ''} {m.text or len(m.tool_calls)}" for m in found]


async def ignore(event: Any) -> None:
    """Take an event, so that the model streams."""


async def turn(agent: Agent, text: str = "hi", **options: Any) -> TurnResult:
    """Take a turn of thread t."""
    return await agent.invoke(text, conversation_id="t", **options)


async def test_answers_and_rounds() -> None:
    """DEMO2: an answer; rounds of tools, one with two calls at once (LOOP1, LOOP2)."""
    agent = agent_of("hello", looks("c1"), looks("c2", "c3"), looks("c4"), "done")

    plain, rounds = await turn(agent), await turn(agent)

    assert (plain.text, rounds.text) == ("hello", "done")
    assert [record.content for record in rounds.records] == [f"saw c{n}" for n in range(1, 5)]


@pytest.mark.parametrize("limit", [0, 2])
async def test_the_limit(limit: int) -> None:
    """DEMO2: the limit ends a turn, nothing dangles, the next turn works (LOOP3, LOOP4)."""
    agent = agent_of(*(looks(f"c{n}") for n in range(limit + 1)), "ok", max_iterations=limit)

    first, second = await turn(agent), await turn(agent)

    assert first.error is not None and first.error.code == "max_iterations_exceeded"
    assert (len(first.records), second.text) == (limit, "ok")


async def test_calls_that_cannot_run() -> None:
    """DEMO2: broken arguments and an unknown tool are answered, and the turn goes on."""
    broken = ToolCall("c1", "look", None, '{"at":')
    agent = agent_of(DemoReply(calls=(broken, tool_call("c2", "fly"))), "sorry")

    result = await turn(agent)

    assert result.text == "sorry"
    tools = [m for m in await agent.memory.get("t") if m.role == "tool"]
    assert [m.outcome for m in tools] == ["error", "error"]


async def test_a_failure_in_the_second_round() -> None:
    """DEMO2: an error result with one record and the usage of the first call (LOOP12)."""
    error = ModelError("auth", "no more")
    first = DemoReply(calls=(tool_call("c1", "look"),), usage=Usage(10, 5))
    agent = agent_of(first, DemoReply(error=error))

    result = await turn(agent)

    assert result.error is not None and (result.status, str(result.error)) == ("error", "no more")
    assert len(result.records) == 1 and result.usage[0].usage == Usage(10, 5)
    assert await story(agent) == ["user hi", "assistant 1", "tool saw it"]


async def test_a_failure_that_passes() -> None:
    """DEMO2: an error before the first word is tried again; the turn completes."""
    agent = agent_of(DemoReply(error=ModelError("provider", "busy", retry_after_s=0)), "hello")

    assert (await turn(agent)).text == "hello"


async def test_a_stream_that_breaks() -> None:
    """DEMO2: what had come is stored as incomplete, and the thread goes on."""
    agent = agent_of(DemoReply("one two three", break_after=2), "ok")

    first, second = await turn(agent, on_event=ignore), await turn(agent)

    assert first.error is not None and first.error.code == "incomplete_stream"
    assert (await story(agent))[1] == "assistant* one two" and second.text == "ok"


async def test_cancel_in_a_stream_and_in_a_batch() -> None:
    """DEMO2: both end cancelled, with what was there, and the thread goes on (LOOP8, LOOP9)."""
    slow = DemoReply("one two", delay_s=0.01)
    waits = DemoReply(calls=(tool_call("c1", "look"), tool_call("c2", "wait")))
    agent = agent_of(slow, waits, "ok")
    for moment in ("TextDelta", "ToolFinished"):
        token = CancelToken()

        async def stop(event: Any, moment: str = moment, token: CancelToken = token) -> None:
            if type(event).__name__ == moment:
                token.cancel("stop")

        result = await asyncio.wait_for(turn(agent, on_event=stop, cancel=token), 10)
        assert result.status == "cancelled"

    assert (await turn(agent)).text == "ok"
    outcomes = {m.tool_call_id: m.outcome for m in await agent.memory.get("t") if m.role == "tool"}
    assert outcomes == {"c1": "ok", "c2": "cancelled"}


async def test_a_conversation_without_a_name_leaves_nothing() -> None:
    """DEMO2: without an id the store is empty afterwards (LOOP5)."""
    agent = agent_of(looks("c1"), "done")

    result = await agent.invoke("hi")

    assert result.text == "done" and await agent.memory.get(result.conversation_id or "") == []


async def test_a_pause_without_a_name_and_its_answer() -> None:
    """DEMO2: an ephemeral conversation is there until the resumed turn ends (LOOP5)."""
    agent = agent_of(DemoReply(calls=(tool_call("c1", "pay"),)), "thanks")

    paused = await agent.invoke("hi")
    name = str(paused.conversation_id)
    held = await agent.memory.get(name)
    answers = {item.id: Approve() for item in paused.pause.items} if paused.pause else {}
    result = await agent.resume(answers, conversation_id=name, pause=paused.pause)

    assert (paused.status, len(held)) == ("paused", 2)
    assert (result.text, await agent.memory.get(name)) == ("thanks", [])


async def test_a_tool_that_ends_the_turn() -> None:
    """DEMO2: its result is the answer, and no other call is made."""
    agent = agent_of(DemoReply(calls=(tool_call("c1", "ticket"),)))

    result = await turn(agent)

    assert (result.status, result.text, len(await story(agent))) == ("completed", "4711", 3)


async def test_healing_and_turns_in_a_row() -> None:
    """DEMO2: a dangling call is answered first; two turns at once do not mix (LOOP6, LOOP11)."""
    agent = agent_of("one", "two")
    await agent.memory.add("t", [user("before"), assistant(None, [tool_call("c", "look", {})])])

    await asyncio.gather(*(turn(agent, text) for text in "ab"))

    found = [line.split(" ")[0] for line in await story(agent)]
    assert found == ["user", "assistant", "tool", *["user", "assistant"] * 2]


async def test_reasoning_pauses_and_an_overflow() -> None:
    """DEMO2: reasoning is kept beside the text; a prompt above the window is `context_overflow`."""
    agent = agent_of(DemoReply("yes", "because", pause_s=0.01), "never")
    seen: list[str] = []

    async def see(event: Any) -> None:
        seen.extend([event.delta] if isinstance(event, TextDelta) else ())

    await turn(agent, on_event=see)
    big = await turn(agent, "word " * 8_000)

    (_, spoken, *_) = await agent.memory.get("t")
    assert ("".join(seen), spoken.reasoning) == ("yes", "because")
    assert big.error is not None and big.error.code == "context_overflow"
