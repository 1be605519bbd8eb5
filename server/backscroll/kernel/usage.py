"""How many tokens a call used, and why it ended."""

from __future__ import annotations

from dataclasses import dataclass, fields
from enum import StrEnum


class FinishReason(StrEnum):
    """Why a reply ended, in the kernel's words."""

    STOP = "stop"
    TOOL_CALLS = "tool_calls"
    MAX_TOKENS = "max_tokens"
    CONTENT_FILTER = "content_filter"
    REFUSAL = "refusal"
    PAUSE = "pause"
    CONTEXT_WINDOW = "context_window"
    ERROR = "error"
    UNKNOWN = "unknown"


_FINISH: dict[str, FinishReason] = {
    "stop": FinishReason.STOP,
    "end_turn": FinishReason.STOP,
    "stop_sequence": FinishReason.STOP,
    "eos": FinishReason.STOP,
    "tool_calls": FinishReason.TOOL_CALLS,
    "tool_use": FinishReason.TOOL_CALLS,
    "function_call": FinishReason.TOOL_CALLS,
    "length": FinishReason.MAX_TOKENS,
    "max_tokens": FinishReason.MAX_TOKENS,
    "content_filter": FinishReason.CONTENT_FILTER,
    "sensitive": FinishReason.CONTENT_FILTER,
    "refusal": FinishReason.REFUSAL,
    "pause_turn": FinishReason.PAUSE,
    "model_context_window_exceeded": FinishReason.CONTEXT_WINDOW,
    "model_length": FinishReason.CONTEXT_WINDOW,
    "network_error": FinishReason.ERROR,
    "insufficient_system_resource": FinishReason.ERROR,
    "error": FinishReason.ERROR,
}


def finish_reason(value: str | None) -> FinishReason | None:
    """Translate a provider's word; None stays None, an unknown word is `unknown`."""
    return None if value is None else _FINISH.get(value, FinishReason.UNKNOWN)


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one or more calls; a number nobody reported is absent, never 0.

    Input includes cached and cache-written tokens, output includes reasoning.
    """

    input_tokens: int | None = None
    output_tokens: int | None = None
    cached_input_tokens: int | None = None
    cache_write_input_tokens: int | None = None
    reasoning_tokens: int | None = None

    @property
    def total_tokens(self) -> int | None:
        """Input plus output, when both are known."""
        if self.input_tokens is None or self.output_tokens is None:
            return None
        return self.input_tokens + self.output_tokens

    def __add__(self, other: Usage) -> Usage:
        """Add field by field; a field known on one side only keeps that value."""
        return Usage(*(_add(getattr(self, f.name), getattr(other, f.name)) for f in fields(self)))

    def to_dict(self) -> dict[str, int]:
        """Return the known numbers by name."""
        known = ((f.name, getattr(self, f.name)) for f in fields(self))
        return {name: value for name, value in known if value is not None}


@dataclass(frozen=True, slots=True)
class CallUsage:
    """The usage of one call, with who reported it."""

    provider: str
    model: str
    usage: Usage | None


def _add(left: int | None, right: int | None) -> int | None:
    if left is None or right is None:
        return right if left is None else left
    return left + right
