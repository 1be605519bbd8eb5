"""What compaction keeps and costs, beside other strategies, on synthetic sessions.

Offline and seeded. Every strategy gets the same sessions, the same budget and the same summariser.

    python bench/compaction [--seeds 1,2,3] [--families FILE] [--windows 32768]
                            [--ours 16384,131072] [--bulk plain,noisy] [--turns 200]
                            [--decay-seeds 1,2] [--only NAME] [--histories 10000]
                            [--smoke] [--json FILE] [--baseline FILE]

Bad summarisers and our other windows are played with the first seed alone. It ends with 1 when a
gate is missed.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict
from functools import partial
from pathlib import Path

from cost import plan_cost
from families import FAMILIES, read_families
from gates import BAD, BASE, OURS, Gate, decay_gates, gates, show_gates
from measure import Measured, measure
from ours import Backscroll
from proof import prove
from session import make_session
from setting import budget_for
from strategies import (
    USUAL_SUMMARY,
    FreshStart,
    Masking,
    Sliding,
    Strategy,
    SummariseAll,
    SummaryAndUserWords,
)
from table import Job, compare, merged, show, show_decay

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
    OURS: Backscroll,
    f"{OURS} without facts": lambda window: Backscroll(window, facts=False),
    f"{OURS}, no summariser": lambda window: Backscroll(window, summariser=False),
    BAD[0]: lambda window: Backscroll(window, fault="empty"),
    BAD[1]: lambda window: Backscroll(window, fault="lying"),
    BAD[2]: lambda window: Backscroll(window, fault="dead"),
    BAD[3]: lambda window: Backscroll(window, fault="slow"),
}
DECAYING = (OURS, "summary + user words, equal")
DECAY_TURNS, SMOKE_TURNS, SMOKE_HISTORIES = 400, 40, 200

BASELINE = Path(__file__).resolve().parent / "baseline.json"


def main() -> int:
    """Run every strategy over every session, print the tables, and compare with the baseline."""
    asked = _options().parse_args()
    if asked.smoke:
        asked.turns, asked.seeds, asked.decay_seeds = SMOKE_TURNS, "1", ""
        asked.histories = min(asked.histories, SMOKE_HISTORIES)
    began = time.monotonic()
    jobs = list(_jobs(asked))
    with ProcessPoolExecutor() as pool:
        figures = pool.map(partial(run, families=asked.families), jobs)
        found = dict(zip(jobs, figures, strict=True))
    rows = merged(found, asked.turns)
    show(rows, sys.stdout)
    judged = [] if asked.smoke else gates(rows)
    judged += _decay(merged(found, DECAY_TURNS)) if asked.decay_seeds else []
    judged += _cost() if not asked.smoke and not asked.only else []
    judged += _proof(asked.histories) if asked.histories else []
    fine = show_gates(judged, sys.stdout)
    if asked.baseline.exists() and not asked.smoke:
        compare(rows, json.loads(asked.baseline.read_text("utf-8")), sys.stdout)
    sys.stdout.write(f"{len(jobs)} runs in {time.monotonic() - began:.0f} s\n")
    if asked.json:
        report = [{"name": n, "window": w, "bulk": b, **asdict(m)} for (n, w, b), m in rows.items()]
        asked.json.write_text(json.dumps(report, indent=1, ensure_ascii=False) + "\n", "utf-8")
    return 0 if fine else 1


def run(job: Job, families: Path = FAMILIES) -> Measured:
    """Play one session through one strategy."""
    name, window, seed, bulk, turns = job
    session = make_session(seed, turns, bulk, read_families(families))
    room = budget_for(window).available
    return measure(session, lambda: STRATEGIES[name](window), room, name == OURS)


def _options() -> argparse.ArgumentParser:
    options = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    options.add_argument("--seeds", default="1,2,3")
    options.add_argument("--families", type=Path, default=FAMILIES, help="what is planted")
    options.add_argument("--windows", default=str(BASE), help="for every strategy")
    options.add_argument("--ours", default="16384,131072", help="more windows, for our row alone")
    options.add_argument("--bulk", default="plain,noisy")
    options.add_argument("--turns", type=int, default=200)
    options.add_argument("--decay-seeds", default="1,2", help="for sessions of 400 turns")
    options.add_argument("--only", default="", help="part of a strategy's name")
    options.add_argument("--histories", type=int, default=10_000, help="random ones, checked")
    options.add_argument("--smoke", action="store_true", help="one seed, 40 turns, no gate")
    options.add_argument("--json", type=Path, help="where to write the figures")
    options.add_argument("--baseline", type=Path, default=BASELINE)
    return options


def _jobs(asked: argparse.Namespace) -> Iterator[Job]:
    for seed in filter(None, asked.decay_seeds.split(",")):
        yield from ((name, BASE, int(seed), "plain", DECAY_TURNS) for name in DECAYING)
    seeds = [int(seed) for seed in asked.seeds.split(",")]
    for names, windows in ((tuple(STRATEGIES), asked.windows), ((OURS,), asked.ours)):
        for window in filter(None, windows.split(",")):
            for bulk in asked.bulk.split(","):
                for name in (name for name in names if asked.only in name):
                    is_beside = name in BAD or windows is asked.ours
                    for seed in seeds[:1] if is_beside else seeds:
                        yield name, int(window), seed, bulk, asked.turns


def _decay(rows: dict[tuple[str, int, str], Measured]) -> list[Gate]:
    out: list[Gate] = []
    for (name, _, _), measured in rows.items():
        show_decay(name, measured, sys.stdout)
        out += decay_gates(measured) if name == OURS else []
    return out


def _cost() -> list[Gate]:
    cost = plan_cost()
    sys.stdout.write(
        f"\nplanning 1,400 messages: warm p50 {cost.warm_p50:.1f} ms, p95 {cost.warm_p95:.1f} ms, "
        f"cold {cost.cold:.0f} ms; 10,000 cost {cost.ratio:.2f} times 1,000\n"
    )
    values = (f"{cost.warm_p95:.1f} ms", f"{cost.cold:.0f} ms", f"{cost.ratio:.2f}")
    return [Gate("planning", *gate) for gate in _with(cost.met, values)]


def _with(met: dict[str, bool], values: tuple[str, ...]) -> Iterator[tuple[str, bool, str]]:
    for (name, holds), value in zip(met.items(), values, strict=True):
        yield name, holds, value


def _proof(count: int) -> list[Gate]:
    proof = prove(count)
    sys.stdout.write(f"\n{proof}\n")
    return [Gate("histories", "nothing wrong", not proof.wrong, str(len(proof.wrong)))]


if __name__ == "__main__":
    sys.exit(main())
