"""Text cut into the words it is searched by."""

from __future__ import annotations

import pytest
from backscroll.conversation.words import is_latin, words
from hypothesis import given
from hypothesis import strategies as st


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("listFiles", ["list", "files"]),
        ("get_weather", ["get", "weather"]),
        ("HTTPServer2 v1.5", ["http", "server", "2", "v", "1", "5"]),
        ("Größe STRASSE ß", ["grösse", "strasse", "ss"]),
        ("ｗｅａｔｈｅｒ", ["weather"]),
        ("天气", ["天气"]),
        ("服装店", ["服装", "装店"]),
        ("店", ["店"]),
        ("查询weather天气", ["查询", "weather", "天气"]),
        ("カタカナ 한국어", ["カタ", "タカ", "カナ", "한국", "국어"]),
        ("a a", ["a", "a"]),
        (" -_/. ", []),
    ],
)
def test_words(text: str, found: list[str]) -> None:
    """TS1, TS2: scripts, case, width, camelCase and snake_case."""
    assert words(text) == found


def test_singles() -> None:
    """In an index each character of a run counts as well."""
    assert words("服装店", with_singles=True) == ["服装", "装店", "服", "装", "店"]
    assert words("店 get", with_singles=True) == ["店", "get"]


def test_latin() -> None:
    """Letters are Latin here, digits and CJK are not."""
    assert [is_latin(word) for word in ("abc", "ß", "12", "天气", "한국")] == [
        True, True, False, False, False,
    ]  # fmt: skip


@given(st.text(), st.text())
def test_any_text(left: str, right: str) -> None:
    """No text fails, and a blank between two texts keeps their words apart."""
    assert words(f"{left} {right}") == words(left) + words(right)
    assert all(word for word in words(left))
