"""The table that a benchmark prints, with what must be said beside it."""

from __future__ import annotations

import statistics
from collections import defaultdict
from dataclasses import fields
from typing import Any, TextIO

from gates import Rows
from measure import OLD, Measured

Job = tuple[str, int, int, str, int]
"""Strategy, window, seed, bulk and turns."""

CAVEATS = (
    "The ledger rules know most planted families.",
    "The summariser is an extractive stand-in.",
    "Cost assumes 0.1 for cached and 1.25 for other input tokens.",
    "Presence of a string is not success at a task, and a core written by a model is not seen.",
    "The other rows are our versions of a strategy, not products.",
    "Without cohorts the decay curve flatters whoever reserves room for the oldest.",
)


def merged(found: dict[Job, Measured], turns: int) -> Rows:
    """Return the mean over seeds for each strategy, window and kind of bulk, at so many turns."""
    groups: dict[tuple[str, int, str], list[Measured]] = defaultdict(list)
    for (name, window, _, bulk, played), figures in found.items():
        if played == turns:
            groups[name, window, bulk].append(figures)
    return {key: _mean(group) for key, group in groups.items()}


COLUMNS: tuple[tuple[str, int, str, str], ...] = (
    ("facts", 6, "facts", ".0%"),
    ("cost", 7, "cost", ".0f"),
    ("sent", 6, "sent", ".1%"),
    ("extends", 8, "extends", ".0%"),
    ("prefix", 7, "prefix", ".0%"),
    ("calls", 6, "calls", ".0f"),
    ("tokens", 9, "summariser_tokens", ".0f"),
    ("over", 5, "over_budget", ".0f"),
    ("broken", 7, "broken", ".0f"),
    ("stale", 6, "stale", ".0f"),
    ("p50 ms", 7, "ms_p50", ".1f"),
    ("p95 ms", 7, "ms_p95", ".1f"),
)
"""Head, width, figure and form of each column."""


def show(rows: Rows, out: TextIO) -> None:
    """Print one table for each window and bulk, the families and the decay of our own rows."""
    for window, bulk in sorted({(window, bulk) for _, window, bulk in rows}):
        out.write(f"\nwindow {window}, {bulk} bulk\n{'':30}")
        out.write(" ".join(f"{head:>{width}}" for head, width, _, _ in COLUMNS) + "\n")
        for (name, w, b), m in rows.items():
            if (w, b) == (window, bulk):
                cells = (
                    f"{getattr(m, figure):{width}{form}}" for _, width, figure, form in COLUMNS
                )
                out.write(f"{name:30}{' '.join(cells)}\n")
        ours = rows.get(("Backscroll", window, bulk))
        if ours is not None:
            _details(ours, out)
    out.write("\n" + "\n".join(f"- {caveat}" for caveat in CAVEATS) + "\n")


def _details(ours: Measured, out: TextIO) -> None:
    families = " · ".join(f"{name} {value:.0%}" for name, value in ours.families.items())
    out.write(f"by family: {families}\n")
    out.write("by age: " + ", ".join(f"{value:.0%}" for value in ours.ages) + "\n")
    out.write(f"found by recall, of a sample: {ours.recall:.0%}\n")


def show_decay(name: str, m: Measured, out: TextIO) -> None:
    """Print what is left of the facts of the first 200 messages, and of later cohorts."""
    out.write(f"\n{name}: per cent in the view (instructions among them) at message\n")
    for cohort, curve in m.cohorts.items():
        cells = (
            f"{at}: {share:.0%}"
            + (f"/{m.instructions[at]:.0%}" if cohort == OLD and at in m.instructions else "")
            for at, share in sorted(curve.items())
        )
        out.write(f"  of {cohort:9} {', '.join(cells)}\n")


def compare(rows: Rows, baseline: list[dict[str, Any]], out: TextIO) -> None:
    """Print where our rows keep less or cost more than the committed figures."""
    before = {(row["name"], row["window"], row["bulk"]): row for row in baseline}
    worse: list[str] = []
    for key, m in rows.items():
        old = before.get(key)
        if old is None or not key[0].startswith("Backscroll"):
            continue
        if m.facts < old["facts"] - 0.01:
            worse.append(f"{key}: facts {old['facts']:.1%} -> {m.facts:.1%}")
        if m.cost > 1.05 * old["cost"]:
            worse.append(f"{key}: cost {old['cost']:.0f} -> {m.cost:.0f}")
    verdict = worse or ["nothing is worse"]
    out.write("\nagainst the baseline: " + "; ".join(verdict) + "\n")


def _mean(group: list[Measured]) -> Measured:
    out = Measured()
    for field in fields(Measured):
        setattr(out, field.name, _mean_of([getattr(m, field.name) for m in group]))
    return out


def _mean_of(values: list[Any]) -> Any:
    if isinstance(values[0], dict):
        keys = {key: None for value in values for key in value}
        return {k: _mean_of([v[k] for v in values if k in v]) for k in keys}
    if isinstance(values[0], tuple):
        return tuple(statistics.fmean(column) for column in zip(*values, strict=True))
    return statistics.fmean(values)
