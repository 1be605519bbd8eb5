"""The piece estimator against true counts, against pathological text, and in pieces."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest
from backscroll.compaction.pieces import (
    _MOST_REMEMBERED,
    _PART,
    _PIECES,
    _TABLE,
    _UNIT,
    PieceCounter,
    _parts,
    _spans,
)
from deadlines import growth
from hypothesis import given
from hypothesis import strategies as st

SAMPLES = json.loads(
    (Path(__file__).parent.parent / "data" / "token-samples.json").read_text("utf-8")
)
COUNT = PieceCounter().count
CHARS = "aaBC1  \t\n\n\r_.-é的の한🔥…\x00\x1c\x85\xa0\u2028\u3000\ud800"
RUNS = st.builds(str.__mul__, st.sampled_from(CHARS), st.integers(1, 9))
MIXED = st.text(st.sampled_from(CHARS)) | st.lists(RUNS).map("".join)


def by_table(text: str) -> int:
    """Return the count as the table defines it: piece by piece, by the first row that fits."""
    rows = [(re.compile(pattern), weigh) for pattern, weigh in _TABLE]
    total, at = 0, 0
    while at < len(text):
        found, weigh = next((m, w) for row, w in rows if (m := row.match(text, at)))
        total, at = total + weigh(len(found[0])), found.end()
    return -(-total // _UNIT)


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample["name"])
def test_is_near_the_true_count(sample: dict[str, object]) -> None:
    """TOK1: every kind of text is within 0.85 to 1.35 of its true count."""
    ratio = COUNT(str(sample["text"])) / int(str(sample["o200k"]))

    assert 0.85 <= ratio <= 1.35


@pytest.mark.parametrize("char", ["a", "A", "1", "🔥", " ", "\n", "_", ".", "é", "的", "\ud800"])
def test_is_linear(char: str) -> None:
    """TOK2: ten times as much of one character costs about ten times as much, and is finite."""
    assert growth(lambda: COUNT(char * 20_000), lambda: COUNT(char * 200_000)) < 40
    assert 0 < COUNT(char * 200_000) < 500_000


@given(st.text(), st.text())
def test_appending_does_not_lower_the_count(text: str, more: str) -> None:
    """TOK2: appending text never lowers a count by more than 1."""
    assert COUNT(text + more) >= COUNT(text) - 1


def test_scripts_without_blanks_are_not_underestimated() -> None:
    """i18n-01: a character of Chinese, Japanese or Korean is about one token, an emoji at least."""
    for text in ("的" * 1_000, "の" * 1_000, "한" * 1_000, "漢字とかな한글" * 125):
        assert 0.6 <= COUNT(text) / len(text) <= 2
    assert COUNT("🎉" * 200) >= 200


def test_english_is_about_a_quarter_of_its_letters() -> None:
    """i18n-01: 4,000 letters of English are about 1,000 tokens."""
    text = str(SAMPLES[0]["text"])[:4_000]

    assert 600 <= COUNT(text) / len(text) * 4_000 <= 1_400


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("", 0),
        ("a b", 3),
        ("house", 2),
        ("ABCDEFabc", 4),
        ("1234567", 4),
        ("a  b", 3),
        ("snake_case", 3),
        ("...", 2),
        ("テスト", 3),
        ("ｆｕｌｌ", 4),
    ],
)
def test_weighs_pieces(text: str, tokens: int) -> None:
    """Each kind of piece has its weight, and the sum is rounded up."""
    assert COUNT(text) == tokens


@given(MIXED | st.text())
def test_words_and_gaps_weigh_what_the_table_says(text: str) -> None:
    """Counting by words that are remembered gives what reading the table piece by piece gives."""
    assert COUNT(text) == COUNT(text) == by_table(text)


@pytest.mark.parametrize("between", ["", "a"])
def test_every_character_has_a_weight(between: str) -> None:
    """No character of Unicode, each seventh tried, falls between the rows of the table."""
    chars = list(map(chr, range(0, sys.maxunicode + 1, 7)))
    text = between.join(chars)

    assert COUNT(text) == by_table(text) > len(chars) - 1


def test_forgets_pieces_when_there_are_too_many() -> None:
    """The memory of weights is bounded, and forgetting changes no count."""
    counter = PieceCounter()
    text = " ".join(f"é{chr(0x400 + n % 256)}{chr(0x400 + n // 256)}" for n in range(66_000))

    once, twice = counter.count(text), counter.count(text)

    assert once == twice
    assert len(counter._weights) <= _MOST_REMEMBERED


@given(MIXED | st.text())
def test_a_long_word_is_counted_in_parts(text: str) -> None:
    """Wherever a part ends, inside a letter case or a run, the pieces are those of the whole."""
    whole = _PIECES.findall(text)

    for size in (1, 2, 3, 7):
        assert [piece for pieces in _parts(text, size) for piece in pieces] == whole


@given(MIXED | st.text())
def test_a_long_text_is_counted_in_spans(text: str) -> None:
    """Spans are the whole text, and no word and no gap is in two of them."""
    for size in (1, 2, 3, 7):
        spans = list(_spans(text, size))
        assert "".join(spans) == text
        assert all(len(span) >= size for span in spans[:-1])
        assert not any(span[-1].isspace() for span in spans[:-1])
        assert all(span[0].isspace() for span in spans[1:])


def test_other_threads_have_their_turn_while_a_text_is_counted() -> None:
    """One span is short, however long the text, and one part, however long the word."""
    assert max(map(len, _spans("ab cd\n" * 200_000))) <= _PART + 2
    assert max(map(len, _parts("ab.cd-" * 200_000))) <= _PART
