"""Thinking beside other settings, and in turns that others began."""

from __future__ import annotations

from typing import Any

import pytest
from backscroll.kernel.model import ModelOptions
from backscroll.providers.anthropic_thinking import sampling, settle

THINK = {"type": "enabled", "budget_tokens": 2_000}
ADAPTIVE = {"type": "adaptive"}
OFF = {"type": "disabled"}
THOUGHT, USE = {"type": "thinking"}, {"type": "tool_use"}
RESULT, TEXT = {"type": "tool_result"}, {"type": "text"}


def turns(*contents: list[Any]) -> list[dict[str, Any]]:
    """Return turns of these blocks, a user's first."""
    roles = ("user", "assistant") * len(contents)
    return [{"role": r, "content": c} for r, c in zip(roles, contents, strict=False)]


ASKED = turns([TEXT])


@pytest.mark.parametrize(
    ("thinking", "choice", "limit", "expected"),
    [
        (None, None, 9_000, None),
        (OFF, {"type": "any"}, 9_000, OFF),
        (THINK, None, 9_000, THINK),
        (THINK, {"type": "auto"}, 9_000, THINK),
        (THINK, {"type": "any"}, 9_000, None),
        (ADAPTIVE, {"type": "tool", "name": "t"}, 9_000, None),
        (ADAPTIVE, None, 10, ADAPTIVE),
        (THINK, None, 2_000, {"type": "enabled", "budget_tokens": 1_999}),
        (THINK, None, 1_025, {"type": "enabled", "budget_tokens": 1_024}),
        (THINK, None, 1_024, None),
    ],
)
def test_thinking_goes_out_where_it_is_allowed(
    thinking: Any, choice: Any, limit: int, expected: Any
) -> None:
    """Not beside a forced tool; a budget is lowered to what the maximum output holds."""
    assert settle(thinking, ASKED, choice, limit) == expected


@pytest.mark.parametrize(
    ("said", "thinks"),
    [
        (([TEXT],), True),
        (([TEXT], [TEXT], [TEXT]), True),
        (([TEXT], [USE], [RESULT]), False),
        (([TEXT], [TEXT, THOUGHT, USE], [RESULT]), False),
        (([TEXT], [THOUGHT, USE], [RESULT]), True),
        (([TEXT], [THOUGHT, USE], [RESULT], [USE], [RESULT]), True),
        (([TEXT], [USE], [RESULT], [THOUGHT, USE], [RESULT]), False),
        (([TEXT], [USE], [RESULT, TEXT]), True),
        (([TEXT], [USE], [RESULT], [TEXT], [TEXT], [THOUGHT, USE], [RESULT]), True),
    ],
)
def test_a_turn_that_others_began_goes_on_without(said: Any, thinks: bool) -> None:
    """A turn under way must have begun with a thought; the next question starts afresh."""
    assert (settle(THINK, turns(*said), None, 9_000) is not None) is thinks
    assert settle(ADAPTIVE, turns(*said), None, 9_000) == ADAPTIVE


@pytest.mark.parametrize(
    ("thinking", "top_p", "expected"),
    [
        (None, 0.5, {"temperature": 0, "top_p": 0.5, "top_k": 3}),
        (OFF, 0.5, {"temperature": 0, "top_p": 0.5, "top_k": 3}),
        (THINK, 0.5, {"top_p": None}),
        (ADAPTIVE, 0.97, {"top_p": 0.97}),
    ],
)
def test_sampling_stands_back(thinking: Any, top_p: float, expected: Any) -> None:
    """Beside thinking only a high `top_p` is allowed."""
    assert sampling(ModelOptions(temperature=0, top_p=top_p, top_k=3), thinking) == expected
