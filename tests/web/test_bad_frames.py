"""How often a connection may break the rules."""

from __future__ import annotations

from backscroll.web.bad_frames import MOST, WITHIN_S, BadFrames


def test_too_many_within_a_minute() -> None:
    """The fiftieth closes."""
    bad = BadFrames()

    assert [bad.is_one_too_many(n) for n in range(MOST)] == [False] * (MOST - 1) + [True]


def test_old_ones_are_forgiven() -> None:
    """Slow mistakes are no abuse."""
    bad = BadFrames()

    assert not any(bad.is_one_too_many(n * (WITHIN_S / 40)) for n in range(500))
