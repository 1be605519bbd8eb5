"""The gates of the benchmark: which of them our own rows pass."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TextIO

from measure import OLD, Measured

Rows = dict[tuple[str, int, str], Measured]

OURS, BASE = "Backscroll", 32_768
BAD = tuple(f"{OURS}, {fault} summariser" for fault in ("empty", "lying", "dead", "slow"))
KEEPS_ENOUGH = 0.20
"""What another strategy must keep of the facts for its price to count."""
_SAID = ("constraint", "update", "decision")
_FOUND = ("artifact", "error", "value")


@dataclass(frozen=True, slots=True)
class Gate:
    """One gate: where it was measured, what, and whether it holds."""

    where: str
    name: str
    holds: bool
    value: str


def gates(rows: Rows) -> list[Gate]:
    """Return the gates that these rows allow to be judged."""
    out: list[Gate] = []
    for (name, window, bulk), m in rows.items():
        where = f"{window} {bulk}"
        if name == OURS:
            out += [Gate(where, *gate) for gate in _always(window, m)]
        if name == OURS and window == BASE:
            out += [Gate(where, *gate) for gate in _base(m, bulk == "noisy")]
            out += [Gate(where, *gate) for gate in _beside(rows, m, bulk)]
        if name in BAD and window == BASE:
            least = 0.70 if bulk == "noisy" else 0.80
            fine = m.facts >= least and m.failed == 0
            out.append(Gate(where, name.removeprefix(f"{OURS}, "), fine, f"{m.facts:.0%}"))
    return out


def decay_gates(m: Measured) -> list[Gate]:
    """Return the gates of a session of 400 turns."""
    curve = m.cohorts.get(OLD, {})
    found = [(1_000, 0.75), (2_000, 0.40)]
    out = [
        Gate("decay", f"at {at}", curve[at] >= least, f"{curve[at]:.0%}")
        for at, least in found
        if at in curve
    ]
    told = min(m.instructions.values(), default=1.0)
    return [*out, Gate("decay", "instructions", told >= 0.995, f"{told:.0%}")]


def show_gates(found: list[Gate], out: TextIO) -> bool:
    """Print the gates; say whether all hold."""
    for where in dict.fromkeys(gate.where for gate in found):
        told = (
            f"{gate.name} {'yes' if gate.holds else 'NO'} ({gate.value})"
            for gate in found
            if gate.where == where
        )
        out.write(f"\ngates, {where}: {' · '.join(told)}\n")
    missed = sum(not gate.holds for gate in found)
    out.write(f"{len(found)} gates, {missed} not met\n")
    return not missed


def _always(window: int, m: Measured) -> list[tuple[str, bool, str]]:
    wrong = f"{m.over_budget:.0f}, {m.broken:.0f}, {m.refused:.0f}, {m.failed:.0f}"
    clean = not (m.over_budget or m.broken or m.refused or m.failed)
    out = [("over budget, broken, refused, failed", clean, wrong)]
    if window > BASE:
        out.append(("extends", m.extends >= 0.97, f"{m.extends:.0%}"))
    return out


def _base(m: Measured, noisy: bool) -> list[tuple[str, bool, str]]:
    families = m.families
    said = min((v for f, v in families.items() if f.split()[0] in _SAID), default=1.0)
    found = min((families.get(f, 1.0) for f in _FOUND), default=1.0)
    prose = families.get("user prose", 1.0)
    return [
        ("facts", m.facts >= (0.70 if noisy else 0.80), f"{m.facts:.0%}"),
        ("constraint, update, decision", said >= 0.98, f"{said:.0%}"),
        ("artifact, error, value", found >= (0.75 if noisy else 0.85), f"{found:.0%}"),
        ("user prose", prose >= (0.25 if noisy else 0.55), f"{prose:.0%}"),
        ("by recall", m.recall >= 0.99, f"{m.recall:.0%}"),
        ("stale", m.stale == 0, f"{m.stale:.0f}"),
        ("sent", m.sent <= 0.06, f"{m.sent:.1%}"),
        ("calls", m.calls <= (18 if noisy else 12), f"{m.calls:.0f}"),
        ("extends", m.extends >= 0.85, f"{m.extends:.0%}"),
        ("common prefix", m.prefix >= 0.90, f"{m.prefix:.0%}"),
    ]


def _beside(rows: Rows, m: Measured, bulk: str) -> list[tuple[str, bool, str]]:
    others = {
        name: row
        for (name, window, b), row in rows.items()
        if (window, b) == (BASE, bulk) and not name.startswith(OURS)
    }
    usual = max((r.facts for n, r in others.items() if n.endswith("usual")), default=0.0)
    equal = max((r.facts for n, r in others.items() if n.endswith("equal")), default=0.0)
    good = [row for row in others.values() if row.facts >= KEEPS_ENOUGH]
    cheapest = min((r.summariser_tokens for r in good if r.calls), default=0)
    out: list[tuple[str, bool, str]] = []
    if usual:
        out.append(("2 x the best usual", m.facts >= 2 * usual, f"{m.facts / usual:.2f}"))
    if equal:
        out.append(("1.2 x the best equal", m.facts >= 1.2 * equal, f"{m.facts / equal:.2f}"))
    if cheapest:
        share = m.summariser_tokens / cheapest
        out.append(("summariser tokens", share <= 0.25, f"{share:.0%}"))
    if good:
        least = min(row.cost for row in good)
        out.append(("cost", m.cost <= least, f"{m.cost:.0f} of {least:.0f}"))
    return out
