"""The second attempt after a refusal."""

from __future__ import annotations

import pytest
from backscroll.compaction.budget import Asked
from backscroll.compaction.forced import (
    goal_after,
    healed,
    less_output,
    reaction_to,
    second_attempt,
    without_files,
)
from backscroll.compaction.overflow import Reaction
from backscroll.compaction.plan import Plan, force, plan, settle
from backscroll.compaction.reading import Reading
from backscroll.compaction.summary_run import SummaryOutcome
from backscroll.kernel.content import FilePart, TextPart
from backscroll.kernel.errors import Refusal
from backscroll.kernel.message import Message, user
from backscroll.kernel.model import ModelOptions, ModelProfile
from compaction.histories import rounds, u
from compaction.planning import given, prose, stages, talk


def planned(history: list[Message], window: int = 32_000, output: int | None = None) -> Plan:
    """Return the plan of a first attempt."""
    profile = ModelProfile(context_window=window, window_source="configured")
    asked = Asked(profile, ModelOptions(max_output_tokens=output))
    return plan(given(history, asked=asked))


def reading_of(first: Plan) -> Reading:
    """Return what a plan was read from."""
    assert first.reading is not None
    return first.reading


def refused(first: Plan, refusal: Refusal) -> Plan:
    """Return the second plan, its summary made."""
    second = force(first, refusal)
    if second.job is None:
        return second
    return settle(second, SummaryOutcome("done", core="CORE", cut=second.job.cut))


def test_an_overflow_climbs_the_whole_ladder() -> None:
    """OVF2: smaller in one step, and the decision names the refusal."""
    first = planned(talk(60, 300))
    second = refused(first, Refusal("overflow"))
    assert second.is_smaller and second.raw < 0.7 * first.raw
    assert second.before is first
    assert second.decision is not None
    assert (second.decision.trigger, second.decision.attempt) == ("overflow", 2)
    assert second.decision.because == "refused as overflow"


def test_with_a_safe_cut_a_summary_is_asked_for() -> None:
    """OVF8: breaker closed, with one; withheld, without."""
    assert force(planned(talk(90, 60)), Refusal("overflow")).job is not None
    held = plan(given(talk(90, 60), 32_000, withheld="paused_after_failures"))
    second = force(held, Refusal("overflow"))
    assert second.job is None and ("drop", "done") in stages(second)


def test_a_stated_limit_holds_for_the_second_request() -> None:
    """OVF5: learned, and the goal is below it."""
    first = planned(talk(60, 300), 128_000)
    second = refused(first, Refusal("overflow", used=24_000, limit=8_192))
    assert second.reading is not None and second.reaction is not None
    assert second.reading.budget.window == 8_192 == second.reaction.limit
    assert second.prompt <= 0.8 * 8_192
    assert "limit_learned" in second.facts["warnings"]


def test_the_provider_s_count_calibrates_this_call() -> None:
    """A prompt that was counted higher is planned higher."""
    first = planned(talk(60, 300))
    second = refused(first, Refusal("overflow", used=round(first.raw * 1.5)))
    assert second.reading is not None
    assert 1.4 < second.reading.budget.ratio < 1.6


def test_where_only_the_sum_was_too_large_the_view_stays() -> None:
    """OVF6: the same messages, fewer output tokens."""
    first = planned(talk(60, 300), output=6_000)
    second = force(first, Refusal("sum", 25_000, 6_000, 30_000))
    assert second.view == first.view and second.is_smaller
    assert second.options.max_output_tokens == 30_000 - 25_000 - reading_of(first).budget.safety
    assert second.decision is not None and second.decision.result == "done"
    assert {"limit_learned", "output_lowered"} <= set(second.facts["warnings"])


def test_a_malformed_list_goes_out_plain() -> None:
    """OVF10: without micro and summary; whole groups dropped, and `invariant` on record."""
    first = planned(talk(14, 400), 8_000)
    second = force(first, Refusal("heal"))
    assert second.is_smaller
    assert {claim.fate for claim in second.claims} <= {"kept", "dropped", "injected"}
    assert second.facts["warnings"] == ["invariant"]
    assert second.decision is not None and second.decision.reason == "invariant"


def test_a_malformed_list_that_fits_is_the_history() -> None:
    """Nothing is dropped without need."""
    history = [*rounds(9, prose(300)), u(90)]
    first = planned(history, 8_000)
    assert reading_of(first).limits.trigger > 3_000
    start, reading = second_attempt(first, Reaction("heal", Refusal("heal")))
    second = healed(start, reading)
    assert second.view == tuple(history)


def test_a_view_that_equals_the_history_cannot_be_healed() -> None:
    """Its reaction is none, and nothing is to be sent."""
    second = force(planned(talk(3)), Refusal("heal"))
    assert second.reaction is not None and second.reaction.kind == "none"
    assert not second.is_smaller


def test_too_many_bytes_leave_older_files_out_first() -> None:
    """OVF7: the text is unchanged if that suffices."""
    image = FilePart("image/png", data="A" * 400_000)
    history = [user((TextPart("see this"), image), "m1"), *talk(2), u(99)]
    first = planned(history)
    second = force(first, Refusal("overflow_bytes"))
    assert second.is_smaller and stages(second) == [("micro", "done")]
    assert second.view[1:] == first.view[1:]
    assert second.view[0].text == "see this [image/png left out here, #1]"


def test_without_files_bytes_are_saved_like_tokens() -> None:
    """The whole ladder, then."""
    second = refused(planned(talk(60, 300)), Refusal("overflow_bytes"))
    assert second.is_smaller and len(stages(second)) > 1


def test_a_plan_that_was_never_made_is_not_lightened() -> None:
    """Without a first view there is nothing to compare with."""
    first = planned(talk(3))
    start, reading = second_attempt(first, Reaction("forced", Refusal("overflow_bytes")))
    assert start.before is not None
    alone = Plan(start.given, (), start.options, start.entry)
    assert without_files(alone, reading) is None


@pytest.mark.parametrize(("cls", "kind"), [("overflow", "forced"), ("over_tpm", "none")])
def test_the_reaction_knows_the_whole_request(cls: str, kind: str) -> None:
    """System texts and tools count beside the messages."""
    first = planned(talk(3))
    refusal = Refusal(cls, used=1_000)  # type: ignore[arg-type]  # literals
    reaction = reaction_to(first, reading_of(first), refusal)
    assert reaction.kind == kind
    if kind == "forced":
        assert goal_after(first, reading_of(first), reaction) == 600


def test_less_output_names_both_numbers() -> None:
    """The warning has what was asked for and what is asked for now."""
    first = planned(talk(3), output=4_000)
    reaction = Reaction("output", Refusal("sum"), max_output=1_500)
    second = less_output(first, reading_of(first), reaction)
    assert second.options.max_output_tokens == 1_500
    assert second.warnings[0].data == {"from": 4_000, "to": 1_500}


def test_a_second_request_that_would_be_as_large_is_not_smaller() -> None:
    """One short message cannot shrink."""
    first = planned([u(1, "hi")])
    second = refused(first, Refusal("overflow"))
    assert not second.is_smaller
    unsent = second.unsent()
    assert not unsent.sends and unsent.decision is not None
    assert unsent.decision.result == "failed"
    assert unsent.decision.overflow is not None and unsent.decision.overflow["resend"] is False
