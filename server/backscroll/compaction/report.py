"""What is reported of a plan: the numbers of its view, and the decision it amounts to."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from backscroll.compaction.budget import Budget
from backscroll.compaction.cuts import CutChoice
from backscroll.compaction.decision import (
    Amount,
    Decision,
    Result,
    Stage,
    SummarySource,
    Trigger,
)
from backscroll.compaction.facts import FactsBlock
from backscroll.compaction.ladder import Climb
from backscroll.compaction.overflow import Reaction
from backscroll.compaction.reading import Reading
from backscroll.compaction.reasons import Warned
from backscroll.compaction.summary_run import SummaryOutcome
from backscroll.compaction.view import View
from backscroll.kernel.canon import canonical_json


@dataclass(frozen=True, slots=True)
class Made:
    """A summary as it was made in this call, with the facts beside it and the texts to keep."""

    outcome: SummaryOutcome
    merged: bool
    partial: bool
    facts: FactsBlock
    previous: str | None


def plan_facts(reading: Reading, done: Climb, warnings: Sequence[Warned]) -> dict[str, Any]:
    """Return the numbers a view was planned with, in the form of the call record."""
    budget, view = reading.budget, done.view
    sizes = reading.given.means.sizes
    return {
        "budget": budget_dict(reading),
        "estimate": {
            "counter": sizes.counter.name,
            "ratio": budget.ratio,
            "view": view.tokens,
            **({"counted": counted} if (counted := reading.given.counted) else {}),
        },
        "cache": done.choice.to_dict(),
        "stable": stable_indexes(view),
        "warnings": list(dict.fromkeys(warning.reason for warning in warnings)),
    }


def budget_dict(reading: Reading) -> dict[str, Any]:
    """Return the budget of a call in the form of the call record."""
    budget: Budget = reading.budget
    overhead = budget.overhead
    return {
        "window": budget.window,
        "source": budget.source,
        "configured": budget.configured,
        "learned": budget.learned,
        "output": budget.output,
        "hard": budget.hard,
        "safety": budget.safety,
        "overhead": {
            "system": overhead.system,
            "tools": overhead.tools,
            "response_format": overhead.response_format,
            "notes": overhead.notes,
        },
        "available": budget.available,
        "trigger": reading.limits.trigger,
        "micro": reading.limits.micro,
    }


def stable_indexes(view: View) -> list[int]:
    """Return the indexes in the view after which a provider's cache may be marked."""
    start, micro_n = view.layout.start, view.layout.micro_n
    found = {number for number, item in enumerate(view.items) if item.what == "summary"}
    for number in range(len(view.items) - 1, -1, -1):
        index = view.items[number].index
        if index is not None and start <= index < micro_n:
            found.add(number)
            break
    return sorted(found)


def decide(
    reading: Reading,
    done: Climb,
    *,
    because: str,
    warnings: Sequence[Warned],
    trigger: Trigger = "ratio",
    reaction: Reaction | None = None,
    made: Made | None = None,
    adopted: bool = False,
) -> Decision:
    """Return the decision of a plan that is carried out."""
    budget, view, given = reading.budget, done.view, reading.given
    above = budget.overhead.total
    beside = len(given.asked.system) + len(given.asked.notes)
    prefix_n = view.layout.prefix_n
    return Decision(
        trigger=trigger,
        because=because,
        stages=done.stages,
        before=Amount(len(reading.history), reading.whole + above),
        after=Amount(len(view.items) + beside, view.tokens + above),
        attempt=1 if reaction is None else 2,
        covers=covered(reading, prefix_n),
        ids=(reading.history[0].id, reading.history[prefix_n - 1].id) if prefix_n else None,
        cut=_cut(reading, done.cut),
        summary=_summary(view, made, "adopted" if adopted else "cache"),
        cache=done.choice.to_dict(),
        overflow=reaction.to_dict() if reaction is not None else None,
        warnings=tuple({"reason": w.reason, **w.data} for w in warnings),
        result=_result(done.stages, reaction),
        reason=done.reason,
    )


def summary_facts(made: Made) -> tuple[dict[str, Any], dict[str, bytes]]:
    """Return what a decision says of a summary that was made, and the texts it names."""
    outcome = made.outcome
    source = "partial" if made.partial else "merged" if made.merged else "fresh"
    exchanges = [[exchange.prompt, exchange.answer] for exchange in outcome.exchanges]
    data = canonical_json(exchanges).encode("utf-8", "surrogatepass")
    name = hashlib.sha256(data).hexdigest()
    out: dict[str, Any] = {
        "source": source,
        "kind": outcome.kind,
        "model": outcome.model,
        "provider": outcome.provider,
        "exchanges": name,
        "parts": outcome.parts,
        "done": outcome.done,
        "ms": outcome.ms,
        "facts": {"kept": dict(made.facts.kept), "left_out": dict(made.facts.left_out)},
        "previous": made.previous,
        "clipped": outcome.clipped or None,
        "ungrounded": list(outcome.ungrounded) or None,
        "usage": outcome.usage.to_dict() if outcome.usage is not None else None,
    }
    return {key: value for key, value in out.items() if value is not None}, {name: data}


def covered(reading: Reading, end: int) -> tuple[int, int] | None:
    """Return the references of the first and the last message of H[:end], if there are any."""
    refs = [ref for ref in reading.refs[:end] if ref is not None]
    return (refs[0], refs[-1]) if refs else None


def spent(outcome: SummaryOutcome) -> dict[str, Any] | None:
    """Return what a summary cost that was not accepted, where its model told."""
    if outcome.core or outcome.usage is None:
        return None
    out = {"model": outcome.model, "provider": outcome.provider, "usage": outcome.usage.to_dict()}
    return {name: value for name, value in out.items() if value is not None}


def text_hash(text: str) -> str:
    """Return the sha256 of a summary's text, which names it in decisions and records."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _summary(view: View, made: Made | None, source: SummarySource) -> Mapping[str, Any] | None:
    cache = view.layout.cache
    if cache is None:
        return None
    out: dict[str, Any] = {"sha256": text_hash(cache.summary), "chars": len(cache.summary)}
    if made is not None:
        return {**out, **summary_facts(made)[0]}
    kept = {name: cache.made[name] for name in ("kind", "model") if cache.made.get(name)}
    return {**out, "source": source, **kept}


def _cut(reading: Reading, cut: CutChoice | None) -> Mapping[str, Any] | None:
    if cut is None:
        return None
    out: dict[str, Any] = {"why": cut.why}
    if cut.index is not None:
        out["position"] = _position(reading, cut.index)
        out["id"] = reading.history[cut.index - 1].id
    out["rejected"] = [
        {"position": _position(reading, rejected.index), "why": rejected.why}
        for rejected in cut.rejected
    ]
    return out


def _position(reading: Reading, index: int) -> int:
    """Return where a cut lies: the reference of the last message before it, 0 without one."""
    found = covered(reading, index)
    return found[1] if found is not None else 0


def _result(stages: Sequence[Stage], reaction: Reaction | None) -> Result:
    statuses = {stage.status for stage in stages}
    if "done" in statuses or (reaction is not None and reaction.kind == "output"):
        return "done"
    return "failed" if "failed" in statuses else "skipped"
