"""Cursors: read, written, and compared with what a log still has."""

from __future__ import annotations

import pytest
from backscroll.agui.cursor import START, Cursor, check_cursor, parse_cursor
from backscroll.agui.refusal import RequestRefused


@pytest.mark.parametrize("text", ["57.k3f0", "0.k3f0", "57", "-1"])
def test_cursors_are_written_as_they_were_read(text: str) -> None:
    """A number and an epoch, a bare number, or the place before everything."""
    assert str(parse_cursor(text)) == text


@pytest.mark.parametrize("text", ["", "x", "57.", "57.K3F0", "57.k3f", "-2", "1.5", "٣", "057"])
def test_anything_else_is_refused(text: str) -> None:
    """The refusal names the member it came in."""
    with pytest.raises(RequestRefused) as caught:
        parse_cursor(text, "Last-Event-ID")

    assert caught.value.code == "invalid_input"
    assert caught.value.details["problems"][0]["path"] == "Last-Event-ID"


@pytest.mark.parametrize(
    ("cursor", "floor", "reason"),
    [
        (Cursor(57, "k3f0"), 0, None),
        (Cursor(57), 0, None),
        (Cursor(100, "k3f0"), 0, None),
        (Cursor(10, "k3f0"), 10, None),
        (Cursor(9, "k3f0"), 10, "trimmed"),
        (Cursor(101, "k3f0"), 0, "ahead"),
        (Cursor(57, "aaaa"), 0, "epoch"),
        (Cursor(5000, "aaaa"), 10, "epoch"),
        (START, 0, None),
        (START, 1, "trimmed"),
    ],
)
def test_a_cursor_is_valid_or_says_why_not(cursor: Cursor, floor: int, reason: str | None) -> None:
    """Between floor and head of the same log; -1 while nothing was removed."""
    assert check_cursor(cursor, floor, 100, "k3f0") == reason
