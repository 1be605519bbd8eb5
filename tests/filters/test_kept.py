"""What filters keep of conversations is bounded."""

from __future__ import annotations

from backscroll.filters.kept import Kept


def test_one_thing_per_conversation() -> None:
    """It is made when first asked for, and the same one afterwards, until it is renewed."""
    kept: Kept[list[int]] = Kept(list)
    kept.of("a").append(1)

    assert (kept.of("a"), kept.of("b"), kept.of(None)) == ([1], [], [])
    assert kept.renew("a") == []
    assert kept.of("a") == []


def test_those_not_used_for_longest_go_first() -> None:
    """Beyond the limit the one that was not asked for the longest is forgotten."""
    kept: Kept[list[int]] = Kept(list, limit=2)
    for name in ("a", "b"):
        kept.of(name).append(1)

    kept.of("a")
    kept.of("c")

    assert kept.of("a") == [1]
    assert kept.of("b") == []
