"""Heads, tails and lines that fit into a number of tokens."""

from __future__ import annotations

from backscroll.compaction.fact_lines import Salient
from backscroll.compaction.pieces import PieceCounter
from backscroll.compaction.shorten import fit_lines, take_ends
from hypothesis import given
from hypothesis import strategies as st

COUNTER = PieceCounter()


def test_keeps_three_fifths_at_the_head() -> None:
    """Head and tail share what is allowed 60 to 40, at line ends."""
    text = "\n".join(f"line {n} of a long text" for n in range(1_000))

    ends = take_ends(text, 1_000, COUNTER)

    assert 520 <= COUNTER.count(ends.head) <= 600
    assert 330 <= COUNTER.count(ends.tail) <= 430
    assert ends.head.endswith("of a long text") and ends.tail.startswith("line ")


def test_cuts_anywhere_without_line_ends() -> None:
    """A text without lines is cut between characters."""
    ends = take_ends("word " * 3_000, 400, COUNTER)

    assert 380 <= COUNTER.count(ends.head) + COUNTER.count(ends.tail) <= 400


@given(st.text(min_size=1), st.integers(1, 60), st.integers(0, 300))
def test_parts_are_the_text_and_fit(piece: str, times: int, allowed: int) -> None:
    """Head, middle and tail are the text, and the ends fit."""
    text = piece * times

    ends = take_ends(text, allowed, COUNTER)

    assert ends.head + ends.middle + ends.tail == text
    assert COUNTER.count(ends.head) + COUNTER.count(ends.tail) <= allowed + 1


def test_the_worst_lines_give_way() -> None:
    """Lines of the worst rank go first, of equal ones the last, and order stays."""
    lines = [Salient("alpha beta", 3), Salient("gamma delta", 1), Salient("one two", 3)]

    assert fit_lines(lines, 100, COUNTER) == tuple(lines)
    assert [line.text for line in fit_lines(lines, 8, COUNTER)] == ["alpha beta", "gamma delta"]
    assert [line.text for line in fit_lines(lines, 4, COUNTER)] == ["gamma delta"]
    assert fit_lines(lines, 0, COUNTER) == ()
