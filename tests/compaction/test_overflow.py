"""What is done about a refusal, and how a silent cut is seen."""

from __future__ import annotations

from typing import Any

import pytest
from backscroll.compaction.budget import Asked, Budget, make_budget
from backscroll.compaction.overflow import (
    Reaction,
    forced_goal,
    react,
    refusal_of,
    suspect,
)
from backscroll.compaction.settings import Settings
from backscroll.compaction.tokens import Sizes
from backscroll.kernel.errors import ModelError, Refusal
from backscroll.kernel.model import ModelOptions, ModelProfile
from backscroll.kernel.usage import FinishReason, Usage


def budget(window: int = 10_000, output: int | None = None, learned: int | None = None) -> Budget:
    """Return the budget of a request without overhead."""
    asked = Asked(
        ModelProfile(context_window=window, window_source="configured"),
        ModelOptions(max_output_tokens=output),
    )
    return make_budget(asked, Settings(), Sizes(), 1.0, learned)


def test_only_refusals_of_ours_are_reacted_to() -> None:
    """OVF1: what the recogniser read decides; without it the kind of error does."""
    ours = Refusal("sum", 1, 2, 3)
    assert refusal_of(ModelError("context_overflow", "x", refusal=ours), budget(), 0) is ours
    assert (
        refusal_of(ModelError("rate_limit", "x", refusal=Refusal("over_tpm")), budget(), 0) is None
    )
    assert refusal_of(ModelError("invalid_request", "x"), budget(), 0) is None
    by_hand = refusal_of(ModelError("context_overflow", "x"), budget(), 0)
    assert by_hand is not None and by_hand.cls == "overflow"


def test_an_empty_answer_to_a_full_window_counts_as_overflow() -> None:
    """OVF9: only near the window; elsewhere it is what it was."""
    empty = ModelError("incomplete_stream", "nothing came")
    found = refusal_of(empty, budget(10_000), 9_000)
    assert found is not None and (found.cls, found.rule) == ("overflow", "empty_answer")
    assert refusal_of(empty, budget(10_000), 8_999) is None


@pytest.mark.parametrize(
    ("limit", "learned"),
    [(None, None), (999, None), (1_000, 1_000), (9_999, 9_999), (10_000, None)],
)
def test_a_limit_below_the_window_is_learned(limit: int | None, learned: int | None) -> None:
    """OVF5: between 1,000 and the window in force."""
    reaction = react(Refusal("overflow", limit=limit), budget(10_000), 5_000, changed=True)
    assert (reaction.kind, reaction.limit) == ("forced", learned)


def test_the_provider_s_own_count_calibrates_this_call() -> None:
    """Within the bounds a ratio has."""
    ratios = [
        react(Refusal("overflow", used=used), budget(), 10_000, changed=True).ratio
        for used in (12_000, 90_000, 100, None)
    ]
    assert ratios == [1.2, 2.0, 0.7, None]


def test_where_only_the_sum_is_too_large_the_output_is_lowered() -> None:
    """OVF6: to what the limit leaves, if that is at least 1,024 or what was asked for."""
    b = budget(10_000, 4_000)
    found = react(Refusal("sum", 7_000, 4_000, 10_000), b, 7_000, changed=True)
    assert (found.kind, found.max_output) == ("output", 10_000 - 7_000 - b.safety)
    assert react(Refusal("sum", 9_000, 4_000, 10_000), b, 9_000, changed=True).kind == "forced"
    small = budget(10_000, 300)
    assert react(Refusal("sum", 9_900, 300, 10_000), small, 9_900, changed=True).kind == "forced"


def test_an_output_that_should_have_fitted_is_halved() -> None:
    """Asking for as much again would be refused again; unknown numbers are no reason to guess."""
    found = react(Refusal("sum", 1_000, 3_000, 10_000), budget(10_000, 3_000), 1_000, changed=True)
    assert (found.kind, found.max_output) == ("output", 1_500)
    blind = react(Refusal("sum", None, None, None), budget(), 1_000, changed=True)
    assert blind.kind == "forced"
    asked_nothing = react(Refusal("sum", 6_000, None, 10_000), budget(), 6_000, changed=True)
    assert asked_nothing.kind == "output"


def test_a_malformed_list_is_sent_again_only_if_it_was_our_making() -> None:
    """OVF10: a view that equals the history cannot be healed."""
    assert react(Refusal("heal"), budget(), 1, changed=True).kind == "heal"
    assert react(Refusal("heal"), budget(), 1, changed=False).kind == "none"


def test_bytes_are_forced_and_other_classes_left_alone() -> None:
    """Media go first there; rates are none of our business."""
    kinds = [
        react(Refusal(cls), budget(), 1, changed=True).kind  # type: ignore[arg-type]  # literals
        for cls in ("overflow_bytes", "over_tpm", "silent", "other")
    ]
    assert kinds == ["forced", "none", "none", "none"]


def test_the_goal_follows_what_is_known() -> None:
    """The limit, else the provider's count, else our estimate; never below a floor."""
    b = budget(40_000, learned=20_000)
    half = b.available // 2
    by_limit = Reaction("forced", Refusal("overflow", limit=20_000), 20_000)
    assert forced_goal(by_limit, b, 30_000) == min(half, 16_000)
    by_count = Reaction("forced", Refusal("overflow", used=10_000))
    assert forced_goal(by_count, b, 30_000) == 6_000
    blind = Reaction("forced", Refusal("overflow"))
    assert forced_goal(blind, b, 5_000) == 3_000
    assert forced_goal(blind, b, 100) == 256


@pytest.mark.parametrize(
    ("prompt", "finish", "usage", "why"),
    [
        (9_000, FinishReason.CONTEXT_WINDOW, None, "ended with the window"),
        (9_700, FinishReason.MAX_TOKENS, Usage(9_750, 60), "where the window ends"),
        (9_750, FinishReason.MAX_TOKENS, Usage(None, 60), "where the window ends"),
        (9_000, FinishReason.STOP, Usage(10_001, 5), "more than its window"),
        (8_000, FinishReason.STOP, Usage(3_999, 5), "less than half"),
    ],
)
def test_a_silent_cut_is_suspected(
    prompt: int, finish: FinishReason, usage: Usage | None, why: str
) -> None:
    """OVF9: judged by finish reason and counts together, with the numbers."""
    found = suspect(budget(10_000), prompt, finish, usage)
    assert found is not None and why in found.why
    assert found.data["window"] == 10_000 and found.data["estimate"] == prompt


@pytest.mark.parametrize(
    ("prompt", "finish", "usage", "output"),
    [
        (9_000, FinishReason.STOP, Usage(9_100, 500), None),
        (9_000, FinishReason.MAX_TOKENS, Usage(9_700, 200), 200),
        (5_000, FinishReason.MAX_TOKENS, Usage(5_000, 200), 400),
        (1_900, FinishReason.STOP, Usage(100, 5), None),
        (5_000, FinishReason.STOP, Usage(0, 5), None),
        (5_000, FinishReason.STOP, None, None),
    ],
)
def test_an_ordinary_answer_is_not_suspected(
    prompt: int, finish: FinishReason, usage: Usage | None, output: int | None
) -> None:
    """A full answer, a small request, or no numbers at all are no sign of anything."""
    assert suspect(budget(10_000, output), prompt, finish, usage) is None


def test_a_reaction_tells_what_it_was_about() -> None:
    """Class, rule, the numbers named, and whether a request followed."""
    refusal = Refusal("overflow", 9, None, 8, "openai")
    given: dict[str, Any] = Reaction("forced", refusal, 8).to_dict()
    assert given == {
        "class": "overflow", "rule": "openai", "used": 9, "limit": 8,
        "reaction": "forced", "resend": True,
    }  # fmt: skip
