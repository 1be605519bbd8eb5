"""Ids of clients and of ours."""

from __future__ import annotations

import pytest
from backscroll.agui.ids import id_problem, is_minted, reasoning_id
from backscroll.kernel.ports import RandomIds


@pytest.mark.parametrize("value", ["a", "x" * 256, "会话 1", "a/b?c", "🌍"])
def test_ids_may_be_anything_readable(value: str) -> None:
    """1 to 256 characters of any script."""
    assert id_problem(value) is None


@pytest.mark.parametrize("value", ["", "x" * 257, "a\nb", "\x00", "a\u2028b", "\x85"])
def test_ids_may_not_break_lines(value: str) -> None:
    """Empty, too long, or with control characters."""
    assert id_problem(value) is not None


def test_ours_are_recognised() -> None:
    """What Ids makes for messages is told from what clients choose."""
    assert is_minted(RandomIds().new("msg")) and not is_minted("msg_1") and not is_minted("u1")
    assert reasoning_id("msg_7") == "msg_7.r"
