"""Settling makes the history complete, whatever ended the turn."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from agent.agents import Events
from backscroll.agent.batch import Tooling
from backscroll.agent.events import Reported, ToolFinished
from backscroll.agent.executors import SequentialExecutor
from backscroll.agent.plan import TurnPlan, TurnState
from backscroll.agent.reporter import Reporter
from backscroll.agent.settle import settle
from backscroll.conversation.memory import InMemoryChatMemory
from backscroll.kernel.client import ChatClient
from backscroll.kernel.errors import (
    BackscrollError,
    LeaseLost,
    MaxIterationsExceeded,
    StoreError,
)
from backscroll.kernel.message import assistant, tool_result
from backscroll.kernel.tool import ToolSet
from backscroll.kernel.turn import TurnResult
from played_model import PlayedModel, call

ASKED = assistant(None, [call("look", id="c1"), call("look", id="c2")], "a1")


class Ending:
    """A turn that is about to end."""

    def __init__(self, memory: Any = None, sink: Any = None) -> None:
        self.events, self.memory = Events(), memory or InMemoryChatMemory()
        scope: Any = {"agent": "a", "conversation_id": "t", "turn_id": "x", "run_id": None}
        reporter = Reporter(sink or self.events, scope)
        client = ChatClient(PlayedModel([]))
        tooling = Tooling(client, ToolSet(), SequentialExecutor(), reporter=reporter)
        self.plan = TurnPlan("t", self.memory, PlayedModel([]), tooling, reporter)
        self.state = TurnState("t", reporter, {})

    async def settle(self, status: Any, **fields: Any) -> TurnResult:
        """End it."""
        return await settle(self.plan, self.state, TurnResult(status, **fields))


@pytest.mark.parametrize(
    ("status", "error", "text", "outcome"),
    [
        ("cancelled", None, "Not executed: the run was stopped first.", "cancelled"),
        (
            "error",
            MaxIterationsExceeded(3, "over"),
            "Not executed: the limit of 3 tool rounds was reached.",
            "skipped",
        ),
        (
            "error",
            BackscrollError("x"),
            "Not executed: the turn ended with an error first.",
            "skipped",
        ),
        (
            "completed",
            None,
            "Not executed: tool use is not available right now.",
            "skipped",
        ),
    ],
)
async def test_open_calls(status: Any, error: Any, text: str, outcome: str) -> None:
    """Each open call gets a result that says why it did not run, and one event."""
    ending = Ending()
    ending.state.take_reply(ASKED)

    await ending.settle(status, error=error)

    stored = await ending.memory.get("t")
    assert [(m.tool_call_id, m.text, m.outcome) for m in stored] == [
        ("c1", text, outcome),
        ("c2", text, outcome),
    ]
    assert [event.message for event in ending.events.of(ToolFinished)] == stored
    assert list(ending.state.new.values())[1:] == stored


async def test_waiting_results_are_stored_first() -> None:
    """Results that no model call stored are stored, without a second event; twice is harmless."""
    ending = Ending()
    ending.state.take_reply(ASKED)
    ending.state.take_results([tool_result("c1", "look", "saw", id="m1")], [])

    for _ in range(2):
        await ending.settle("cancelled")
        ending.state.open.clear()

    stored = await ending.memory.get("t")
    assert [message.text for message in stored][0] == "saw"
    assert len(stored) == 2
    assert [event.call_id for event in ending.events.of(ToolFinished)] == ["c2"]


async def test_a_filters_answer_is_stored_when_it_says_so() -> None:
    """An answer with `store=True` becomes a message of the filter, others leave nothing."""
    ending = Ending()

    await ending.settle("completed", text="no", blocked_by="guard")
    stored = await ending.settle("completed", text="no", blocked_by="guard", store=True)
    again = await ending.settle("completed", text="well", store=True)

    assert stored.message is not None and again.message is not None
    assert await ending.memory.get("t") == [stored.message, again.message]
    assert (stored.message.origin, again.message.origin) == ("filter:guard", "filter")


async def test_a_paused_turn_is_left_alone() -> None:
    """Calls of a paused turn stay open."""
    ending = Ending()
    ending.state.take_reply(ASKED)

    await ending.settle("paused")

    assert await ending.memory.get("t") == []


class Failing(InMemoryChatMemory):
    """A memory that takes nothing."""

    def __init__(self, error: Exception) -> None:
        super().__init__()
        self.error = error

    async def add(self, conversation_id: str, messages: Any) -> Any:
        """Fail."""
        raise self.error


async def test_a_store_that_fails(caplog: Any) -> None:
    """The outcome stands, and a note says that the history could not be completed."""
    ending = Ending(Failing(StoreError("full")))
    ending.state.take_reply(ASKED)

    with caplog.at_level(logging.CRITICAL):
        result = await ending.settle("cancelled")

    assert result.status == "cancelled"
    (note,) = [event.report for event in ending.events.of(Reported)]
    assert (note.kind, note.text) == ("not_settled", "the history could not be completed: full")


async def test_a_lost_lease_comes_out() -> None:
    """Nothing contains a lost lease."""
    ending = Ending(Failing(LeaseLost("t", 1, 2)))
    ending.state.take_reply(ASKED)

    with pytest.raises(LeaseLost):
        await ending.settle("cancelled")


async def test_a_sink_that_fails(caplog: Any) -> None:
    """The history is completed although nobody can be told."""

    async def sink(event: Any) -> None:
        raise OSError("log is gone")

    ending = Ending(sink=sink)
    ending.state.take_reply(ASKED)
    await ending.settle("error", error=BackscrollError("x"))
    failing = Ending(Failing(StoreError("full")), sink)
    failing.state.take_reply(ASKED)
    with caplog.at_level(logging.CRITICAL):
        await failing.settle("error", error=BackscrollError("x"))

    assert len(await ending.memory.get("t")) == 2
