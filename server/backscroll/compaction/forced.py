"""The second attempt after a refusal: less output, a smaller view, or a plainer one."""

from __future__ import annotations

import dataclasses

from backscroll.compaction.canon_forms import canon_sent
from backscroll.compaction.conclude import conclude
from backscroll.compaction.decision import Stage
from backscroll.compaction.ladder import Climb
from backscroll.compaction.layouts import Choice
from backscroll.compaction.overflow import Reaction, forced_goal, react
from backscroll.compaction.plan_value import Plan
from backscroll.compaction.reading import Reading
from backscroll.compaction.reasons import Warned
from backscroll.compaction.reduce import drop
from backscroll.compaction.view import Layout, View, render
from backscroll.kernel.errors import Refusal

LIGHT_ENOUGH = 0.6


def reaction_to(planned: Plan, reading: Reading, refusal: Refusal) -> Reaction:
    """Return how the refusal of a plan is answered."""
    beside = reading.budget.overhead.total / max(reading.budget.ratio, 0.1)
    changed = planned.view != planned.given.history
    return react(
        refusal,
        reading.budget,
        planned.raw + int(beside),
        changed=changed,
        shrink_on_tpm=planned.given.settings.shrink_on_tpm,
    )


def second_attempt(planned: Plan, reaction: Reaction) -> tuple[Plan, Reading]:
    """Return the beginning of the second plan, on what the refusal taught."""
    given = dataclasses.replace(
        planned.given,
        entry=planned.entry,
        ratio=reaction.ratio or planned.given.ratio,
        learned=reaction.limit or planned.given.learned,
    )
    reading = Reading(given)
    start = Plan(given, (), given.asked.options, given.entry)
    start = dataclasses.replace(start, reaction=reaction, reading=reading, before=planned)
    return start, reading


def goal_after(planned: Plan, reading: Reading, reaction: Reaction) -> int:
    """Return what the second view may take."""
    return forced_goal(reaction, reading.budget, reading.budget.estimate(planned.raw))


def less_output(planned: Plan, reading: Reading, reaction: Reaction) -> Plan:
    """Return the same view with a lower maximum output."""
    assert reaction.max_output is not None and planned.state is not None
    warning = Warned(
        "output_lowered", {"from": reading.budget.requested_output, "to": reaction.max_output}
    )
    state = planned.state.replace(stages=(), warnings=(*planned.state.warnings, warning))
    options = planned.given.asked.options.replace(max_output_tokens=reaction.max_output)
    start = dataclasses.replace(
        planned, options=options, reaction=reaction, before=planned, made=None
    )
    return conclude(start, state)


def healed(start: Plan, reading: Reading) -> Plan:
    """Return the history itself, only capped, with whole groups dropped if it does not fit."""
    whole = render(reading, Layout())
    view = whole
    stages: tuple[Stage, ...] = ()
    if view.tokens > reading.limits.trigger:
        view = drop(reading, view, reading.limits.drop_to)
        delta = view.tokens - whole.tokens
        stages = (Stage("drop", "done", "oldest first", len(view.dropped), delta),)
    warning = Warned("invariant", {"why": "the provider called the list of messages malformed"})
    state = _state(reading, view, stages).replace(warnings=(warning,), reason="invariant")
    return conclude(start, state)


def without_files(start: Plan, reading: Reading) -> Plan | None:
    """Return the first view with stubs for all older files, if that makes it light enough."""
    first = start.before
    if first is None or first.state is None:
        return None
    lighter = reading.with_limits(reading.limits, stub_media=True)
    before = first.state.view
    view = render(lighter, before.layout)
    if _bytes(view) > LIGHT_ENOUGH * _bytes(before):
        return None
    stage = Stage(
        "micro", "done", "older files left out", view.count("placeholder"),
        view.tokens - before.tokens,
    )  # fmt: skip
    return conclude(start, _state(lighter, view, (stage,)))


def _state(reading: Reading, view: View, stages: tuple[Stage, ...]) -> Climb:
    choice = Choice(view.layout, "hit" if view.layout.cache is not None else "none")
    return Climb(reading, choice, view, view.layout, view.tokens, stages)


def _bytes(view: View) -> int:
    return sum(len(canon_sent(message)) for message in view.messages)
