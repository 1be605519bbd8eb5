"""What chat and tool filters see: requests, responses, the stream, and what may be reported."""

from __future__ import annotations

import dataclasses
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from backscroll.kernel.content import text_of
from backscroll.kernel.errors import ModelError, ToolFailure
from backscroll.kernel.message import Message, Outcome, ToolCall
from backscroll.kernel.model import (
    ChatModel,
    Delta,
    ModelOptions,
    ModelProfile,
    ModelRequest,
    ToolChoice,
)
from backscroll.kernel.ports import CancelToken
from backscroll.kernel.texts import Texts
from backscroll.kernel.tool import ToolInfo, ToolSpec
from backscroll.kernel.usage import FinishReason, Usage

Fate = Literal["kept", "truncated", "placeholder", "summarised", "dropped", "rewritten", "injected"]


@dataclass(frozen=True, slots=True)
class Note:
    """Something operators should know; a note of one key is kept once per thread."""

    kind: str
    text: str
    key: str | None = None
    data: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Claim:
    """What a layer says became of one message, and why; the call record checks it.

    `index` is the position, from 0, in the history that the layer received; None for what has no
    original. `digest` is the sha256 of the canonical sent form of the body it put there, `of` are
    the ids of messages that an injected one quotes.
    """

    fate: Fate
    why: str
    by: str
    index: int | None = None
    message_id: str | None = None
    what: str | None = None
    digest: str | None = None
    tokens: tuple[int, int] | None = None
    of: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ViewPlanned:
    """How a view came about: claims per message, and the numbers it was planned with."""

    claims: tuple[Claim, ...]
    facts: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CallStart:
    """A request is about to leave; it leaves only after every observer has returned."""

    message_id: str
    model: ChatModel
    request: ModelRequest
    stream: bool


@dataclass(frozen=True, slots=True)
class CallRetry:
    """A request failed and will be sent again after a wait."""

    message_id: str
    try_number: int
    delay_s: float
    error: ModelError


@dataclass(frozen=True, slots=True)
class CallEnd:
    """A call is over, with an answer or an error; one for each CallStart."""

    message_id: str
    duration_s: float
    message: Message | None = None
    usage: Usage | None = None
    finish_reason: FinishReason | None = None
    error: ModelError | None = None


class Observer(Protocol):
    """Who is told about model calls and about what filters report; its errors end the turn."""

    async def started(self, start: CallStart) -> None:
        """A request is about to leave."""
        ...

    async def retried(self, retry: CallRetry) -> None:
        """A request will be sent again."""
        ...

    async def finished(self, end: CallEnd) -> None:
        """A call is over."""
        ...

    async def report(self, report: Any) -> None:
        """A filter has something to tell: a Note, a ViewPlanned, or a report of its own room."""
        ...


class Stream:
    """Where the deltas of one reply go; `started` once one was delivered."""

    def __init__(self, sink: Callable[[Delta], Awaitable[None]]) -> None:
        self._sink = sink
        self.started = False

    async def send(self, delta: Delta) -> None:
        """Deliver one delta."""
        self.started = True
        await self._sink(delta)


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """One model call as chat filters see it; what they rewrite is what is sent."""

    messages: tuple[Message, ...]
    system: tuple[str, ...] = ()
    tools: tuple[ToolSpec, ...] = ()
    tool_choice: ToolChoice = "auto"
    options: ModelOptions = field(default_factory=ModelOptions)
    notes: tuple[str, ...] = ()
    context: Mapping[str, Any] = field(default_factory=dict)
    model: ChatModel | None = None
    profile: ModelProfile = field(default_factory=ModelProfile)
    texts: Texts = field(default_factory=Texts)
    stream: Stream | None = None
    observer: Observer | None = None
    cancel: CancelToken = field(default_factory=CancelToken)
    reply_id: str | None = None
    taken_call_ids: frozenset[str] = frozenset()

    @property
    def conversation_id(self) -> str | None:
        """The conversation this call belongs to, if it has one."""
        found: str | None = self.context.get("conversation_id")
        return found

    def replace(self, **changes: Any) -> ChatRequest:
        """Return a copy with some fields changed.

        Places of cache marks are forgotten when other messages come before them.
        """
        for name in ("system", "notes"):
            if isinstance(changes.get(name), str):
                raise TypeError(f"{name}: expected a tuple of texts, got {changes[name]!r}")
        changed, cache = dataclasses.replace(self, **changes), self.options.cache
        if "messages" not in changes or "options" in changes or cache is None or not cache.at:
            return changed
        end = max(cache.at) + 1
        if changed.messages[:end] == self.messages[:end]:
            return changed
        unmarked = changed.options.replace(cache=dataclasses.replace(cache, at=()))
        return dataclasses.replace(changed, options=unmarked)

    async def report(self, report: Any) -> None:
        """Tell operators something; without an observer nothing happens."""
        if self.observer is not None:
            await self.observer.report(report)


@dataclass(frozen=True, slots=True)
class ChatResponse:
    """A reply as chat filters see it.

    `delivered` is set when token filters delivered another text than the model's own, together
    with `rewritten_by`, their names.
    """

    message: Message
    usage: Usage | None = None
    finish_reason: FinishReason | None = None
    response_id: str | None = None
    model: str | None = None
    provider: str | None = None
    raw: Any = None
    delivered: str | None = None
    rewritten_by: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """The model's own text, empty if there is none."""
        return text_of(self.message.for_model())

    @property
    def reasoning(self) -> str | None:
        """The readable reasoning."""
        return self.message.reasoning

    @property
    def tool_calls(self) -> tuple[ToolCall, ...]:
        """The calls, in order."""
        return self.message.tool_calls

    def replace(self, **changes: Any) -> ChatResponse:
        """Return a copy with some fields changed."""
        return dataclasses.replace(self, **changes)


@dataclass(frozen=True, slots=True)
class ToolRequest:
    """One tool execution as tool filters see it."""

    tool: ToolInfo
    args: Mapping[str, Any]
    call_id: str
    context: Mapping[str, Any]
    message_id: str = ""
    cancel: CancelToken = field(default_factory=CancelToken)
    texts: Texts = field(default_factory=Texts)
    observer: Observer | None = None

    def replace(self, **changes: Any) -> ToolRequest:
        """Return a copy with some fields changed."""
        return dataclasses.replace(self, **changes)

    async def report(self, report: Any) -> None:
        """Tell operators something; without an observer nothing happens."""
        if self.observer is not None:
            await self.observer.report(report)


@dataclass(frozen=True, slots=True)
class ToolResponse:
    """What came of a tool execution; a failure carries the text the model is told as content."""

    content: Any  # Any: text, or a tuple of parts
    writes: Mapping[str, Any] | None = None
    error: ToolFailure | None = None
    outcome: Outcome = "ok"

    def replace(self, **changes: Any) -> ToolResponse:
        """Return a copy with some fields changed."""
        return dataclasses.replace(self, **changes)
