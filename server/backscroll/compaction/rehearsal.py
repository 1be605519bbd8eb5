"""A plan carried out without its summariser: what the next call would do, as far as can be told."""

from __future__ import annotations

import dataclasses

from backscroll.compaction.ladder import Climb
from backscroll.compaction.layouts import Choice
from backscroll.compaction.plan import Plan, force, plan, settle
from backscroll.compaction.reading import PlanInput, Reading
from backscroll.compaction.report import plan_facts
from backscroll.compaction.summariser import Summariser
from backscroll.compaction.summary_run import SummaryOutcome, run_job
from backscroll.compaction.view import Layout, render
from backscroll.kernel.errors import Refusal
from backscroll.kernel.ports import CancelToken, Clock

WITHOUT_MODEL = "extractive"


async def rehearsed(
    given: PlanInput,
    summariser: Summariser | None,
    clock: Clock,
    *,
    on: bool = True,
    forced: bool = False,
) -> Plan:
    """Return the plan as it would be sent; with `forced`, that of the attempt after a refusal.

    Rules without a model are asked for a summary. For a model the summary is taken to be as long
    as it may be, and the decision says `planned` where it would say how it was made.
    """
    if not on:
        return _whole(given)
    first = await _settled(plan(given), summariser, clock)
    if not forced:
        return first
    return await _settled(force(first, Refusal("overflow")), summariser, clock)


async def _settled(planned: Plan, summariser: Summariser | None, clock: Clock) -> Plan:
    job = planned.job
    if job is None:
        return planned
    if summariser is not None and summariser.kind == WITHOUT_MODEL:
        outcome = await run_job(
            job,
            summariser,
            timeout_s=planned.given.settings.summary_timeout,
            cancel=CancelToken(),
            clock=clock,
            count=planned.given.means.sizes.text,
            max_shrink=planned.given.settings.max_shrink,
        )
        return settle(planned, outcome)
    kind = summariser.kind if summariser is not None else ""
    longest = "note " * job.max_tokens
    done = settle(planned, SummaryOutcome("done", core=longest, cut=job.cut, kind=kind))
    if done.decision is None or done.decision.summary is None:
        return done
    told = {"source": "planned", "kind": kind, "max_tokens": job.max_tokens}
    return _without_text(done, told)


def _without_text(done: Plan, summary: dict[str, object]) -> Plan:
    """Return the plan with nothing of the text that stood for the summary in its decision."""
    assert done.decision is not None
    decision = done.decision.replace(summary=summary)
    return dataclasses.replace(done, decision=decision, blobs={})


def _whole(given: PlanInput) -> Plan:
    """Return the plan of a conversation whose compaction is off: all of it, as it is."""
    reading = Reading(given)
    view = render(reading, Layout())
    state = Climb(reading, Choice(Layout(), "none"), view, Layout(), view.tokens)
    facts = {**plan_facts(reading, state, ()), "estimate": {"ratio": given.ratio}}
    return Plan(given, given.history, given.asked.options, given.entry, facts=facts)
