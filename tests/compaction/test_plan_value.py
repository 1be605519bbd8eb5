"""A plan as a value: its sizes, and whether a second one is worth sending."""

from __future__ import annotations

import dataclasses

from backscroll.compaction.budget import Asked
from backscroll.compaction.overflow import Reaction
from backscroll.compaction.plan import PlanInput, force, plan
from backscroll.compaction.plan_value import Plan
from backscroll.kernel.errors import Refusal
from backscroll.kernel.model import ModelProfile
from compaction.histories import u
from compaction.planning import MEANS, given, talk


def test_sizes_are_those_of_the_request() -> None:
    """Raw for the messages, estimated for the whole."""
    asked = Asked(ModelProfile(context_window=8_000), system=("Be brief.",))
    planned = plan(given(talk(2), asked=asked, ratio=1.5))
    assert planned.raw == MEANS.sizes.messages(talk(2))
    assert planned.reading is not None
    assert planned.prompt > 1.5 * planned.raw
    bare = Plan(PlanInput((u(1),), asked, MEANS), (u(1),), asked.options, planned.entry)
    assert (bare.prompt, bare.raw) == (0, MEANS.sizes.message(u(1)))


def test_shortened_are_the_messages_not_shown_whole() -> None:
    """By id; what compaction wrote itself has none."""
    planned = plan(given(talk(14, 400)))
    assert planned.shortened == {f"m{10 * turn + 2}" for turn in range(1, 11)}
    assert planned.changed
    assert not plan(given(talk(2))).shortened


def test_a_first_plan_is_no_smaller_one() -> None:
    """Only a second attempt is compared."""
    planned = plan(given(talk(2)))
    assert not planned.is_smaller
    assert planned.unsent().reaction is None


def test_smaller_means_five_per_cent_less() -> None:
    """By raw size, so that a new ratio proves nothing."""
    first = plan(given([u(1, "word " * 1_000)]))
    second = dataclasses.replace(
        first, before=first, reaction=Reaction("forced", Refusal("overflow"))
    )
    assert not second.is_smaller
    assert not dataclasses.replace(second, view=(u(1, "word " * 970),)).is_smaller
    assert dataclasses.replace(second, view=(u(1, "word " * 900),)).is_smaller


def test_a_reaction_of_none_is_never_worth_a_request() -> None:
    """Nothing was changed."""
    assert not force(plan(given(talk(2))), Refusal("other")).is_smaller


def test_other_output_and_another_form_are_worth_a_request() -> None:
    """OVF6, OVF10: fewer output tokens, or after `heal` a different list."""
    first = plan(given(talk(2)))
    for kind, view, expected in (
        ("output", first.view, True),
        ("heal", first.view, False),
        ("heal", first.view[1:], True),
    ):
        reaction = Reaction(kind, Refusal("sum"))  # type: ignore[arg-type]  # literals
        second = dataclasses.replace(first, before=first, reaction=reaction, view=view)
        assert second.is_smaller is expected


def test_a_plan_that_is_not_sent_says_so() -> None:
    """The decision is reported, and no request follows."""
    planned = plan(given(talk(14, 400)))
    reaction = Reaction("forced", Refusal("overflow"))
    unsent = dataclasses.replace(planned, reaction=reaction).unsent()
    assert not unsent.sends
    assert unsent.decision is not None and unsent.decision.overflow is not None
    assert (unsent.decision.result, unsent.decision.overflow["resend"]) == ("failed", False)
