"""The end of planning: the last check, the fitted options, the claims, the entry, the decision."""

from __future__ import annotations

import dataclasses

from backscroll.compaction.budget import fit_output
from backscroll.compaction.checks import violation
from backscroll.compaction.ladder import Climb
from backscroll.compaction.layouts import valid_marks
from backscroll.compaction.plan_value import Plan
from backscroll.compaction.reading import Reading
from backscroll.compaction.reasons import Warned
from backscroll.compaction.report import (
    Made,
    decide,
    plan_facts,
    stable_indexes,
    summary_facts,
    text_hash,
)
from backscroll.compaction.store import CompactionEntry, Marks
from backscroll.compaction.view import Layout, claims, render
from backscroll.kernel.model import Cache, ModelOptions


def conclude(start: Plan, done: Climb) -> Plan:
    """Return the plan of a climbed ladder: view, options, claims, decision, entry."""
    reading = start.reading
    assert reading is not None
    warnings = [*reading.budget.warnings, *done.warnings]
    if reading.pins_over_budget:
        warnings.append(Warned("pins_over_budget", {"limit": reading.limits.pins_max}))
    if done.choice.uncompacted:
        warnings.append(Warned("uncompacted"))
    wrong = violation(done.reading, done.view)
    if wrong is not None:
        warnings.append(Warned("invariant", {"why": wrong}))
        whole = render(reading, Layout())
        done = done.replace(reading=reading, view=whole, marked=Layout(), reason="invariant")
    if start.reaction is not None and start.reaction.limit is not None:
        observed = {"configured": reading.budget.configured, "observed": start.reaction.limit}
        warnings.append(Warned("limit_learned", observed))
    warnings += _summary_warnings(start.made)
    options, lowered = fit_output(reading.budget, start.options, done.view.tokens)
    given, fitted = start.options.max_output_tokens, options.max_output_tokens
    if given is not None and fitted is not None and given < fitted:
        # A refusal has lowered it already, to what the provider's own numbers leave.
        options, lowered = start.options, None
    warnings += [lowered] if lowered is not None else []
    facts = plan_facts(reading, done, warnings)
    finished = dataclasses.replace(
        start,
        view=done.view.messages,
        options=_with_cache_marks(options, stable_indexes(done.view)),
        claims=claims(done.view, done.reading),
        facts=facts,
        entry=_with_marks(reading, start.entry, done.marked),
        warnings=tuple(warnings),
        state=done,
    )
    return _decided(finished, reading, done)


def _decided(finished: Plan, reading: Reading, done: Climb) -> Plan:
    reaction, made = finished.reaction, finished.made
    if not done.stages and reaction is None and done.reason is None:
        return finished
    because = _because(finished, reading, done)
    if reaction is not None:
        because = f"refused as {reaction.refusal.cls}"
    decision = decide(
        reading,
        done,
        because=because,
        warnings=finished.warnings,
        trigger=finished.trigger,
        reaction=reaction,
        made=made,
        adopted=finished.adopted,
    )
    blobs = dict(summary_facts(made)[1]) if made is not None else {}
    cache = done.view.layout.cache
    if cache is not None:
        # The store of blobs keeps one copy; whoever reads the decision later needs the text.
        text = cache.summary.encode("utf-8", "surrogatepass")
        blobs[text_hash(cache.summary)] = text
    return dataclasses.replace(finished, decision=decision, blobs=blobs)


def _because(finished: Plan, reading: Reading, done: Climb) -> str:
    """Return the comparison that began it, with its numbers."""
    given, available = finished.given, reading.budget.available
    if given.manual:
        return "asked for by an operator"
    only_micro = [stage.stage for stage in done.stages] == ["micro"]
    ratio = given.settings.micro_ratio if only_micro else given.settings.trigger_ratio
    ratio = min(given.goal_ratio or 1.0, ratio)
    if given.ceiling is not None and given.ceiling < ratio * available:
        return f"{done.seen} > {given.ceiling}, near what this model refused"
    return f"{done.seen} > {ratio:g} × {available}"


def _summary_warnings(made: Made | None) -> list[Warned]:
    if made is None:
        return []
    out = [Warned("clipped")] if made.outcome.clipped else []
    if made.outcome.ungrounded:
        out.append(Warned("ungrounded", {"ids": list(made.outcome.ungrounded)}))
    return out


def _with_cache_marks(options: ModelOptions, at: list[int]) -> ModelOptions:
    """Name the stable places where a provider with explicit cache marks is to set them."""
    marks = options.cache
    if marks is None:
        return options
    return options.replace(cache=Cache(marks.strategy, marks.ttl, tuple(at)))


def _with_marks(reading: Reading, entry: CompactionEntry, layout: Layout) -> CompactionEntry:
    """Return the entry with the marks of a layout, if they reach beyond its summary and moved."""
    old = valid_marks(reading, entry.marks)
    micro_n = max(layout.micro_n, old.micro_n if old else 0)
    drop_n = max(layout.drop_n, old.drop_n if old else 0)
    if max(layout.micro_n, layout.drop_n) <= layout.prefix_n:
        return entry
    if old is not None and (micro_n, drop_n) == (old.micro_n, old.drop_n):
        return entry
    at_n = max(micro_n, drop_n)
    return entry.replace(marks=Marks(micro_n, drop_n, at_n, reading.hashes[at_n]))
