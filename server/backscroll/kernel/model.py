"""What a model is asked, what it answers, and what is known about it."""

from __future__ import annotations

import dataclasses
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Literal, Protocol, runtime_checkable

from backscroll.kernel.errors import AssemblyError
from backscroll.kernel.message import Message, ToolCall
from backscroll.kernel.texts import Texts
from backscroll.kernel.tool import ToolSpec
from backscroll.kernel.usage import FinishReason, Usage


@dataclass(frozen=True, slots=True)
class Named:
    """The choice of one tool by name."""

    name: str


ToolChoice = Literal["auto", "none", "required"] | Named


@dataclass(frozen=True, slots=True)
class Retry:
    """How often a failed request is sent again, and after how long."""

    max_retries: int = 2
    base_s: float = 1.0
    factor: float = 2.0
    cap_s: float = 30.0


@dataclass(frozen=True, slots=True)
class Cache:
    """Where a provider's prompt cache is to be marked."""

    strategy: str = "none"
    ttl: str | None = None
    at: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class ModelOptions:
    """Settings of one request; None means "not given" and never overrides."""

    model: str | None = None
    max_output_tokens: int | None = None
    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    stop: tuple[str, ...] | None = None
    seed: int | None = None
    reasoning_effort: str | None = None
    thinking: Mapping[str, Any] | None = None
    parallel_tool_calls: bool | None = None
    response_format: Mapping[str, Any] | None = None
    service_tier: str | None = None
    user: str | None = None
    cache: Cache | None = None
    retry: Retry | bool | None = None
    extra_body: Mapping[str, Any] | None = None
    extra_headers: Mapping[str, str] | None = None

    def over(self, lower: ModelOptions | None) -> ModelOptions:
        """Return these options with what they leave open taken from `lower`."""
        if lower is None:
            return self
        given = {f.name: getattr(self, f.name) for f in fields(self)}
        return dataclasses.replace(lower, **{k: v for k, v in given.items() if v is not None})

    def replace(self, **changes: Any) -> ModelOptions:
        """Return a copy with some options changed."""
        return dataclasses.replace(self, **changes)


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """What a model gets: nothing of context, observers or sinks can reach it."""

    messages: tuple[Message, ...]
    system: tuple[str, ...] = ()
    tools: tuple[ToolSpec, ...] = ()
    tool_choice: ToolChoice = "auto"
    options: ModelOptions = field(default_factory=ModelOptions)
    texts: Texts = field(default_factory=Texts)
    taken_call_ids: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class ModelResponse:
    """A complete reply, as the provider gave it."""

    message: Message
    usage: Usage | None = None
    finish_reason: FinishReason | None = None
    response_id: str | None = None
    model: str | None = None
    provider: str | None = None
    raw: Any = None  # Any: the provider's own body, for whoever wants to look

    @property
    def text(self) -> str:
        """The text of the reply, empty if there is none."""
        return self.message.text

    @property
    def tool_calls(self) -> tuple[ToolCall, ...]:
        """The calls of the reply, in order."""
        return self.message.tool_calls

    @property
    def reasoning(self) -> str | None:
        """The readable reasoning of the reply."""
        return self.message.reasoning


@dataclass(frozen=True, slots=True)
class Partial:
    """What had arrived when a reply broke off; `calls` are raw texts, for people only.

    `usage` is what had been reported by then; it does not make one partial differ from another.
    """

    text: str = ""
    reasoning: str = ""
    calls: tuple[str, ...] = ()
    usage: Usage | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Text:
    """A piece of the reply's text."""

    delta: str


@dataclass(frozen=True, slots=True)
class Reasoning:
    """A piece of the reply's readable reasoning."""

    delta: str


@dataclass(frozen=True, slots=True)
class CallOpened:
    """A tool call has begun and its name can no longer change."""

    call_id: str
    name: str


@dataclass(frozen=True, slots=True)
class CallArgs:
    """A piece of a call's argument text."""

    call_id: str
    delta: str


@dataclass(frozen=True, slots=True)
class CallClosed:
    """A call's arguments are complete."""

    call_id: str


@dataclass(frozen=True, slots=True)
class Finished:
    """The end of a stream; the response is complete."""

    response: ModelResponse


Delta = Text | Reasoning | CallOpened | CallArgs | CallClosed | Finished


@dataclass(frozen=True, slots=True)
class ModelProfile:
    """What is known about a model and the server it runs on; data, never guessed from answers.

    `reasoning_field` names what replayed reasoning is sent as. `json_object` says whether that
    format is taken where `json_schema` is. `tool_choice` lists the forms taken: a named tool too,
    the words only, or none. `reply_after_tools` puts a reply between results and a user message.
    `option_names` renames keys of the body, or leaves them out (None).
    """

    context_window: int | None = None
    window_source: str = "unknown"
    max_input_tokens: int | None = None
    max_output_tokens: int | None = None
    parts: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    max_tokens_field: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    system_role: Literal["system", "developer", "user"] = "system"
    single_system: bool = True
    alternate_roles: bool = False
    null_content: bool = True
    tool_name_field: bool = False
    call_id_style: Literal["any", "alnum9", "short"] = "any"
    stream_usage: bool = True
    replay_reasoning: Literal["never", "tool_calls", "always"] = "never"
    reasoning_field: Literal["reasoning_content", "reasoning"] = "reasoning_content"
    response_format: Literal["none", "json_object", "json_schema"] = "none"
    json_object: bool = True
    tool_choice: Literal["all", "words", "none"] = "all"
    reply_after_tools: bool = False
    option_names: Mapping[str, str | None] = field(default_factory=dict)
    strict_tools: bool = False
    tools_with_history: bool = False
    vocabulary: str | None = None

    def accepts(self, media_type: str, role: str) -> str | None:
        """Return why a file of this type cannot be sent in this role, or None if it can."""
        taken = self.parts.get(role, ())
        major = media_type.split("/", 1)[0]
        if media_type in taken or f"{major}/*" in taken:
            return None
        return f"{media_type} is not taken in {role} messages by this model"


@runtime_checkable
class ChatModel(Protocol):
    """One model of one provider.

    Optional members, detected: `stream(request) -> AsyncIterator[Delta]`, which yields deltas and
    then exactly one `Finished`; `encode(request, stream) -> bytes`, the function its own sending
    path uses; `options`, its default ModelOptions; `count_tokens(request) -> int`, which asks the
    provider how large the prompt of a request is.
    """

    name: str
    provider: str
    profile: ModelProfile

    async def generate(self, request: ModelRequest) -> ModelResponse:
        """Return the complete reply; raises nothing but ModelError."""
        ...

    async def aclose(self) -> None:
        """Let go of connections."""
        ...


class StreamingModel(ChatModel, Protocol):
    """A model that can stream its reply."""

    def stream(self, request: ModelRequest) -> AsyncIterator[Delta]:
        """Yield deltas, then one `Finished`; raises nothing but ModelError."""
        ...


class EncodingModel(ChatModel, Protocol):
    """A model that tells the exact bytes it would send."""

    def encode(self, request: ModelRequest, stream: bool) -> bytes:
        """Return the request body, byte for byte as the sending path writes it."""
        ...


def retry_policy(*given: Retry | bool | None) -> Retry | None:
    """Return the first policy given, outermost first; None when it is switched off."""
    for item in given:
        if item is None:
            continue
        if isinstance(item, Retry):
            return item
        if item is True:
            return Retry()
        if item is False:
            return None
        raise AssemblyError("invalid_retry", f"retry: expected a Retry or a bool, got {item!r}")
    return Retry()
