"""Coalescing: neighbours become one, and nothing that matters waits."""

from __future__ import annotations

from agui_stories import args, iteration, opened, said, thought
from backscroll.agent.events import TextDelta
from backscroll.agui.coalesce import Batch, merge
from hypothesis import given
from hypothesis import strategies as st


def test_neighbours_of_one_message_are_merged() -> None:
    """Deltas of one message that follow each other become one, others stay apart."""
    events = [*said("m", "a", "b"), *thought("m", "c"), *said("m", "d", "e"), *said("n", "f")]

    merged = merge(events)

    assert [getattr(event, "delta", "") for event in merged] == ["ab", "c", "de", "f"]


def test_calls_are_not_mixed() -> None:
    """Arguments of parallel calls keep their order and their call."""
    events = [
        args("m", "c1", "1"),
        args("m", "c2", "2"),
        args("m", "c2", "3"),
        args("m", "c1", "4"),
    ]

    assert [getattr(event, "delta", "") for event in merge(events)] == ["1", "23", "4"]


def test_the_first_delta_is_never_delayed() -> None:
    """The first delta of a message or call is due at once, the next ones may wait."""
    batch = Batch()

    due = [
        batch.add(event) for event in [*said("m", "a", "b"), *thought("m", "c"), *said("n", "d")]
    ]

    assert due == [True, False, True, True]


def test_a_full_batch_is_due() -> None:
    """A batch is written when it holds as many deltas as it may."""
    batch = Batch(limit=3)
    batch.add(said("m", "a")[0])
    batch.take()

    due = [batch.add(event) for event in said("m", "b", "c", "d")]

    assert due == [False, False, True] and len(batch) == 3


def test_everything_else_flushes() -> None:
    """An event that is not a delta is due at once, with what waited before it."""
    batch = Batch()
    batch.add(said("m", "a")[0])
    batch.take()
    batch.add(said("m", "b")[0])

    assert batch.add(iteration(0))
    assert len(batch.take()) == 2 and len(batch) == 0


def test_the_beginning_of_a_call_flushes() -> None:
    """Only text, reasoning and arguments are deltas."""
    batch = Batch()

    assert batch.add(opened("m", "c")) and batch.add(args("m", "c", "{"))
    assert not batch.add(args("m", "c", "}"))


@given(st.lists(st.tuples(st.sampled_from("mn"), st.text(min_size=1, max_size=3))))
def test_merging_changes_no_text(pieces: list[tuple[str, str]]) -> None:
    """What each message says is the same before and after."""
    events = [said(name, text)[0] for name, text in pieces]

    merged = [event for event in merge(events) if isinstance(event, TextDelta)]

    for name in "mn":
        before = "".join(text for of, text in pieces if of == name)
        assert "".join(event.delta for event in merged if event.message_id == name) == before
