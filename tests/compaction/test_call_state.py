"""What a process remembers of a conversation between its calls."""

from __future__ import annotations

from backscroll.compaction.call_state import CallState, CallStates, RunState
from backscroll.compaction.plan import plan
from backscroll.compaction.store import Cache, CompactionEntry
from compaction.planning import given, talk


def test_each_run_has_a_state_of_its_own() -> None:
    """Runs are told apart by their token; within one, the state stays."""
    state, one, two = CallState(), object(), object()
    run = state.run_of(one)
    assert state.run_of(one) is run
    assert state.run_of(two) is not run


def test_three_thin_summaries_in_a_row_end_them_for_the_run() -> None:
    """PLN10: each followed by less than a tenth of the budget."""
    run = RunState(object())
    for before in (1_000, 1_050, 1_090):
        run.wants_summary(before, 1_000)
        run.summarised(before)
    assert not run.thrashing
    run.wants_summary(1_120, 1_000)
    assert run.thrashing


def test_a_summary_with_enough_between_begins_the_count_anew() -> None:
    """Growth makes summaries worth their price again."""
    run = RunState(object())
    for before in (1_000, 1_050, 1_090, 2_000, 2_010, 2_020):
        run.wants_summary(before, 1_000)
        run.summarised(before)
    assert not run.thrashing


def test_the_smallest_refused_view_is_the_ceiling_of_a_run() -> None:
    """A little below it, per model; without a refusal there is none."""
    run = RunState(object())
    assert run.ceiling("m") is None
    sizes = []
    for turns in (4, 3, 6):
        planned = plan(given(talk(turns)))
        run.was_refused("m", planned)
        sizes.append(planned.raw)
    assert run.ceiling("m") == int(0.9 * sizes[1])
    assert run.ceiling("other") is None


def missed(state: CallState, name: str) -> None:
    """Let a state see a plan whose stored summary `name` does not fit the history."""
    entry = CompactionEntry(Cache(4, name, "summary"))
    state.saw_cache(plan(given(talk(3), entry=entry)))


def test_three_summaries_that_lost_their_prefix_mean_it_slides() -> None:
    """Only different ones count: one edit is one miss, in however many calls."""
    state = CallState()
    for name in ("a", "a", "a", "b"):
        missed(state, name)
    assert not state.is_sliding
    missed(state, "c")
    assert state.is_sliding


def test_a_hit_begins_the_count_anew() -> None:
    """A prefix that holds does not slide."""
    state = CallState()
    for name in ("a", "b"):
        missed(state, name)
    state.saw_cache(plan(given(talk(3))))
    missed(state, "c")
    assert state.is_sliding

    fine = CallState()
    history = talk(12, 600)
    planned = plan(given(history))
    assert planned.reading is not None
    hashes, n = planned.reading.hashes, planned.reading.groups[8].start
    for name in ("a", "b"):
        missed(fine, name)
    hit = CompactionEntry(Cache(n, hashes[n], "summary"))
    fine.saw_cache(plan(given(history, entry=hit)))
    missed(fine, "c")
    assert not fine.is_sliding


def test_the_conversations_used_last_are_remembered() -> None:
    """CS2: within a bound; without an id nothing is."""
    states = CallStates(limit=2)
    first = states.of("a")
    states.of("b")
    assert states.of("a") is first
    states.of("c")
    assert states.of("a") is first
    assert states.of(None) is not states.of(None)
    states.forget("a")
    assert states.of("a") is not first
