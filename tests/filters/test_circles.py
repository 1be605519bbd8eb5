"""When rounds of tool calls repeat themselves."""

from __future__ import annotations

import pytest
from backscroll.filters.circles import circle, fingerprint
from backscroll.kernel.content import TextPart
from backscroll.kernel.turn import ToolRecord
from hypothesis import given
from hypothesis import strategies as st

ROUNDS = st.lists(st.sampled_from("ABCD"), max_size=6)


@pytest.mark.parametrize(
    ("rounds", "found"),
    [
        ("AAAA", 4),
        ("ABAB", 4),
        ("ABCA", None),
        ("AAA", None),
        ("", None),
        ("ABCABC", 6),
        ("ABCACB", None),
        ("CABABA", 4),
    ],
)
def test_circles(rounds: str, found: int | None) -> None:
    """DL1, DL2: few different rounds in a row, or a longer row repeated."""
    assert circle(rounds, recent=4, distinct=2, window=6) == found


@given(ROUNDS)
def test_a_circle_says_how_far_back(rounds: list[str]) -> None:
    """What is found lies within what is there, and renaming rounds changes nothing."""
    found = circle(rounds, 4, 2, 6)

    assert found is None or 4 <= found <= len(rounds)
    assert circle([name.lower() for name in rounds], 4, 2, 6) == found
    if len(set(rounds[-4:])) <= 2 and len(rounds) >= 4:
        assert found == 4


@given(st.lists(st.sampled_from("ABC"), max_size=12), st.integers(1, 6), st.integers(1, 4))
def test_circles_as_they_are_defined(rounds: list[str], recent: int, distinct: int) -> None:
    """DL1, DL2: few different rounds lately, or the last p rounds twice; checked by hand."""
    window = 10
    few = len(rounds) >= recent and len({*rounds[len(rounds) - recent :]}) <= distinct
    doubled = [
        p
        for p in range(distinct + 1, window // 2 + 1)
        if len(rounds) >= 2 * p and all(rounds[-1 - n] == rounds[-1 - n - p] for n in range(p))
    ]

    found = circle(rounds, recent, distinct, window)

    assert found == (recent if few else 2 * doubled[0] if doubled else None)


def test_fingerprints() -> None:
    """DL5: neither the order of calls nor that of arguments counts; results do, if compared."""
    one = ToolRecord("look", "look", {"a": 1, "b": 2}, "x", "ok")
    same = ToolRecord("other", "look", {"b": 2, "a": 1}, "x", "ok")
    two = ToolRecord("t", "touch", None, (TextPart("\ud800"),), "error")
    later = ToolRecord("l", "look", {"a": 1, "b": 2}, "y", "ok")

    assert fingerprint([one, two]) == fingerprint([two, same])
    assert fingerprint([one]) != fingerprint([later])
    assert fingerprint([one], False) == fingerprint([later], False)
    assert fingerprint([one]) != fingerprint([one, one])
