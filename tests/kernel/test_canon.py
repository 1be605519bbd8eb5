"""Text is valid Unicode, JSON has one form."""

from __future__ import annotations

import pytest
from backscroll.kernel.canon import SurrogateJoiner, canonical_json, clean_text, parse_json
from hypothesis import given
from hypothesis import strategies as st

ANY_TEXT = st.text(st.characters(blacklist_categories=()))


@given(ANY_TEXT)
def test_clean_text_is_valid_and_stable(text: str) -> None:
    """Whatever comes in can be encoded afterwards, and cleaning again changes nothing."""
    cleaned = clean_text(text)

    cleaned.encode("utf-8")
    assert clean_text(cleaned) == cleaned


@given(ANY_TEXT, st.integers(0, 20))
def test_a_joiner_gives_what_whole_text_would(text: str, cut: int) -> None:
    """MSG10: cutting a text anywhere, also inside a pair, changes nothing."""
    joiner = SurrogateJoiner()

    got = joiner.feed(text[:cut]) + joiner.feed(text[cut:]) + joiner.finish()

    assert got == clean_text(text)


def test_halves_of_an_emoji_become_one_character() -> None:
    """MSG10: two deltas with half a pair each are one character."""
    joiner = SurrogateJoiner()

    assert joiner.feed("\ud83c") + joiner.feed("\udf0d") == "🌍"
    assert SurrogateJoiner().feed("x\ud83c") == "x"


def test_json_has_no_blanks_and_no_nan() -> None:
    """Characters stay as they are, keys keep their order, NaN is refused both ways."""
    assert canonical_json({"b": "你", "a": [1, None]}) == '{"b":"你","a":[1,null]}'
    with pytest.raises(ValueError, match="NaN|nan|Out of range"):
        canonical_json(float("nan"))
    with pytest.raises(ValueError, match="NaN is not JSON"):
        parse_json("[NaN]")
    assert parse_json('{"a":1}') == parse_json(' {"a": 1}\n') == {"a": 1}
    with pytest.raises(ValueError, match="Extra data"):
        parse_json('{"a":1} x')
