"""Shapes of lines: what they mask, and that remembering and batches change none."""

from __future__ import annotations

import re

from backscroll.compaction.line_shapes import (
    _MASK,
    _MASKS,
    _MIXED,
    _MOST_REMEMBERED,
    _NUMBERS,
    _WORDS,
    shapes,
)
from hypothesis import given, settings
from hypothesis import strategies as st


def test_shapes_mask_numbers_and_words() -> None:
    """Lines of one table have one shape, whatever their words, numbers and ids."""
    one, two, three, other = shapes(
        ["alice smith 12 a1b2", "bob 99.5 c3d4e5", "carol jones lee 7 77777777", "x = 5"]
    )

    assert one == two == three != other


WORDS = ["ab", "a", "a/b.", "-", "+", "a1", "1", "12.5%", "1:11", ",", "é", "你", "\u3000", "\x02"]
GLUED = st.lists(st.sampled_from([*WORDS, " ", "  ", "\t"]), max_size=12).map("".join)
SPACED = st.lists(st.sampled_from(WORDS), max_size=6).map(" ".join)
LINES = st.lists(GLUED | SPACED, max_size=8)


def plain_shapes(lines: list[str]) -> list[str]:
    """Return the shapes of lines that hold no member, each pattern read over all the text."""
    text = "\n".join(lines).translate({**_MASK, ord("\t"): "\t"})
    for pattern, mask in ((_NUMBERS, "\0"), (_MIXED, "\1"), (_WORDS, "\2")):
        text = pattern.sub(mask, text)
    return re.sub("[ \t]+", " ", re.sub("\2(?:[ \t,]+\2)+", "\2", text)).split("\n")


@given(LINES.filter(bool))
def test_words_are_masked_as_the_whole_text_is(lines: list[str]) -> None:
    """Reading each word once, and a run of plain words as one, changes no shape."""
    assert shapes(lines) == plain_shapes(lines)


def test_masks_are_forgotten_when_there_are_too_many() -> None:
    """The memory of masks is bounded, and forgetting changes no shape."""
    lines = [f"{n:017b}".replace("0", "a") for n in range(1, 20_001)]

    assert shapes(lines) == ["\1"] * 20_000 == shapes(lines)
    assert len(_MASKS) <= _MOST_REMEMBERED


@given(LINES)
@settings(max_examples=30, deadline=None)
def test_a_line_has_its_shape_by_itself(lines: list[str]) -> None:
    """Which lines are looked at together changes no shape, so many are taken in batches."""
    alone = [shapes([line])[0] for line in lines]

    assert shapes(lines) == alone
    assert shapes(lines * 1_000) == alone * 1_000
