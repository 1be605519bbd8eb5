"""What a summariser reads: the new part of a history as plain text, in passes that fit its window.

One entry per text and per call, each with its head (`summariser.transcript_head`); an entry goes
on until the next head.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from backscroll.compaction.canon_forms import as_said, reference_text
from backscroll.compaction.facts import FactsBlock
from backscroll.compaction.micro import Shaper
from backscroll.compaction.settings import Limits
from backscroll.compaction.shorten import take_ends
from backscroll.compaction.stored_summary import is_stored_summary
from backscroll.compaction.summarise import OUTPUT_ROOM, prompt_texts
from backscroll.compaction.summariser import LineKind, transcript_head
from backscroll.compaction.tags import escape_tags
from backscroll.compaction.texts import CompactionTexts
from backscroll.compaction.tokens import Sizes
from backscroll.kernel.content import FilePart, text_of
from backscroll.kernel.message import Message, Role

RESULT_TOKENS = 240
ARGS_TOKENS = 120
MOST_A_CHAR = 3
MAX_PASSES = 8
NOTES_ROOM = 1.2
MIN_ROOM = 64


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


@dataclass(frozen=True, slots=True)
class SummaryJob:
    """A summary to be made: the core it extends, the material by groups, and the limits.

    `room` is what a transcript may take in one request, in raw tokens; None: anything.
    """

    start: int
    cut: int
    notes: str
    groups: tuple[tuple[Excerpt, ...], ...]
    max_tokens: int
    facts: FactsBlock
    safe_ends: frozenset[int]
    room: int | None = None
    gap: str = ""
    focus: str = ""
    key: str = ""

    def passes(self, after: int = -1, room: int | None = None) -> tuple[Pass, ...]:
        """Return the passes over what ends behind `after`, with less room if that is given."""
        left = [group for group in self.groups if group[-1].index + 1 > after]
        return tuple(split(left, room or self.room, self.gap))


@dataclass(frozen=True, slots=True)
class ExcerptWriter:
    """Writes what the transcript says of a message."""

    sizes: Sizes
    shaper: Shaper
    limits: Limits
    texts: CompactionTexts

    def texts_of(self, message: Message, ref: int | None) -> tuple[str, str]:
        """Return the excerpt of a message: with its result in part, and with salient lines only."""
        if message.role is Role.TOOL:
            head = transcript_head(ref, "tool", message.name)
            full = self.shaper.cut(message, ref, RESULT_TOKENS).message
            short = self.shaper.shortened(message, ref, self.limits).message
            return head + self._said(full, ref), head + self._said(short, ref)
        said = self._said(as_said(message), ref)
        kind: LineKind = "user" if message.role is Role.USER else "assistant"
        lines = [transcript_head(ref, kind) + said] if said else []
        lines += [
            transcript_head(ref, "call", call.name) + self._args(call.args_text)
            for call in message.tool_calls
        ]
        text = "\n".join(lines)
        return text, text

    def _said(self, message: Message, ref: int | None) -> str:
        content = message.for_model()
        text = text_of(content)
        if isinstance(content, tuple):
            files = [part for part in content if isinstance(part, FilePart)]
            stubs = [
                self.texts.fill("media_stub", media_type=part.media_type, ref=reference_text(ref))
                for part in files
            ]
            text = " ".join([text, *stubs]).strip()
        return escape_tags(text)

    def _args(self, text: str) -> str:
        # Most arguments are so short that nothing needs to be counted.
        if len(text) * MOST_A_CHAR <= ARGS_TOKENS:
            return escape_tags(text)
        ends = take_ends(text, ARGS_TOKENS, self.sizes.counter)
        return escape_tags(f"{ends.head} […] {ends.tail}" if ends.middle else text)


def excerpts(
    history: Sequence[Message],
    refs: Sequence[int | None],
    span: range,
    source: Sequence[int],
    writer: ExcerptWriter,
) -> Iterator[Excerpt]:
    """Yield what the transcript says of each message of a span, but system messages.

    A stored summary is not in it either: its core is part of the notes.

    `source` has the raw tokens of each message of the history as a view would send it.
    """
    for index in span:
        message = history[index]
        if message.role is Role.SYSTEM or is_stored_summary(message):
            continue
        full, short = writer.texts_of(message, refs[index])
        count = writer.sizes.text(full)
        fewer = count if short == full else writer.sizes.text(short)
        yield Excerpt(index, full, short, count, fewer, source[index])


def room_for(
    window: int | None,
    notes: str,
    max_tokens: int,
    sizes: Sizes,
    texts: CompactionTexts,
    ratio: float = 1.0,
    focus: str = "",
) -> int | None:
    """Return what a transcript may take of a summariser's window, in raw tokens."""
    if window is None:
        return None
    fixed = sum(sizes.system(text) for text in prompt_texts(texts, focus))
    held = max(sizes.text(notes), int(NOTES_ROOM * max_tokens))
    safety = max(256, window // 50)
    free = (window - math.ceil(OUTPUT_ROOM * max_tokens) - safety) / max(ratio, 0.1)
    return max(int(free) - fixed - held, MIN_ROOM)


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
