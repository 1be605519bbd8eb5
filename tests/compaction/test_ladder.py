"""The ladder: which step is taken when, and what the summary is asked for."""

from __future__ import annotations

from backscroll.compaction.ladder import Aim, Climb, ask_summary, climb, finish, without_summary
from backscroll.compaction.reading import Reading
from backscroll.compaction.store import EMPTY, Cache, CompactionEntry
from backscroll.compaction.summary_text import join_summary
from backscroll.kernel.message import Message
from compaction.histories import rounds, u
from compaction.planning import given, prose, talk


def climbed(history: list[Message], window: int = 8_000, **aim: object) -> Climb:
    """Climb up to the summary."""
    reading = Reading(given(history, window))
    return climb(reading, EMPTY, aim_of(reading, **aim))


def aim_of(reading: Reading, **changes: object) -> Aim:
    """Return the ordinary aim, changed."""
    usual = {"goal": reading.limits.trigger, "drop_to": reading.limits.drop_to}
    return Aim(**{**usual, **changes})  # type: ignore[arg-type]  # passed on


def steps(found: Climb) -> list[tuple[str, str]]:
    """Return name and status of each step."""
    return [(stage.stage, stage.status) for stage in found.stages]


def test_a_short_history_needs_no_step() -> None:
    """PLN6: below the thresholds nothing is decided."""
    found = climbed(talk(3))
    assert not found.stages and found.job is None and found.reason is None


def test_shortening_may_be_all_that_is_needed() -> None:
    """Step 1 alone brings it under the trigger."""
    found = climbed(talk(16, 400))
    assert steps(found) == [("micro", "done")]
    assert found.job is None
    assert found.stages[0].messages == 12 and found.stages[0].tokens < -3_000
    assert found.seen > found.view.tokens


def test_a_summary_is_asked_for_at_a_safe_cut() -> None:
    """Step 2: the new span by groups, the facts of all that it covers."""
    found = climbed([u(1, "You must never touch staging."), *talk(70, 60)])
    job = found.job
    assert job is not None and found.cut is not None and job.cut == found.cut.index
    assert (job.start, job.notes, job.max_tokens) == (0, "", found.reading.limits.summary_max)
    assert job.groups[0][0].text == "[#1 user] You must never touch staging."
    assert job.groups[-1][-1].index == job.cut - 1
    assert "never touch staging" in job.facts.text
    assert job.cut in job.safe_ends
    hashes = found.reading.hashes
    assert job.key == f"{hashes[0]}:{hashes[job.cut]}"


def test_a_later_summary_extends_the_one_in_use() -> None:
    """SUM2: its core is the notes, and only what is new is read."""
    history = talk(80, 60)
    reading = Reading(given(history, summariser_window=4_000))
    cache = Cache(20, reading.hashes[20], join_summary("OLD CORE", "OLD FACTS"))
    found = climb(reading, CompactionEntry(cache), aim_of(reading))
    assert found.job is not None
    assert (found.job.start, found.job.notes) == (20, "OLD CORE")
    assert found.job.groups[0][0].index == 20
    assert found.job.room is not None and found.job.room < 4_000


def test_a_withheld_summary_is_skipped_with_its_reason() -> None:
    """Breaker, thrashing and the like: the step is on record."""
    found = climbed(talk(70, 60), withheld="paused_after_failures")
    assert steps(found)[-1] == ("summary", "skipped")
    assert (found.job, found.reason) == (None, "paused_after_failures")


def test_nothing_new_means_no_summary() -> None:
    """SUM12: one giant turn without a safe cut."""
    found = climbed([u(1, prose(6_000)), *rounds(1, prose(200))])
    assert (found.job, found.reason) == (None, "nothing_to_summarise")
    assert found.cut is not None and found.cut.index is None


def test_once_the_summary_was_made_no_other_is_asked_for() -> None:
    """At most one per call."""
    found = climbed(talk(70, 60), may_summarise=False)
    assert found.job is None and found.reason is None
    assert ("summary", "skipped") not in steps(found)


def test_what_is_still_too_large_is_dropped() -> None:
    """Step 3: down to half, and the marks are kept for later."""
    start = climbed(talk(70, 60), withheld="no_summariser")
    found = finish(start, aim_of(start.reading))
    assert steps(found)[-1] == ("drop", "done")
    assert found.view.tokens <= found.reading.limits.drop_to
    assert found.marked.drop_n == found.view.layout.drop_n > 0


def test_where_nothing_may_be_dropped_that_is_said() -> None:
    """All is in the last group."""
    start = climbed([u(1, prose(6_000)), *rounds(1, prose(200))])
    found = finish(start, aim_of(start.reading))
    assert steps(found)[:2] == [("summary", "skipped"), ("drop", "skipped")]


def test_what_is_above_the_hard_limit_is_trimmed_and_no_mark_moves() -> None:
    """Step 4: the next call decides anew."""
    start = climbed([u(1, prose(9_000)), *rounds(1, prose(200))])
    found = finish(start, aim_of(start.reading))
    assert steps(found)[-1] == ("trim", "done")
    assert found.view.tokens <= found.reading.budget.room
    assert found.marked.micro_n == found.marked.drop_n == 0
    assert not found.warnings


def test_what_cannot_fit_is_sent_with_the_largest_named() -> None:
    """Step 5: once, with a warning."""
    history = [u(1, "short"), *rounds(60, "x"), u(900, "and now?")]
    reading = Reading(given(history, 1_200, pins=frozenset(m.id or "" for m in history)))
    start = climb(reading, EMPTY, aim_of(reading))
    found = finish(start, aim_of(reading))
    (warning,) = found.warnings
    assert warning.reason == "cannot_fit"
    assert len(warning.data["largest"]) == 5 and warning.data["room"] == reading.budget.room


def test_forced_the_whole_ladder_is_climbed_harder() -> None:
    """Also where the ordinary one would do nothing."""
    history = [u(1), *rounds(6, prose(500)), u(90)]
    found = climbed(history, 32_000, goal=900, forced=True)
    assert steps(found)[0] == ("micro", "done")
    assert found.view.count("placeholder") == 5


def test_a_failed_summary_is_told_from_one_that_was_skipped() -> None:
    """compaction-18: the reason stands beside it."""
    start = climbed(talk(70, 60))
    failed = without_summary(start, "summariser_failed", "it is blank", failed=True)
    assert steps(failed)[-1] == ("summary", "failed")
    assert failed.stages[-1].why == "it is blank" and failed.job is None


def test_a_summary_that_was_asked_for_needs_no_trigger() -> None:
    """OPR5: nothing is shortened for it; a reason against it still holds."""
    reading = Reading(given(talk(90, 60), 32_000))
    asked = ask_summary(reading, EMPTY, aim_of(reading))
    assert asked.job is not None and asked.stages == ()
    held = ask_summary(reading, EMPTY, aim_of(reading, withheld="no_summariser"))
    assert (held.job, held.reason) == (None, "no_summariser")
