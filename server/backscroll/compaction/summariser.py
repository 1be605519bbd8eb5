"""What a summariser is given, what it gives back, and how a transcript names its lines."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Literal, Protocol

from backscroll.compaction.canon_forms import reference_text
from backscroll.kernel.ports import CancelToken
from backscroll.kernel.usage import FinishReason, Usage

LineKind = Literal["user", "assistant", "call", "tool"]

TRANSCRIPT_HEAD = re.compile(
    r"^\[#(?P<ref>\d+|-) (?P<kind>user|assistant|call|tool)(?: (?P<name>[^\]\n]*))?\] ",
    re.MULTILINE,
)
"""What each entry of a transcript begins with, as `transcript_head` writes it."""


@dataclass(frozen=True, slots=True)
class SummaryPart:
    """One pass over a span: the notes so far, the transcript as text, and the limits.

    `covered` holds lines that stand in the facts block beside the summary.
    """

    notes: str
    transcript: str
    max_tokens: int
    focus: str = ""
    covered: frozenset[str] = frozenset()
    cancel: CancelToken = field(default_factory=CancelToken)


@dataclass(frozen=True, slots=True)
class SummaryDraft:
    """What a summariser answered, before anything was checked."""

    text: str
    finish_reason: FinishReason | None = None
    usage: Usage | None = None
    model: str | None = None
    has_calls: bool = False
    refused: bool = False
    provider: str | None = None


class Summariser(Protocol):
    """Writes new notes from old notes and a piece of transcript.

    `kind` is shown to operators; `window_tokens` is what one request may hold, None for anything.
    """

    @property
    def kind(self) -> str:
        """How the summary is made: `model`, `extractive`, or a word of your own."""
        ...

    @property
    def window_tokens(self) -> int | None:
        """What one request may hold; None for anything."""
        ...

    async def summarise(self, part: SummaryPart) -> SummaryDraft:
        """Return the new notes."""
        ...


def transcript_head(ref: int | None, kind: LineKind, name: str | None = None) -> str:
    """Return what a transcript entry begins with: `[#118 tool read_file] `.

    A call of an assistant message is an entry of its own: `[#117 call read_file] {…}`.
    """
    tail = f" {name}" if name else ""
    return f"[#{reference_text(ref)} {kind}{tail}] ".replace("\n", " ")
