"""The ladder: shorten, summarise, drop, trim; each step only if the one before did not suffice."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

from backscroll.compaction.cuts import CutChoice, CutQuestion, choose_cut, safe_among
from backscroll.compaction.decision import Stage, StageName
from backscroll.compaction.facts import first_user
from backscroll.compaction.layouts import Choice, choose_layout
from backscroll.compaction.material import ExcerptWriter, SummaryJob, excerpts, room_for
from backscroll.compaction.reading import Reading
from backscroll.compaction.reasons import Reason, Warned
from backscroll.compaction.reduce import (
    changed_indexes,
    contributors,
    drop,
    force_micro,
    move_micro,
    trim,
)
from backscroll.compaction.store import CompactionEntry
from backscroll.compaction.stored_summary import core_of, is_stored_summary
from backscroll.compaction.summary_text import split_summary
from backscroll.compaction.view import Layout, View, render


@dataclass(frozen=True, slots=True)
class Aim:
    """Where the ladder is to lead: at most `goal` tokens, dropping down to `drop_to`.

    `may_summarise` is False once this call has made its summary; `withheld` says why none may be
    made at all.
    """

    goal: int
    drop_to: int
    forced: bool = False
    may_summarise: bool = True
    withheld: Reason | None = None


@dataclass(frozen=True, slots=True)
class Climb:
    """How far the ladder was climbed: the view so far, the steps, and a summary to be made.

    `marked` is the layout whose marks are kept for later calls; trimming moves none. `seen` is the
    size that was compared with the trigger.
    """

    reading: Reading
    choice: Choice
    view: View
    marked: Layout
    seen: int
    stages: tuple[Stage, ...] = ()
    warnings: tuple[Warned, ...] = ()
    job: SummaryJob | None = None
    cut: CutChoice | None = None
    reason: Reason | None = None

    def replace(self, **changes: object) -> Climb:
        """Return a copy with some fields changed."""
        return dataclasses.replace(self, **changes)  # type: ignore[arg-type]  # checked by name


def climb(reading: Reading, entry: CompactionEntry, aim: Aim) -> Climb:
    """Return the view after the steps that need no summary before them, and the summary wanted."""
    choice = choose_layout(reading, entry, aim.goal)
    view = render(reading, choice.layout)
    before = view
    stages: list[Stage] = []
    if aim.forced:
        reading, view = force_micro(reading, view)
    elif view.tokens > min(reading.limits.micro, aim.goal):
        view = move_micro(reading, view)
    if view.messages != before.messages:
        stages.append(_done("micro", before, view, "older than the newest tool groups"))
    so_far = Climb(reading, choice, view, view.layout, before.tokens, tuple(stages))
    if view.tokens <= aim.goal or not aim.may_summarise:
        return so_far
    if aim.withheld is not None:
        return without_summary(so_far, aim.withheld)
    return _with_job(so_far)


def ask_summary(reading: Reading, entry: CompactionEntry, aim: Aim) -> Climb:
    """Return the summary of what none stands for yet, wanted whatever the size of the view."""
    choice = choose_layout(reading, entry, 0)
    view = render(reading, choice.layout)
    so_far = Climb(reading, choice, view, view.layout, view.tokens)
    if aim.withheld is not None:
        return without_summary(so_far, aim.withheld)
    return _with_job(so_far)


def without_summary(so_far: Climb, reason: Reason, why: str = "", failed: bool = False) -> Climb:
    """Return the climb with the summary step marked as not made."""
    stage = Stage("summary", "failed" if failed else "skipped", why or reason)
    return so_far.replace(job=None, stages=(*so_far.stages, stage), reason=reason)


def finish(so_far: Climb, aim: Aim) -> Climb:
    """Return the climb with whatever is still needed: drop, then trim."""
    reading, view, stages = so_far.reading, so_far.view, list(so_far.stages)
    if view.tokens > aim.goal:
        dropped = drop(reading, view, min(aim.goal, aim.drop_to))
        if dropped is view:
            stages.append(Stage("drop", "skipped", "nothing is left that may be dropped"))
        else:
            stages.append(_done("drop", view, dropped, "oldest first, whole groups"))
        view = dropped
    marked, warnings = view.layout, list(so_far.warnings)
    room = reading.budget.room
    if view.tokens > room and view.items:
        before = view
        reading, view = trim(reading, view, room)
        if view.tokens < before.tokens:
            stages.append(_done("trim", before, view, "larger than the hard limit"))
        if view.tokens > room:
            largest = [dataclasses.asdict(item) for item in contributors(reading, view)]
            warnings.append(Warned("cannot_fit", {"room": room, "largest": largest}))
    return so_far.replace(
        reading=reading,
        view=view,
        marked=marked,
        stages=tuple(stages),
        warnings=tuple(warnings),
    )


def _with_job(so_far: Climb) -> Climb:
    reading, view = so_far.reading, so_far.view
    question = _question(reading, view)
    cut = choose_cut(question)
    if cut.index is None:
        return without_summary(so_far, "nothing_to_summarise", cut.why).replace(cut=cut)
    return so_far.replace(job=_job(reading, view, question, cut.index), cut=cut)


def _question(reading: Reading, view: View) -> CutQuestion:
    """Return what a cut is chosen from: raw sizes, since bytes follow from the cut."""
    raw, layout = reading.given.means.sizes.message, view.layout
    # What was dropped counts as it would be sent: a summary may still stand for it.
    sizes = [0] * layout.prefix_n + [
        raw(reading.shape(index, index < layout.micro_n).message)
        for index in range(layout.prefix_n, len(reading.history))
    ]
    cover = int(reading.limits.min_cover / max(reading.budget.ratio, 0.1))
    return CutQuestion(
        reading.history,
        reading.groups,
        frozenset(reading.kept),
        sizes,
        view.layout.prefix_n,
        reading.limits.tail,
        cover,
    )


def _job(reading: Reading, view: View, question: CutQuestion, cut: int) -> SummaryJob:
    given, limits, cache = reading.given, reading.limits, view.layout.cache
    means, start = given.means, view.layout.prefix_n
    cores = [split_summary(cache.summary)[0]] if cache is not None else []
    cores += [
        core_of(message, means.texts)
        for message in reading.history[start:cut]
        if is_stored_summary(message)
    ]
    core = "\n".join(cores)
    facts = means.facts.block(
        reading.history[:cut], reading.refs[:cut], limits.facts_max, _goal_at(reading, cut)
    )
    writer = ExcerptWriter(means.sizes, means.shaper, limits, means.texts)
    material = []
    for group in reading.groups:
        if start <= group.start < cut:
            span = range(group.start, group.end)
            found = tuple(excerpts(reading.history, reading.refs, span, question.sizes, writer))
            material += [found] if found else []
    ends = (group[-1].index + 1 for group in material)
    window = given.summariser_window
    return SummaryJob(
        start=start,
        cut=cut,
        notes=core,
        groups=tuple(material),
        max_tokens=limits.summary_max,
        facts=facts,
        safe_ends=safe_among(question, ends),
        room=room_for(
            window, core, limits.summary_max, means.sizes, means.texts, given.ratio, given.focus
        ),
        gap=means.texts.transcript_gap,
        focus=given.focus,
        key=f"{reading.hashes[start]}:{reading.hashes[cut]}",
    )


def _goal_at(reading: Reading, cut: int) -> int | None:
    at = first_user(reading.history)
    return at if at is not None and at < cut else None


def _done(stage: StageName, before: View, after: View, why: str) -> Stage:
    changed = sum(1 for _ in changed_indexes(before, after))
    return Stage(stage, "done", why, changed, after.tokens - before.tokens)
