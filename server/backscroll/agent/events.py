"""What a turn tells its one sink, in order; events report and influence nothing."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from backscroll.kernel.errors import LeaseLost, ModelError, ToolFailure
from backscroll.kernel.message import Message, Outcome
from backscroll.kernel.model import ChatModel, ModelRequest
from backscroll.kernel.turn import Pause, TurnResult
from backscroll.kernel.usage import FinishReason, Usage

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentEvent:
    """One thing that happened in a turn; time and numbering belong to the log."""

    agent: str
    conversation_id: str
    turn_id: str
    run_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnStarted(AgentEvent):
    """A turn begins with these messages; none when it answers the history as it stands."""

    message_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnResumed(AgentEvent):
    """A paused turn goes on with these answers, by call id."""

    pause_id: str
    answers: Mapping[str, Any]  # Any: the answers of agent/answers, which is above this module


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnPaused(AgentEvent):
    """The turn waits for answers; its end follows."""

    pause: Pause


@dataclass(frozen=True, slots=True, kw_only=True)
class IterationStarted(AgentEvent):
    """One model call and its tool batch begin."""

    index: int
    remaining: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CallStarted(AgentEvent):
    """A request is about to leave; it leaves only after the sink has returned.

    The second time one reply is asked for (a forced compaction) is attempt 2.
    """

    message_id: str
    attempt: int
    request: ModelRequest
    model: ChatModel
    stream: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class CallRetried(AgentEvent):
    """A request failed and will be sent again after a wait."""

    message_id: str
    try_number: int
    delay_s: float
    error: ModelError


@dataclass(frozen=True, slots=True, kw_only=True)
class TextDelta(AgentEvent):
    """A piece of the reply's text, never empty."""

    message_id: str
    delta: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ReasoningDelta(AgentEvent):
    """A piece of the reply's readable reasoning, never empty."""

    message_id: str
    delta: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCallOpened(AgentEvent):
    """The model asks for a tool; its name can no longer change."""

    message_id: str
    call_id: str
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCallArgs(AgentEvent):
    """A piece of a call's argument text, never empty."""

    message_id: str
    call_id: str
    delta: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCallClosed(AgentEvent):
    """A call's arguments are complete."""

    message_id: str
    call_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CallFinished(AgentEvent):
    """A call is over, with an answer or an error; exactly one for each CallStarted."""

    message_id: str
    attempt: int
    duration_s: float
    usage: Usage | None = None
    finish_reason: FinishReason | None = None
    error: ModelError | None = None
    message: Message | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolStarted(AgentEvent):
    """A tool begins to run; calls that are answered without running have no such event."""

    call_id: str
    name: str
    args: Mapping[str, Any]
    attempt: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolFinished(AgentEvent):
    """A call has its result; exactly one for each stored call, also for those that did not run."""

    call_id: str
    message: Message
    outcome: Outcome
    failure: ToolFailure | None = None
    duration_s: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextChanged(AgentEvent):
    """A batch wrote to the context: which keys, and which were written twice without a slot."""

    keys: tuple[str, ...]
    conflicts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Reported(AgentEvent):
    """What a filter or the loop reported: a Note, a ViewPlanned, or a report of its own room."""

    report: Any  # Any: compaction has report types of its own, which this room does not list


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnEnded(AgentEvent):
    """The turn is over; always the last event."""

    result: TurnResult


EventSink = Callable[[AgentEvent], Awaitable[None]]


def tee(sink: EventSink, *observers: EventSink) -> EventSink:
    """Return a sink that also tells observers, whose exceptions are logged and ignored."""

    async def both(event: AgentEvent) -> None:
        await sink(event)
        for observer in observers:
            try:
                await observer(event)
            except LeaseLost:
                raise
            except Exception:
                logger.exception("an observer of agent events failed")

    return both
