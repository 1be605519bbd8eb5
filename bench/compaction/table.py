"""The table that a benchmark prints, with what must be said beside it, and its gates."""

from __future__ import annotations

import statistics
from collections import defaultdict
from dataclasses import fields
from typing import Any, TextIO

from measure import DECAY_AT, Measured

CAVEATS = (
    "The ledger rules know most planted families.",
    "The summariser is an extractive stand-in.",
    "Cost assumes 0.1 for cached and 1.25 for other input tokens.",
    "Presence of a string is not success at a task, and a core written by a model is not seen.",
    "The other rows are our versions of a strategy, not products.",
    "Without cohorts the decay curve flatters whoever reserves room for the oldest.",
)
UNGATED = ("tool prose", "changing")

Rows = dict[tuple[str, int, str], Measured]


def merged(found: dict[tuple[str, int, int, str, int], Measured]) -> Rows:
    """Return the mean over seeds for each strategy, window and kind of bulk."""
    groups: dict[tuple[str, int, str], list[Measured]] = defaultdict(list)
    for (name, window, _, bulk, _), figures in found.items():
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
    ("p95 ms", 7, "ms_p95", ".1f"),
    ("warm", 6, "ms_warm", ".1f"),
    ("cold", 6, "ms_cold", ".0f"),
)
"""Head, width, figure and form of each column."""


def show(rows: Rows, out: TextIO) -> None:
    """Print one table for each window and bulk, the families and the decay of our own rows."""
    for window, bulk in sorted({(window, bulk) for _, window, bulk in rows}):
        out.write(f"\nwindow {window}, {bulk} bulk\n{'':28}")
        out.write(" ".join(f"{head:>{width}}" for head, width, _, _ in COLUMNS) + "\n")
        for (name, w, b), m in rows.items():
            if (w, b) == (window, bulk):
                cells = (
                    f"{getattr(m, figure):{width}{form}}" for _, width, figure, form in COLUMNS
                )
                out.write(f"{name:28}{' '.join(cells)}\n")
        ours = rows.get(("Backscroll", window, bulk))
        if ours is not None:
            _details(ours, out)
    out.write("\n" + "\n".join(f"- {caveat}" for caveat in CAVEATS) + "\n")


def _details(ours: Measured, out: TextIO) -> None:
    families = " · ".join(f"{name} {value:.0%}" for name, value in ours.families.items())
    out.write(f"by family: {families}\n")
    out.write("by age: " + ", ".join(f"{value:.0%}" for value in ours.ages) + "\n")
    curve = ", ".join(f"{at}: {ours.decay[at]:.0%}" for at in DECAY_AT if at in ours.decay)
    out.write(f"facts of the first 200 messages at message {curve}\n")


def gates(rows: Rows, out: TextIO) -> None:
    """Print which gates our own row passes, for windows of 32,768."""
    best = {
        (bulk, kind): max(
            (
                m.facts
                for (n, w, b), m in rows.items()
                if b == bulk and w == 32_768 and n.endswith(kind)
            ),
            default=0.0,
        )
        for _, _, bulk in rows
        for kind in ("usual", "equal")
    }
    for (name, window, bulk), m in rows.items():
        if name != "Backscroll" or window != 32_768:
            continue
        noisy = bulk == "noisy"
        checks = {
            "facts": m.facts >= (0.70 if noisy else 0.80),
            "2 x the best usual": m.facts >= 2 * best[bulk, "usual"],
            "1.2 x the best equal": m.facts >= 1.2 * best[bulk, "equal"],
            "constraint, update, decision": all(
                value >= 0.98 for f, value in m.families.items() if f.split()[0] in _SAID
            ),
            "artifact, error, value": all(
                m.families.get(f, 1) >= (0.75 if noisy else 0.85) for f in _FOUND
            ),
            "user prose": m.families.get("user prose", 1) >= (0.25 if noisy else 0.55),
            "stale": m.stale == 0,
            "sent": m.sent <= 0.06,
            "calls": m.calls <= (18 if noisy else 12),
            "extends": m.extends >= 0.85,
            "common prefix": m.prefix >= 0.90,
            "over budget, broken": m.over_budget == m.broken == 0,
            "plan": m.ms_warm <= 15 and m.ms_cold <= 500,
        }
        if not best[bulk, "usual"]:
            del checks["2 x the best usual"], checks["1.2 x the best equal"]
        out.write(f"\ngates, {bulk}: ")
        out.write(" · ".join(f"{gate} {'yes' if ok else 'NO'}" for gate, ok in checks.items()))
        out.write("\n")


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


_SAID = ("constraint", "update", "decision")
_FOUND = ("artifact", "error", "value")


def _mean(group: list[Measured]) -> Measured:
    out = Measured()
    for field in fields(Measured):
        setattr(out, field.name, _mean_of([getattr(m, field.name) for m in group]))
    return out


def _mean_of(values: list[Any]) -> Any:
    if isinstance(values[0], dict):
        keys = {key: None for value in values for key in value}
        return {k: statistics.fmean(v[k] for v in values if k in v) for k in keys}
    if isinstance(values[0], tuple):
        return tuple(statistics.fmean(column) for column in zip(*values, strict=True))
    return statistics.fmean(values)
