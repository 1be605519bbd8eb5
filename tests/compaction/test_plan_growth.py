"""What a long history costs that is mostly covered: work is counted, not timed."""

from __future__ import annotations

import sys
from types import FrameType
from typing import Any

from backscroll.compaction.canon_forms import prefix_hashes
from backscroll.compaction.plan import PlanInput, plan
from backscroll.compaction.store import Cache, CompactionEntry
from backscroll.kernel.message import Message
from compaction.histories import a, t, u
from compaction.planning import fresh_means, given


def small_talk(count: int) -> list[Message]:
    """Return a history of so many short messages, with a tool round in each turn."""
    out: list[Message] = []
    for n in range(0, count, 4):
        asked = a(n + 1, None, f"c{n}", path=f"src/f{n}.py")
        out += [u(n, f"question {n}"), asked, t(n + 2, f"c{n}"), a(n + 3, f"answer {n}")]
    return out


def work_of(input: PlanInput) -> int:
    """Return how many functions a plan with a warm memory calls."""
    plan(input)
    calls = 0

    def count(frame: FrameType, event: str, arg: Any) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    sys.setprofile(count)
    try:
        plan(input)
    finally:
        sys.setprofile(None)
    return calls


def test_ten_times_the_history_takes_at_most_three_times_the_work() -> None:
    """10,000 messages, 9,000 of them covered, beside 1,000."""
    short, long = small_talk(1_000), small_talk(10_000)
    cache = Cache(9_000, prefix_hashes(long)[9_000], "## Done\n- small talk")
    entry = CompactionEntry(cache=cache)

    one = work_of(given(short, 131_072, means=fresh_means()))
    ten = work_of(given(long, 131_072, entry, means=fresh_means()))

    assert ten <= 3 * one, (one, ten)
