"""What turn and iteration filters see: a turn, its iterations, and how it ended."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from backscroll.kernel.errors import BackscrollError, ToolFailure
from backscroll.kernel.message import Message, Outcome, ToolCall
from backscroll.kernel.request import Observer, ToolResponse
from backscroll.kernel.texts import Texts
from backscroll.kernel.tool import ToolSpec
from backscroll.kernel.usage import CallUsage, FinishReason

Status = Literal["completed", "paused", "cancelled", "error"]


@dataclass(frozen=True, slots=True)
class ToolRecord:
    """One call of a batch: what was asked, what came of it; also for calls that did not run.

    `args` are the model's; `edited_args` those that somebody who approved the call put in place.
    """

    call_id: str
    name: str
    args: Mapping[str, Any] | None
    content: Any  # Any: text, or a tuple of parts
    outcome: Outcome
    failure: ToolFailure | None = None
    attempts: int = 0
    duration_s: float = 0.0
    edited_args: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class PauseItem:
    """One thing a paused turn waits for; its id is the call's."""

    id: str
    kind: Literal["approval", "client", "environment"]
    tool: str
    args: Mapping[str, Any]
    reason: str
    answers: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Pause:
    """A turn that waits for answers, with what a resume needs.

    `calls` are those of the whole batch, asked for by the message `message_id`. What ran is in
    `records`; `decided` are results that need no answer, by call id; `held` are failures that an
    answer may replace. `tools` are those offered for this turn only. No handlers, no history.
    """

    id: str
    conversation_id: str
    items: tuple[PauseItem, ...]
    created_at: float
    expires_at: float | None = None
    calls: tuple[ToolCall, ...] = ()
    message_id: str = ""
    remaining: int = 0
    records: tuple[ToolRecord, ...] = ()
    usage: tuple[CallUsage, ...] = ()
    decided: Mapping[str, ToolResponse] = field(default_factory=dict)
    held: tuple[ToolRecord, ...] = ()
    context: Mapping[str, Any] = field(default_factory=dict)
    tools: tuple[ToolSpec, ...] = ()
    is_ephemeral: bool = False

    @property
    def reason(self) -> str:
        """Why the turn waits, in the words of its first item."""
        return self.items[0].reason if self.items else ""

    def replace(self, **changes: Any) -> Pause:
        """Return a copy with some fields changed."""
        return dataclasses.replace(self, **changes)


@dataclass(frozen=True, slots=True)
class TurnResult:
    """How a turn ended; `raise_for_status` raises the error of an `error` result."""

    status: Status
    conversation_id: str | None = None
    text: str = ""
    message: Message | None = None
    finish_reason: FinishReason | None = None
    records: tuple[ToolRecord, ...] = ()
    usage: tuple[CallUsage, ...] = ()
    context: Mapping[str, Any] = field(default_factory=dict)
    iterations: int = 0
    pause: Pause | None = None
    error: BackscrollError | None = None
    return_direct: bool = False
    blocked_by: str | None = None
    store: bool = False
    output: Any = None
    new_messages: tuple[Message, ...] = ()

    def replace(self, **changes: Any) -> TurnResult:
        """Return a copy with some fields changed."""
        return dataclasses.replace(self, **changes)

    def raise_for_status(self) -> TurnResult:
        """Return the result, or raise its error."""
        if self.error is not None:
            raise self.error
        return self


@dataclass(frozen=True, slots=True)
class TurnRequest:
    """One turn as turn filters see it; `messages` is None on a resume."""

    messages: tuple[Message, ...] | None
    context: Mapping[str, Any] = field(default_factory=dict)
    is_resume: bool = False
    conversation_id: str | None = None
    observer: Observer | None = None
    texts: Texts = field(default_factory=Texts)

    def replace(self, **changes: Any) -> TurnRequest:
        """Return a copy with some fields changed."""
        return dataclasses.replace(self, **changes)

    def answer(self, text: str, blocked_by: str | None = None, store: bool = False) -> TurnResult:
        """Make the result of a turn that a filter answers itself."""
        return _answer(self.context, text, blocked_by, store)

    async def report(self, report: Any) -> None:
        """Tell operators something; without an observer nothing happens."""
        if self.observer is not None:
            await self.observer.report(report)


@dataclass(frozen=True, slots=True)
class IterationRequest:
    """One iteration as iteration filters see it; `messages` is the delta since the last call."""

    messages: tuple[Message, ...]
    context: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    index: int = 0
    remaining: int = 0
    observer: Observer | None = None
    texts: Texts = field(default_factory=Texts)

    @property
    def conversation_id(self) -> str | None:
        """The conversation of this turn."""
        found: str | None = self.context.get("conversation_id")
        return found

    def replace(self, **changes: Any) -> IterationRequest:
        """Return a copy with some fields changed."""
        return dataclasses.replace(self, **changes)

    def answer(self, text: str, blocked_by: str | None = None, store: bool = False) -> TurnResult:
        """Make the result of a turn that a filter answers itself."""
        return _answer(self.context, text, blocked_by, store)

    async def report(self, report: Any) -> None:
        """Tell operators something; without an observer nothing happens."""
        if self.observer is not None:
            await self.observer.report(report)


@dataclass(frozen=True, slots=True)
class Continue:
    """The turn goes on: the next delta, the folded context, and the batch just executed."""

    messages: tuple[Message, ...]
    context: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    records: tuple[ToolRecord, ...] = ()

    def replace(self, **changes: Any) -> Continue:
        """Return a copy with some fields changed."""
        return dataclasses.replace(self, **changes)


def _answer(
    context: Mapping[str, Any], text: str, blocked_by: str | None, store: bool
) -> TurnResult:
    return TurnResult(
        "completed",
        text=text,
        context=context,
        finish_reason=FinishReason.STOP,
        blocked_by=blocked_by,
        store=store,
    )
