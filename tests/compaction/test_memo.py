"""A bounded memory of results."""

from __future__ import annotations

from backscroll.compaction.memo import Memo


def test_makes_a_value_once() -> None:
    """A value is made on first use only."""
    made: list[str] = []
    memo: Memo[int] = Memo()

    first = memo.get("k", lambda: len(made) + (made.append("k") or 1))
    second = memo.get("k", lambda: 99)

    assert (first, second, made) == (1, 1, ["k"])


def test_forgets_what_was_used_longest_ago() -> None:
    """Above the limit the key that was used longest ago is made again."""
    memo: Memo[int] = Memo(2)
    for key in ("a", "b", "a", "c"):
        memo.get(key, lambda: 1)

    assert memo.get("a", lambda: 2) == 1
    assert memo.get("b", lambda: 2) == 2
    assert len(memo) == 2
