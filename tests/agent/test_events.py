"""Events go to one sink; observers beside it change nothing."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest
from agent.agents import Events, agent_of
from backscroll.agent.events import (
    AgentEvent,
    CallFinished,
    CallStarted,
    ContextChanged,
    ReasoningDelta,
    TextDelta,
    ToolCallArgs,
    ToolCallClosed,
    ToolCallOpened,
    ToolFinished,
    tee,
)
from backscroll.kernel.errors import LeaseLost, ModelError
from backscroll.kernel.model import Finished, Text
from backscroll.kernel.ports import CancelToken
from backscroll.kernel.tool import ToolResult, tool
from played_model import Said, Streamed, call, calls, sent


@tool
async def look(at: str = "it") -> str:
    """Look at something."""
    return f"saw {at}"


async def test_deltas_add_up_to_what_is_stored() -> None:
    """EV1: text deltas are the content, argument deltas the argument text; blanks have none."""
    raw = call("look", '{ "at": "x" }', "c1")
    agent = agent_of(Said("let me see", [raw, call("look", id="c2")], "hm hm"), "ok", tools=[look])
    events = Events()

    await agent.invoke("hi", conversation_id="t", on_event=events)

    reply = (await agent.memory.get("t"))[1]
    first = [e for e in events.of(TextDelta) if e.message_id == reply.id]
    assert "".join(e.delta for e in first) == reply.content == "let me see"
    assert [(e.call_id, e.delta) for e in events.of(ToolCallArgs)] == [("c1", '{ "at": "x" }')]
    assert [e.name for e in events.of(ToolCallOpened)] == ["look", "look"]
    assert len(events.of(ToolCallClosed)) == 2
    assert [e.delta for e in events.of(ReasoningDelta)] == ["hm", "hm"]


async def test_empty_deltas_are_not_sent() -> None:
    """EV2: of the chunks `""`, "Hi", `""` one is sent."""
    reply = Said("Hi").response()
    agent = agent_of(Streamed([Text(""), Text("Hi"), Text(""), Finished(reply)]))
    events = Events()

    await agent.invoke("hi", on_event=events)

    assert [e.delta for e in events.of(TextDelta)] == ["Hi"]


async def test_the_order_of_a_turn() -> None:
    """EV3, EV4: each start has its end, a call is closed before its tool, the end is last."""
    agent = agent_of(calls(call("look"), text="hm"), "ok", tools=[look])
    events = Events()

    await agent.invoke("hi", conversation_id="t", run_id="r", on_event=events)

    assert events.kinds() == [
        "TurnStarted",
        "IterationStarted",
        "CallStarted",
        "TextDelta",
        "ToolCallOpened",
        "ToolCallClosed",
        "CallFinished",
        "ToolStarted",
        "ToolFinished",
        "IterationStarted",
        "CallStarted",
        "TextDelta",
        "CallFinished",
        "TurnEnded",
    ]
    scopes = {(e.agent, e.conversation_id, e.run_id, e.turn_id) for e in events.all}
    assert len(scopes) == 1
    assert next(iter(scopes))[:3] == ("agent", "t", "r")


async def test_a_call_carries_its_request() -> None:
    """A started call carries the request as the model gets it, its outcome the reply."""
    agent = agent_of("ok")
    events = Events()

    await agent.invoke("hi", conversation_id="t", on_event=events)

    (started,), (finished,) = events.of(CallStarted), events.of(CallFinished)
    assert started.request is agent.model.requests[0]
    assert (started.model, started.attempt, started.stream) == (agent.model, 1, True)
    assert finished.message == (await agent.memory.get("t"))[1]
    assert finished.attempt == 1


async def test_a_model_that_does_not_stream() -> None:
    """REQ4: text comes in one delta, calls as opened, arguments, closed."""
    agent = agent_of(
        calls(call("look", {"at": "x"}), text="a b"), "ok", streaming=False, tools=[look]
    )
    events = Events()

    await agent.invoke("hi", on_event=events)

    assert events.of(TextDelta)[0].delta == "a b"
    assert [e.delta for e in events.of(ToolCallArgs)] == ['{"at":"x"}']
    assert events.of(CallStarted)[0].stream is False


async def test_writes_are_told() -> None:
    """A batch with writes says which names changed, and which were written twice."""

    @tool
    async def write(x: int) -> ToolResult:
        """Write."""
        return ToolResult("ok", writes={"x": x})

    both = calls(call("write", {"x": 1}, "1"), call("write", {"x": 2}, "2"))
    agent = agent_of(both, "ok", tools=[write])
    events = Events()

    result = await agent.invoke("hi", on_event=events)

    (changed,) = events.of(ContextChanged)
    assert (changed.keys, changed.conflicts) == (("x",), ("x",))
    assert result.context["x"] == 2


@pytest.mark.parametrize("at", ["TurnStarted", "TextDelta", "ToolStarted", "CallFinished"])
async def test_a_sink_that_raises(at: str) -> None:
    """EV5: the turn ends with `sink_failed`, the stream is closed, nothing dangles."""
    agent = agent_of(calls(call("look"), text="hm"), "ok", tools=[look])
    last: list[str] = []

    async def sink(event: AgentEvent) -> None:
        last.append(type(event).__name__)
        if last[-1] == at:
            raise OSError("log is gone")

    result = await agent.invoke("hi", conversation_id="t", on_event=sink)

    assert result.error is not None and result.error.code == "sink_failed"
    assert str(result.error) == "the event sink failed: log is gone"
    assert agent.model.closed == len(agent.model.requests)
    assert last[-2:] == [at, "TurnEnded"]


async def test_a_lost_lease_passes_the_sink() -> None:
    """Only a lost lease comes out as it is, and no further event is sent."""
    seen: list[str] = []

    async def sink(event: AgentEvent) -> None:
        seen.append(type(event).__name__)
        if isinstance(event, ToolFinished):
            raise LeaseLost("t", 1, 2)

    agent = agent_of(calls(call("look")), "ok", tools=[look])

    with pytest.raises(LeaseLost):
        await agent.invoke("hi", conversation_id="t", on_event=sink)
    assert seen[-1] == "ToolFinished"


async def test_an_observer_that_raises(caplog: Any) -> None:
    """EV5: an observer's exception is logged and changes nothing."""
    events, seen = Events(), Events()

    async def observer(event: AgentEvent) -> None:
        raise ValueError("mine")

    agent = agent_of("ok")
    with caplog.at_level(logging.CRITICAL):
        result = await agent.invoke("hi", on_event=tee(events, observer, seen))

    assert result.status == "completed"
    assert events.all == seen.all


async def test_an_observer_may_not_hide_a_lost_lease() -> None:
    """A lost lease passes through a tee as well."""

    async def observer(event: AgentEvent) -> None:
        raise LeaseLost("t", 1, 2)

    with pytest.raises(LeaseLost):
        await agent_of("ok").invoke("hi", on_event=tee(Events(), observer))


async def test_without_a_sink() -> None:
    """EV6: everything works the same: requests, history, records, usage and text."""

    async def told(**options: Any) -> tuple[Any, ...]:
        agent = agent_of(calls(call("look"), text="hm"), "ok", tools=[look])
        result = await agent.invoke("hi", conversation_id="t", **options)
        stored = [(m.role, m.content, len(m.tool_calls)) for m in await agent.memory.get("t")]
        records = [(r.name, r.content, r.outcome, r.attempts) for r in result.records]
        requests = [sent(request) for request in agent.model.requests]
        return result.status, result.text, len(result.usage), stored, records, requests

    assert await told() == await told(on_event=Events())


@pytest.mark.parametrize("end", ["completed", "paused", "cancelled", "error"])
async def test_every_start_has_its_end(end: str) -> None:
    """EV3: the end of the turn is last; each model call and each tool call has ended once.

    Only calls that a pause waits for have no end yet.
    """
    token, events = CancelToken(), Events()

    @tool(sensitive=end == "paused")
    async def act() -> str:
        """Act."""
        if end == "cancelled":
            token.cancel("stop")
            await asyncio.Event().wait()
        return "done"

    last = ModelError("provider", "down") if end == "error" else "ok"
    agent = agent_of(calls(call("look", id="c1"), call("act", id="c2")), last, tools=[look, act])

    result = await agent.invoke("hi", conversation_id="t", on_event=events, cancel=token)

    assert (result.status, events.kinds()[-1]) == (end, "TurnEnded")
    started = [event.message_id for event in events.of(CallStarted)]
    assert [event.message_id for event in events.of(CallFinished)] == started != []
    ended = sorted(event.call_id for event in events.of(ToolFinished))
    assert ended == ([] if end == "paused" else ["c1", "c2"])
