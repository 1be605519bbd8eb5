"""What compaction keeps and costs, beside other strategies, on synthetic sessions.

Offline and seeded. Every strategy gets the same sessions, the same budget and the same summariser.

    python bench/compaction [--seeds 1,2] [--windows 32768] [--ours 16384,131072]
                            [--bulk plain,noisy] [--turns 200] [--only NAME] [--json FILE]
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict
from pathlib import Path

from backscroll.compaction.budget import Asked, make_budget
from backscroll.compaction.settings import Settings
from backscroll.compaction.tokens import Sizes
from backscroll.kernel.model import ModelProfile
from measure import Measured, measure
from session import make_session
from strategies import (
    USUAL_SUMMARY,
    Backscroll,
    FreshStart,
    Masking,
    Sliding,
    Strategy,
    SummariseAll,
    SummaryAndUserWords,
)
from table import compare, gates, merged, show

STRATEGIES: dict[str, Callable[[int], Strategy]] = {
    "sliding window": Sliding,
    "sliding with hysteresis": lambda window: Sliding(window, hysteresis=True),
    "masking, last 10": Masking,
    "summarise-all, 4k input": lambda window: SummariseAll(window, USUAL_SUMMARY, 4_000),
    "summarise-all, usual": lambda window: SummariseAll(window, USUAL_SUMMARY),
    "summarise-all, equal": lambda window: SummariseAll(window, 0),
    "fresh start, usual": lambda window: FreshStart(window, USUAL_SUMMARY),
    "fresh start, equal": lambda window: FreshStart(window, 0),
    "summary + user words, usual": lambda window: SummaryAndUserWords(window, USUAL_SUMMARY),
    "summary + user words, equal": lambda window: SummaryAndUserWords(window, 0),
    "Backscroll": Backscroll,
    "Backscroll without facts": lambda window: Backscroll(window, facts=False),
    "Backscroll, no summariser": lambda window: Backscroll(window, summariser=False),
}

BASELINE = Path(__file__).resolve().parent / "baseline.json"

Job = tuple[str, int, int, str, int]


def main() -> None:
    """Run every strategy over every session, print the tables, and compare with the baseline."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--seeds", default="1")
    options.add_argument("--windows", default="32768", help="for every strategy")
    options.add_argument("--ours", default="16384,131072", help="more windows, for our row alone")
    options.add_argument("--bulk", default="plain,noisy")
    options.add_argument("--turns", type=int, default=200)
    options.add_argument("--only", default="", help="part of a strategy's name")
    options.add_argument("--json", type=Path, help="where to write the figures")
    options.add_argument("--baseline", type=Path, default=BASELINE)
    asked = options.parse_args()
    began = time.monotonic()
    jobs = list(_jobs(asked))
    with ProcessPoolExecutor() as pool:
        found = dict(zip(jobs, pool.map(run, jobs), strict=True))
    rows = merged(found)
    show(rows, sys.stdout)
    gates(rows, sys.stdout)
    if asked.baseline.exists():
        compare(rows, json.loads(asked.baseline.read_text("utf-8")), sys.stdout)
    sys.stdout.write(f"{len(jobs)} runs in {time.monotonic() - began:.0f} s\n")
    if asked.json:
        report = [{"name": n, "window": w, "bulk": b, **asdict(m)} for (n, w, b), m in rows.items()]
        asked.json.write_text(json.dumps(report, indent=1, ensure_ascii=False) + "\n")


def _jobs(asked: argparse.Namespace) -> Iterator[Job]:
    for names, windows in ((tuple(STRATEGIES), asked.windows), (("Backscroll",), asked.ours)):
        for window in filter(None, windows.split(",")):
            for bulk in asked.bulk.split(","):
                for name in (name for name in names if asked.only in name):
                    for seed in asked.seeds.split(","):
                        yield name, int(window), int(seed), bulk, asked.turns


def run(job: Job) -> Measured:
    """Play one session through one strategy."""
    name, window, seed, bulk, turns = job
    profile = ModelProfile(window, window_source="catalogue")
    budget = make_budget(Asked(profile), Settings(), Sizes())
    return measure(
        make_session(seed, turns, bulk), lambda: STRATEGIES[name](window), budget.available
    )


if __name__ == "__main__":
    main()
