"""The reporter sends a turn's events whole and in order."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from agent.agents import Events
from backscroll.agent.events import CallFinished, CallRetried, CallStarted, Reported, TurnEnded
from backscroll.agent.reporter import Reporter, Scope
from backscroll.kernel.errors import LeaseLost, ModelError, SinkError
from backscroll.kernel.message import assistant
from backscroll.kernel.model import (
    CallArgs,
    CallClosed,
    CallOpened,
    Finished,
    ModelRequest,
    ModelResponse,
    Reasoning,
    Text,
)
from backscroll.kernel.request import CallEnd, CallRetry, CallStart, Note
from backscroll.kernel.turn import TurnResult
from backscroll.kernel.usage import CallUsage, Usage
from played_model import PlayedModel

SCOPE: Scope = {"agent": "a", "conversation_id": "t", "turn_id": "turn", "run_id": None}
MODEL = PlayedModel([])
START = CallStart("m1", MODEL, ModelRequest(()), True)


async def test_attempts_and_usage() -> None:
    """The second start for one reply is attempt 2; each call has its usage, in order."""
    events = Events()
    reporter = Reporter(events, SCOPE)

    await reporter.started(START)
    await reporter.finished(CallEnd("m1", 1.0, error=ModelError("context_overflow", "long")))
    await reporter.started(START)
    await reporter.finished(CallEnd("m1", 1.0, usage=Usage(1, 2)))

    assert [e.attempt for e in events.of(CallStarted)] == [1, 2]
    assert [e.attempt for e in events.of(CallFinished)] == [1, 2]
    name = ("played", "played-1")
    assert reporter.usage == (CallUsage(*name, None), CallUsage(*name, Usage(1, 2)))


async def test_a_call_that_was_not_finished_is_finished_once() -> None:
    """A model that raises what it must not still gets the end of its call, but no second one."""
    events = Events()
    reporter = Reporter(events, SCOPE)
    await reporter.started(START)

    await reporter.broke_off("m1", ValueError("x"))
    await reporter.broke_off("m1", ValueError("x"))

    (finished,) = events.of(CallFinished)
    assert str(finished.error) == "the model raised ValueError"


async def test_reports_and_retries() -> None:
    """What filters report and what is tried again becomes an event of the turn."""
    events = Events()
    reporter = Reporter(events, SCOPE)

    await reporter.report(Note("k", "text"))
    await reporter.retried(CallRetry("m1", 1, 0.5, ModelError("network", "down")))

    assert events.of(Reported)[0].report == Note("k", "text")
    assert events.of(CallRetried)[0].delay_s == 0.5


async def test_the_end_of_a_stream_is_no_event() -> None:
    """Deltas become events of their message; what only ends the stream does not."""
    events = Events()
    deliver = Reporter(events, SCOPE).deltas("m1")

    await deliver(Text("x"))
    await deliver(Finished(ModelResponse(assistant("x"))))

    assert [(e.message_id, e.delta) for e in events.all] == [("m1", "x")]  # type: ignore[attr-defined]


async def test_deltas_become_events() -> None:
    """Each kind of delta has its event; without a sink nothing happens."""
    events = Events()
    deltas = [
        Reasoning("r"),
        CallOpened("c1", "look"),
        CallArgs("c1", "{}"),
        CallClosed("c1"),
    ]

    for delta in deltas:
        await Reporter(events, SCOPE).deltas("m1")(delta)
        await Reporter(None, SCOPE).deltas("m1")(delta)

    kinds = ["ReasoningDelta", "ToolCallOpened", "ToolCallArgs", "ToolCallClosed"]
    assert events.kinds() == kinds


async def test_a_lost_lease_comes_out_as_it_is() -> None:
    """What the sink says of the lease is no failure of the sink."""

    async def sink(event: Any) -> None:
        raise LeaseLost("t", 1, 2)

    with pytest.raises(LeaseLost):
        await Reporter(sink, SCOPE).report("x")


async def test_events_are_sent_one_at_a_time() -> None:
    """Two senders at once: the second waits until the sink has taken the first."""
    trace: list[str] = []

    async def sink(event: Any) -> None:
        trace.append(f"{event.report}-start")
        await asyncio.sleep(0)
        trace.append(f"{event.report}-end")

    reporter = Reporter(sink, SCOPE)
    await asyncio.gather(*(reporter.report(n) for n in range(3)))

    assert trace == [f"{n}-{step}" for n in range(3) for step in ("start", "end")]


async def test_a_cancelled_sender_sends_whole() -> None:
    """A sender that is cancelled meanwhile learns of it when the event was taken."""
    entered, leave, taken = asyncio.Event(), asyncio.Event(), []

    async def sink(event: Any) -> None:
        entered.set()
        await leave.wait()
        taken.append(event.report)

    sender = asyncio.ensure_future(Reporter(sink, SCOPE).report("x"))
    await entered.wait()
    sender.cancel()
    await asyncio.sleep(0)
    sender.cancel()
    await asyncio.sleep(0)
    assert not sender.done()
    leave.set()

    with pytest.raises(asyncio.CancelledError):
        await sender
    assert taken == ["x"]


async def test_a_broken_sink_stays_broken() -> None:
    """After a failure nothing more is sent but the end, whose failure is only logged."""
    seen: list[Any] = []

    async def sink(event: Any) -> None:
        seen.append(type(event).__name__)
        raise OSError

    reporter = Reporter(sink, SCOPE)
    for _ in range(2):
        with pytest.raises(SinkError, match="the event sink failed: OSError"):
            await reporter.report("x")
    await reporter.end(TurnEnded(**SCOPE, result=TurnResult("error")))

    assert seen == ["Reported", "TurnEnded"]
