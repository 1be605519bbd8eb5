"""Where a history may be cut: what lies before a safe cut can be summarised."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate

from backscroll.compaction.canon_forms import SUMMARY_ORIGIN, is_made_up
from backscroll.compaction.groups import Group
from backscroll.kernel.message import Message, Role

MAX_REJECTED = 3


@dataclass(frozen=True, slots=True)
class RejectedCut:
    """A place that was considered, and why it was not taken."""

    index: int
    why: str


@dataclass(frozen=True, slots=True)
class CutChoice:
    """The chosen cut before H[index], or None when there is no safe place; up to three rejected.

    `tokens` is what the cut covers, neither kept nor synthetic, in the unit of the sizes given.
    """

    index: int | None
    why: str
    rejected: tuple[RejectedCut, ...] = ()
    tokens: int = 0


@dataclass(frozen=True, slots=True)
class CutQuestion:
    """What a cut is chosen from: sizes are those of the view, one per message of the history.

    `tail` and `min_cover` are in the unit of `sizes`.
    """

    history: Sequence[Message]
    groups: Sequence[Group]
    kept: Collection[int]
    sizes: Sequence[int]
    prefix_n: int
    tail: int
    min_cover: int


def safe_among(question: CutQuestion, indexes: Iterable[int]) -> frozenset[int]:
    """Return which of these places are safe."""
    judge = _Judge(question)
    return frozenset(index for index in indexes if judge.objection(index) is None)


def choose_cut(question: CutQuestion) -> CutChoice:
    """Return the safe cut that leaves about `tail` tokens behind it.

    It begins with the largest tail of whole groups that fits, and moves back from there.
    """
    judge = _Judge(question)
    rejected = _inside_a_group(question, judge)
    first = _tail_start(question)
    for index in reversed([start for start in judge.starts if start <= first]):
        why = judge.objection(index)
        if why is None:
            left = sum(question.sizes[index:])
            reason = f"leaves {left} tokens behind it, up to {question.tail} were wanted"
            return CutChoice(index, reason, tuple(rejected[:MAX_REJECTED]), judge.covered[index])
        rejected.append(RejectedCut(index, why))
        if judge.covered[index] < question.min_cover:
            break
    return CutChoice(None, "nothing to summarise", tuple(rejected[:MAX_REJECTED]))


class _Judge:
    """Says whether a place is safe; what it needs of the history is worked out once."""

    def __init__(self, question: CutQuestion) -> None:
        self._question = question
        self.starts = [group.start for group in question.groups]
        self.covered = _covered(question)
        self._first_open = next((g.start for g in question.groups if g.is_open), None)

    def objection(self, index: int) -> str | None:
        """Return why H may not be cut before this index, None if it may."""
        question = self._question
        if not question.prefix_n < index < len(question.history):
            return "nothing new before it" if index <= question.prefix_n else "nothing behind it"
        group = question.groups[bisect_right(self.starts, index) - 1]
        if index != group.start:
            return _together(question.history, group)
        if self._first_open is not None and self._first_open < index:
            return f"a call at {self._first_open} still waits for its result"
        if question.history[index].role is Role.TOOL:
            return "the rest would begin with a result"
        if self.covered[index] < question.min_cover:
            needed = question.min_cover
            return f"only {self.covered[index]} new tokens before it, {needed} are needed"
        return None


def _tail_start(question: CutQuestion) -> int:
    """Return where the largest run of whole groups begins that is no larger than the tail."""
    total, start = 0, question.groups[-1].start if question.groups else 0
    for group in reversed(question.groups):
        total += sum(question.sizes[group.start : group.end])
        if total > question.tail:
            break
        start = min(start, group.start)
    return start


def _inside_a_group(question: CutQuestion, judge: _Judge) -> list[RejectedCut]:
    """Return the place where the tail would be full, if it lies inside a group."""
    total, index = 0, len(question.history)
    while index > 0 and total + question.sizes[index - 1] <= question.tail:
        index -= 1
        total += question.sizes[index]
    if index == len(question.history) or index <= question.prefix_n or index in judge.starts:
        return []
    return [RejectedCut(index, judge.objection(index) or "")]


def _together(history: Sequence[Message], group: Group) -> str:
    calls = [call.id for i in range(group.start, group.end) for call in history[i].tool_calls]
    named = f"call {calls[0]}" if len(calls) == 1 else f"calls {', '.join(calls[:4])}"
    if not group.results:
        return f"{named} and the reasoning before it stay together"
    one = len(group.results) == len(calls) == 1
    return f"{named} and {'its result' if one else f'{len(group.results)} results'} stay together"


def _covered(question: CutQuestion) -> list[int]:
    """Return, for each index, the tokens of H[prefix_n:index] neither kept nor synthetic."""
    counts = (
        size if i >= question.prefix_n and i not in question.kept and not _synthetic(message) else 0
        for i, (message, size) in enumerate(zip(question.history, question.sizes, strict=True))
    )
    return list(accumulate(counts, initial=0))


def _synthetic(message: Message) -> bool:
    return is_made_up(message) or message.origin == SUMMARY_ORIGIN
