"""Passes: the material of a summary cut into requests that fit a summariser's window."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Sequence
from dataclasses import dataclass

MAX_PASSES = 8


@dataclass(frozen=True, slots=True)
class Excerpt:
    """What the transcript says of one message: in full, and with result bodies left out."""

    index: int
    text: str
    short: str
    tokens: int
    short_tokens: int
    source_tokens: int


@dataclass(frozen=True, slots=True)
class Pass:
    """One request to the summariser: its transcript, and where in the history it ends."""

    transcript: str
    end: int
    source_tokens: int


def split(
    groups: Sequence[Sequence[Excerpt]], room: int | None, gap: str, most: int = MAX_PASSES
) -> list[Pass]:
    """Return passes of whole groups: as they are, with short results, then with a gap."""
    if not groups:
        return []
    if room is None:
        return [_pass([excerpt for group in groups for excerpt in group])]
    fitted = [_fit_group(group, room) for group in groups]
    found = _greedy(fitted, room)
    if len(found) > most:
        fitted = [_fit_group(_shortened(group), room) for group in groups]
        found = _greedy(fitted, room)
    share = most
    while len(found) > most and share > 1:
        found = _greedy(_with_gap(fitted, share * room, gap), room)
        share -= 1
    return [_pass(batch) for batch in found]


def _fit_group(group: Sequence[Excerpt], room: int) -> list[Excerpt]:
    """Return a group that fits one pass: short results first, then every text cut."""
    if sum(excerpt.tokens for excerpt in group) <= room:
        return list(group)
    short = _shortened(group)
    total = sum(excerpt.tokens for excerpt in short)
    if total <= room:
        return short
    return [_squeezed(excerpt, room / total) for excerpt in short]


def _shortened(group: Sequence[Excerpt]) -> list[Excerpt]:
    return [
        dataclasses.replace(excerpt, text=excerpt.short, tokens=excerpt.short_tokens)
        for excerpt in group
    ]


def _squeezed(excerpt: Excerpt, share: float) -> Excerpt:
    """Return an excerpt with only the beginning and the end of its text."""
    # Counted in characters: a text is dense in one part and loose in another, so less is taken.
    size = int(len(excerpt.text) * share * 0.9)
    if size >= len(excerpt.text):
        return excerpt
    head, tail = int(size * 0.6), size - int(size * 0.6)
    text = f"{excerpt.text[:head]} […] {excerpt.text[len(excerpt.text) - tail :]}"
    return dataclasses.replace(excerpt, text=text, tokens=int(excerpt.tokens * share) + 1)


def _greedy(groups: Sequence[Sequence[Excerpt]], room: int) -> list[list[Excerpt]]:
    batches: list[list[Excerpt]] = []
    left = 0
    for group in groups:
        need = sum(excerpt.tokens for excerpt in group)
        if not batches or need > left:
            batches.append([])
            left = room
        batches[-1] += group
        left -= need
    return batches


def _with_gap(groups: Sequence[list[Excerpt]], total: int, gap: str) -> list[list[Excerpt]]:
    """Return first and last groups within a total; one line says how many messages are missing."""
    sizes = [sum(excerpt.tokens for excerpt in group) for group in groups]
    first, last, spent = 0, len(groups), 0
    while first < last:
        take_first = sum(sizes[:first]) <= sum(sizes[last:])
        at = first if take_first else last - 1
        if spent + sizes[at] > total:
            break
        spent += sizes[at]
        first, last = (first + 1, last) if take_first else (first, last - 1)
    if first == last:
        return list(groups)
    lost = [excerpt for group in groups[first:last] for excerpt in group]
    source = sum(excerpt.source_tokens for excerpt in lost)
    line = gap.format(count=len(lost))
    hole = Excerpt(lost[-1].index, line, line, len(line), len(line), source)
    return [*groups[:first], [hole], *groups[last:]]


def _pass(batch: Collection[Excerpt]) -> Pass:
    text = "\n".join(excerpt.text for excerpt in batch)
    end = max(excerpt.index for excerpt in batch) + 1
    return Pass(text, end, sum(excerpt.source_tokens for excerpt in batch))
