"""What a summariser reads: the new part of a history as plain text, and the room it has.

One entry per text and per call, each with its head (`summariser.transcript_head`); an entry goes
on until the next head.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from backscroll.compaction.canon_forms import as_said, reference_text
from backscroll.compaction.facts import FactsBlock
from backscroll.compaction.micro import Shaper
from backscroll.compaction.passes import Excerpt, Pass, split
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
NOTES_ROOM = 1.2
MIN_ROOM = 64


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
