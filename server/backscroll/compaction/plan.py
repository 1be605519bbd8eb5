"""The plan of one call: pure functions from a history and what is known to a view.

`plan` makes it; `settle` goes on when the summary it asked for was made, or was not; `force` makes
the one other view after a refusal. None of them raises for what is in a list of messages.
"""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable

from backscroll.compaction.adopt import adopted
from backscroll.compaction.conclude import conclude
from backscroll.compaction.decision import Amount, Decision, Stage
from backscroll.compaction.forced import (
    goal_after,
    healed,
    less_output,
    reaction_to,
    second_attempt,
    without_files,
)
from backscroll.compaction.ladder import Aim, ask_summary, climb, finish, without_summary
from backscroll.compaction.material import SummaryJob
from backscroll.compaction.new_cache import new_cache
from backscroll.compaction.plan_value import Plan
from backscroll.compaction.reading import PlanInput, Reading
from backscroll.compaction.reasons import Warned
from backscroll.compaction.report import Made
from backscroll.compaction.store import CompactionEntry, with_ring
from backscroll.compaction.summary_run import SummaryOutcome
from backscroll.kernel.errors import Never, Refusal

__all__ = ["Plan", "PlanInput", "force", "plan", "settle"]


def plan(given: PlanInput) -> Plan:
    """Return the plan of a call; with a `job`, the part that comes before the summary."""
    return _guarded(given, lambda: _plan(given))


def settle(planned: Plan, outcome: SummaryOutcome) -> Plan:
    """Return the finished plan, with the summary or with what takes its place."""
    if planned.job is None:
        return planned
    return _guarded(planned.given, lambda: _settle(planned, outcome))


def force(planned: Plan, refusal: Refusal) -> Plan:
    """Return the plan of the second attempt; one whose reaction is `none` is not to be sent."""
    found = _guarded(planned.given, lambda: _force(planned, refusal))
    return dataclasses.replace(found, before=planned)


def _plan(given: PlanInput) -> Plan:
    reading = Reading(given)
    goal = reading.limits.trigger
    if given.goal_ratio is not None:
        goal = min(goal, int(given.goal_ratio * reading.budget.available))
    if given.ceiling is not None:
        goal = min(goal, given.ceiling)
    aim = Aim(goal, reading.limits.drop_to, withheld=given.withheld)
    start = Plan(given, (), given.asked.options, given.entry, reading=reading)
    return _asked_for(start, reading, aim) if given.manual else _climbed(start, aim)


def _asked_for(start: Plan, reading: Reading, aim: Aim) -> Plan:
    """Return the plan of a summary that is wanted whatever the size; nothing is dropped for it."""
    state = ask_summary(reading, start.entry, aim)
    if state.job is None:
        return conclude(start, state)
    aim = dataclasses.replace(aim, goal=sys.maxsize)
    return dataclasses.replace(start, view=state.view.messages, state=state, aim=aim, job=state.job)


def _climbed(start: Plan, aim: Aim) -> Plan:
    """Climb the ladder up to the summary, if one is wanted, else to its end."""
    assert start.reading is not None
    state = climb(start.reading, start.entry, aim)
    if state.view.tokens > aim.goal:
        start, state = adopted(start, start.reading, aim, state)
    if state.job is None:
        return conclude(start, finish(state, aim))
    return dataclasses.replace(start, view=state.view.messages, state=state, aim=aim, job=state.job)


def _settle(planned: Plan, outcome: SummaryOutcome) -> Plan:
    reading, state, aim, job = planned.reading, planned.state, planned.aim, planned.job
    assert reading is not None and state is not None and aim is not None and job is not None
    if not outcome.core or not outcome.cut:
        reason = outcome.reason or "summariser_failed"
        done = without_summary(state, reason, outcome.why, failed=outcome.failed)
        return conclude(dataclasses.replace(planned, job=None), finish(done, aim))
    entry, made = _with_summary(planned, reading, job, outcome)
    again = climb(reading, entry, dataclasses.replace(aim, may_summarise=False))
    why = outcome.why or (state.cut.why if state.cut is not None else "")
    delta = again.view.tokens - state.view.tokens
    stage = Stage("summary", "done", why, outcome.cut - job.start, delta, outcome.ms)
    again = again.replace(
        stages=(stage, *again.stages), cut=state.cut, seen=state.seen, reason=outcome.reason
    )
    settled = dataclasses.replace(planned, job=None, entry=entry, made=made)
    return conclude(settled, finish(again, aim))


def _with_summary(
    planned: Plan, reading: Reading, job: SummaryJob, outcome: SummaryOutcome
) -> tuple[CompactionEntry, Made]:
    """Return the entry with the new cache, the former one in its ring."""
    entry, chosen = planned.entry, planned.given.manual or None
    former = planned.state.choice.layout.cache if planned.state is not None else None
    cache, facts = new_cache(reading, job, outcome, chosen=chosen)
    if entry.cache is not None:
        entry = with_ring(entry, entry.cache, planned.given.settings.ring)
    previous = former.prefix_hash if former is not None else None
    made = Made(outcome, former is not None, outcome.cut != job.cut, facts, previous)
    return entry.replace(cache=cache, failures=0, opened_ms=None), made


def _force(planned: Plan, refusal: Refusal) -> Plan:
    first = planned.reading
    if first is None:
        return planned
    reaction = reaction_to(planned, first, refusal)
    if reaction.kind == "none":
        return dataclasses.replace(planned, reaction=reaction)
    if reaction.kind == "output":
        return less_output(planned, first, reaction)
    start, reading = second_attempt(planned, reaction)
    if reaction.kind == "heal":
        return healed(start, reading)
    lighter = without_files(start, reading) if refusal.cls == "overflow_bytes" else None
    if lighter is not None:
        return lighter
    goal = goal_after(planned, reading, reaction)
    aim = Aim(goal, reading.limits.drop_to, forced=True, withheld=start.given.withheld)
    return _climbed(start, aim)


def _guarded(given: PlanInput, make: Callable[[], Plan]) -> Plan:
    """Return what was made; if our own code fails on a history, the history itself."""
    try:
        return make()
    except Never.CONTAINED:
        raise
    except Exception as error:
        warning = Warned("invariant", {"why": f"{type(error).__name__}: {error}"})
        count = len(given.history)
        decision = Decision(
            "ratio",
            "",
            (),
            Amount(count, 0),
            Amount(count, 0),
            warnings=({"reason": warning.reason, **warning.data},),
            result="failed",
            reason="invariant",
        )
        return Plan(
            given,
            given.history,
            given.asked.options,
            given.entry,
            facts={"warnings": ["invariant"]},
            decision=decision,
            warnings=(warning,),
        )
