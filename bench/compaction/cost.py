"""What planning costs: with a warm memory, with none, and over a history that is mostly covered.

Processor time, which other processes disturb less than the clock; the ratio is taken in one run.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from backscroll.compaction.canon_forms import prefix_hashes
from backscroll.compaction.store import Cache, CompactionEntry
from backscroll.kernel.message import Message, assistant, tool_call, tool_result, user
from measure import quantile
from ours import Backscroll
from session import make_session

WINDOW, MESSAGES, TURNS = 32_768, 1_400, 240
WARM, COLD, ROUNDS = 60, 3, 15
SHORT, LONG, COVERED, WIDE = 1_000, 10_000, 9_000, 131_072
P95_MS, COLD_MS, MOST_RATIO = 15.0, 500.0, 3.0


@dataclass(frozen=True, slots=True)
class Cost:
    """Milliseconds of a plan over 1,400 messages, and the ratio of 10,000 to 1,000."""

    warm_p50: float
    warm_p95: float
    cold: float
    ratio: float

    @property
    def met(self) -> dict[str, bool]:
        """The gates, by name."""
        return {
            "plan warm": self.warm_p95 <= P95_MS,
            "plan cold": self.cold <= COLD_MS,
            "10,000 to 1,000": self.ratio <= MOST_RATIO,
        }


def plan_cost(seed: int = 1, bulk: str = "plain") -> Cost:
    """Measure planning on the session of a seed."""
    calls = [c for c in make_session(seed, TURNS, bulk).calls if len(c.history) <= MESSAGES]
    last = calls[-1].history
    warm = Backscroll(WINDOW)
    for call in calls:
        warm.view(call.history)
    times = [_ms(warm, last) for _ in range(WARM)]
    cold = sorted(_ms(Backscroll(WINDOW), last) for _ in range(COLD))[COLD // 2]
    return Cost(quantile(times, 0.5), quantile(times, 0.95), cold, growth())


def growth() -> float:
    """Return how much dearer 10,000 messages are than 1,000, with 9,000 of them covered."""
    short, long = small_talk(SHORT), small_talk(LONG)
    one, ten = Backscroll(WIDE), Backscroll(WIDE)
    digest = prefix_hashes(long)[COVERED]
    ten.entry = CompactionEntry(cache=Cache(COVERED, digest, "## Done\n- small talk"))
    costs = [(_ms(one, short), _ms(ten, long)) for _ in range(ROUNDS)]
    first, second = (sorted(column)[ROUNDS // 2] for column in zip(*costs, strict=True))
    return second / first


def small_talk(count: int) -> tuple[Message, ...]:
    """Return a history of so many short messages, with a tool round in each turn."""
    makers: tuple[Callable[[int], Message], ...] = (
        lambda n: user(f"question {n}", f"m{n}"),
        lambda n: assistant(None, [tool_call(f"c{n}", "read", {"path": f"src/f{n}.py"})], f"m{n}"),
        lambda n: tool_result(f"c{n - 1}", "read", f"part {n} is as it was before", id=f"m{n}"),
        lambda n: assistant(f"answer {n}", id=f"m{n}"),
    )
    return tuple(makers[n % 4](n) for n in range(count))


def _ms(strategy: Backscroll, history: tuple[Message, ...]) -> float:
    before, aside = time.process_time(), strategy.work.aside_ms
    strategy.view(history)
    return (time.process_time() - before) * 1_000 - (strategy.work.aside_ms - aside)
