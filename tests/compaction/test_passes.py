"""Passes: whole groups within a room, with less of each where there are too many."""

from __future__ import annotations

from backscroll.compaction.passes import Excerpt, Pass, split
from backscroll.compaction.texts import CompactionTexts
from hypothesis import given
from hypothesis import strategies as st

GAP = CompactionTexts().transcript_gap


def piece(index: int, tokens: int, short: int | None = None) -> Excerpt:
    """Return an excerpt of this size."""
    least = tokens if short is None else short
    return Excerpt(index, f"full {index} " * 9, f"short {index}", tokens, least, tokens)


def letters(index: int, tokens: int) -> Excerpt:
    """Return an excerpt in which each letter is a token."""
    full, short = "x" * tokens, "x" * (tokens // 3)
    return Excerpt(index, full, short, tokens, tokens // 3, tokens)


def test_without_a_window_there_is_one_pass() -> None:
    """An extractive summariser reads everything at once."""
    found = split([[piece(n, 400)] for n in range(12)], None, GAP)
    assert [step.end for step in found] == [12]
    assert split([], None, GAP) == split([], 100, GAP) == []


def test_passes_end_at_groups_and_fit_the_room() -> None:
    """SUM3: whole groups, as many as fit."""
    groups = [[piece(2 * n, 40), piece(2 * n + 1, 40)] for n in range(6)]
    found = split(groups, 200, GAP)
    assert [step.end for step in found] == [4, 8, 12]
    assert [step.source_tokens for step in found] == [160, 160, 160]


def test_more_than_eight_passes_shorten_results_first() -> None:
    """Result bodies give way before messages do."""
    groups = [[piece(n, 100, 50)] for n in range(16)]
    found = split(groups, 100, GAP)
    assert len(found) == 8
    assert "short 0" in found[0].transcript and "left out" not in found[0].transcript


def test_then_middle_groups_are_left_out_with_a_line_that_counts_them() -> None:
    """The beginning and the end are read, and what they stand for is the whole."""
    groups = [[piece(n, 100)] for n in range(40)]
    found = split(groups, 100, GAP)
    text = "\n".join(step.transcript for step in found)
    assert len(found) <= 8
    assert text.startswith("short 0\n") and text.endswith("\nshort 39")
    assert "[33 messages left out here]" in text
    assert found[-1].end == 40
    assert sum(step.source_tokens for step in found) == 4_000


def test_a_group_larger_than_the_window_is_cut() -> None:
    """SUM3: even one message larger than everything goes in, with its ends."""
    text = "[#1 user] START " + "word " * 900 + "END"
    big = Excerpt(0, text, text, 950, 950, 950)
    (found,) = split([[big]], 100, GAP)
    assert len(found.transcript) < len(text) / 9
    assert found.transcript.startswith("[#1 user] START") and found.transcript.endswith("END")


@given(
    st.lists(st.lists(st.integers(1, 900), min_size=1, max_size=3), max_size=30),
    st.integers(64, 500),
)
def test_any_history_gives_at_most_eight_passes_that_cover_it(
    sizes: list[list[int]], room: int
) -> None:
    """Property: in order, to the end, and no pass is larger than its room."""
    groups, index = [], 0
    for group in sizes:
        groups.append([letters(index + n, tokens) for n, tokens in enumerate(group)])
        index += len(group)
    found: list[Pass] = split(groups, room, GAP)
    assert len(found) <= 8
    ends = [step.end for step in found]
    assert ends == sorted(ends) and ends[-1:] == ([index] if groups else [])
    # A cut text is a little longer than reckoned: its gap, and what was rounded.
    assert all(len(step.transcript) <= room + 8 * len(step.transcript.split()) for step in found)
