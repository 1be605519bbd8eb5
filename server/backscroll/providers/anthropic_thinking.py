"""When a request may ask for thinking, and which settings cannot stand beside it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from backscroll.kernel.model import ModelOptions
from backscroll.providers.anthropic_messages import THOUGHTS

MIN_BUDGET = 1024
MIN_TOP_P = 0.95

_FORCED = ("any", "tool")


def settle(
    thinking: Mapping[str, Any] | None,
    turns: Sequence[Mapping[str, Any]],
    choice: Mapping[str, Any] | None,
    max_tokens: int,
) -> dict[str, Any] | None:
    """Return the thinking a request asks for, as far as it is allowed, else None.

    It is refused beside a forced tool, in a turn that other replies than thinking ones began (of
    another vendor, say), and with a budget that the maximum output does not hold.
    """
    if thinking is None or thinking.get("type") == "disabled":
        return None if thinking is None else dict(thinking)
    if choice is not None and choice.get("type") in _FORCED:
        return None
    if thinking.get("type") != "enabled":
        return dict(thinking)
    if _began_without(turns):
        return None
    budget = thinking.get("budget_tokens")
    if not isinstance(budget, int) or budget < max_tokens:
        return dict(thinking)
    lowered = max_tokens - 1
    return {**thinking, "budget_tokens": lowered} if lowered >= MIN_BUDGET else None


def sampling(options: ModelOptions, thinking: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the sampling settings that may be sent beside this thinking."""
    given = {
        "temperature": options.temperature,
        "top_p": options.top_p,
        "top_k": options.top_k,
    }
    if thinking is None or thinking.get("type") == "disabled":
        return given
    fits = options.top_p is not None and options.top_p >= MIN_TOP_P
    return {"top_p": options.top_p if fits else None}


def _began_without(turns: Sequence[Mapping[str, Any]]) -> bool:
    """Say whether calls are being answered in a turn whose first reply shows no thinking."""
    first: Mapping[str, Any] | None = None
    for turn in turns:
        if turn["role"] == "assistant":
            first = first or turn
        elif any(block.get("type") != "tool_result" for block in turn["content"]):
            first = None
    return first is not None and first["content"][0].get("type") not in THOUGHTS
