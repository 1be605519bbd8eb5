"""A history as a value: which result belongs to which call, and what makes it whole."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from backscroll.kernel.message import Message, Outcome, Role, tool_result


@dataclass(frozen=True, slots=True)
class Pairing:
    """Which tool message answers which call.

    `answers` has, for each assistant message with calls, by its position, the position of each
    call's result, or None. `orphans` answer no call, `duplicates` one that has its result already.
    """

    answers: dict[int, tuple[int | None, ...]]
    orphans: frozenset[int]
    duplicates: frozenset[int]


def pair(history: Sequence[Message]) -> Pairing:
    """Give each call the first unused result between itself and the next call of the same id.

    The first call of an id may also take an earlier one.
    """
    askers: defaultdict[str, list[int]] = defaultdict(list)
    results: defaultdict[str | None, list[int]] = defaultdict(list)
    for at, message in enumerate(history):
        for call_id in {call.id for call in message.tool_calls}:
            askers[call_id].append(at)
        if message.role is Role.TOOL:
            results[message.tool_call_id].append(at)
    taken: dict[tuple[int, str], list[int]] = {}
    for call_id, places in askers.items():
        found = results.get(call_id, [])
        for place, following in pairwise([*places, len(history)]):
            between = slice(bisect_right(found, place), bisect_left(found, following))
            taken[place, call_id] = found[between]
        taken[places[0], call_id] += found[: bisect_left(found, places[0])]
    answers: dict[int, tuple[int | None, ...]] = {}
    for at, message in enumerate(history):
        if message.tool_calls:
            queues = {call.id: iter(taken[at, call.id]) for call in message.tool_calls}
            answers[at] = tuple(next(queues[call.id], None) for call in message.tool_calls)
    used = {at for row in answers.values() for at in row}
    unused = {at for places in results.values() for at in places} - used
    orphans = frozenset(at for at in unused if history[at].tool_call_id not in askers)
    return Pairing(answers, orphans, frozenset(unused - orphans))


def segments(history: Sequence[Message]) -> list[tuple[int, ...]]:
    """Return the history in pieces that belong together, each as its positions, in order.

    A piece is an assistant message with calls and the results of these calls, or one other message.
    """
    answers = pair(history).answers
    grouped = {at for row in answers.values() for at in row if at is not None}
    pieces: list[tuple[int, ...]] = []
    for at in range(len(history)):
        if at in answers:
            results = sorted(found for found in answers[at] if found is not None)
            pieces.append((at, *results))
        elif at not in grouped:
            pieces.append((at,))
    return pieces


def heal(history: Sequence[Message], text: str, outcome: Outcome = "cancelled") -> list[Message]:
    """Return the results that the last assistant message with calls still lacks, in call order.

    They have no id yet: whoever stores them gives them one. `text` may use `{name}`.
    """
    last = next((at for at in range(len(history) - 1, -1, -1) if history[at].tool_calls), None)
    if last is None:
        return []
    answers = pair(history).answers[last]
    return [
        tool_result(call.id, call.name, text.format(name=call.name), outcome=outcome)
        for call, answer in zip(history[last].tool_calls, answers, strict=True)
        if answer is None
    ]
