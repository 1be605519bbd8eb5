"""Text from elsewhere inside our blocks."""

from __future__ import annotations

import re

import pytest
from backscroll.compaction.tags import RESERVED, clean_line, escape_tags
from hypothesis import given
from hypothesis import strategies as st

REAL = re.compile(rf"<[\s/]*({'|'.join(RESERVED)})\b", re.IGNORECASE)


@pytest.mark.parametrize("name", RESERVED)
@pytest.mark.parametrize("form", ["<{}>", "</{}>", "< / {} >", "<{} a=1>", "<\n{}"])
def test_our_tags_are_escaped(name: str, form: str) -> None:
    """SUM7: a reserved tag in any case, with blanks and slash, is a tag no longer."""
    for written in (form.format(name), form.format(name.upper())):
        assert escape_tags(written) == "&lt;" + written[1:]


def test_other_text_stays() -> None:
    """What is not one of our tags is not touched."""
    for text in ("a < b", "<fact>", "<notesx>", "<html>", "facts", ""):
        assert escape_tags(text) == text


@given(st.lists(st.sampled_from(["<", "/", " ", "facts", "NOTES", "recalled", ">", "x"])))
def test_nothing_of_ours_is_left(pieces: list[str]) -> None:
    """SUM7: no text whatever keeps a reserved tag, and escaping twice changes nothing."""
    once = escape_tags("".join(pieces))

    assert not REAL.search(once)
    assert escape_tags(once) == once


def test_a_line_is_clean() -> None:
    """A line has no angle brackets, no control characters and single blanks."""
    assert clean_line("  a\n\t<b> \x07c \u202eevil ") == "a b c evil"
    assert clean_line("plain  text") == "plain text"
    assert clean_line("路径\u200b 一") == "路径 一"
    assert clean_line("\ud800") == ""
