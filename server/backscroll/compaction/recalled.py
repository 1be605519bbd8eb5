"""Recalled text: one line in the history, and the text itself only in the view."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from backscroll.compaction.canon_forms import SUMMARY_ORIGIN
from backscroll.compaction.summariser import LineKind, transcript_head
from backscroll.compaction.tags import escape_tags
from backscroll.compaction.texts import CompactionTexts
from backscroll.kernel.content import text_of
from backscroll.kernel.message import Message, Role

RECALL = "recall"
"""The name of the tool."""

_PIECE = re.compile(r"^(\d{1,9})-(\d{1,9}) (.+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Piece:
    """A range of characters of one message's whole text."""

    message_id: str
    start: int
    end: int

    def __str__(self) -> str:
        """Write it as the history keeps it."""
        return f"{self.start}-{self.end} {self.message_id}"


def whole_text(message: Message, ref: int | None) -> str:
    """Return a message as it is stored, with role, reference and calls."""
    text = text_of(message.content)
    if message.role is Role.TOOL:
        return transcript_head(ref, "tool", message.name) + text
    kind: LineKind = "user" if message.role is Role.USER else "assistant"
    lines = [transcript_head(ref, kind) + text] if text else []
    lines += [transcript_head(ref, "call", c.name) + c.args_text for c in message.tool_calls]
    return "\n".join(lines)


def is_recallable(message: Message) -> bool:
    """Say whether a message can be looked up: not system texts, not what was looked up."""
    return (
        message.role is not Role.SYSTEM
        and message.origin != SUMMARY_ORIGIN
        and message.name != RECALL
    )


def recall_line(
    what: str, part: int, parts: int, pieces: Iterable[Piece], texts: CompactionTexts
) -> str:
    """Return what the history keeps of a look-up that found something."""
    head = texts.fill("recall_line", what=what, part=part, parts=parts)
    return "\n".join([head, *map(str, pieces)])


def pieces_of(message: Message) -> tuple[Piece, ...]:
    """Return what a result of the tool names; nothing for misses and for other messages."""
    if message.role is not Role.TOOL or message.name != RECALL or message.failed:
        return ()
    return pieces_in(text_of(message.content))


def pieces_in(text: str) -> tuple[Piece, ...]:
    """Return the pieces that a line names; nothing for a sentence that says there are none."""
    found = _PIECE.findall(text)
    return tuple(Piece(name, int(start), int(end)) for start, end, name in found)


def recalled_message(
    pieces: Sequence[Piece],
    places: Mapping[str, int],
    history: Sequence[Message],
    refs: Sequence[int | None],
    texts: CompactionTexts,
) -> Message | None:
    """Return the message a view puts behind the results: the text in its frame, as data.

    `places` is the index of each message id in the history; what is not there is left out.
    """
    bodies = []
    for piece in pieces:
        index = places.get(piece.message_id)
        if index is not None and is_recallable(history[index]):
            bodies.append(whole_text(history[index], refs[index])[piece.start : piece.end])
    if not bodies:
        return None
    body = escape_tags("\n[…]\n".join(bodies))
    return Message(Role.USER, texts.fill("recall_frame", body=body), origin=SUMMARY_ORIGIN)
