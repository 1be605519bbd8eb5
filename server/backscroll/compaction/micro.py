"""How messages are shortened: caps at first sight, and placeholders before the watermark."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from backscroll.compaction.fact_rules import RULES, FactRule
from backscroll.compaction.groups import Group
from backscroll.compaction.settings import Limits
from backscroll.compaction.texts import CompactionTexts
from backscroll.compaction.tokens import Sizes
from backscroll.kernel.message import Message
from backscroll.kernel.request import Fate


@dataclass(frozen=True, slots=True)
class Shape:
    """How one message of the history is sent: its message, its fate and the reason."""

    message: Message
    fate: Fate = "kept"
    why: str = ""


class Shaper:
    """Shortens messages; equal messages, references and limits give equal bytes, remembered."""

    def __init__(
        self,
        sizes: Sizes,
        texts: CompactionTexts,
        rules: Sequence[FactRule] = RULES,
        exclude: Collection[str] = frozenset(),
    ) -> None:
        raise NotImplementedError

    def capped(
        self,
        messages: Sequence[Message],
        refs: Sequence[int | None],
        limits: Limits,
    ) -> tuple[Shape, ...]:
        """Return the messages of one group with caps on its results and arguments (step 0)."""
        raise NotImplementedError

    def shortened(self, message: Message, ref: int | None, limits: Limits) -> Shape:
        """Return a message as it stands before the watermark; `kept` if nothing changed."""
        raise NotImplementedError

    def cut_text(
        self, text: str, ref: int | None, allowed: int, full_tokens: int | None = None
    ) -> str:
        """Return the text cut to about `allowed` tokens: 60 % head, marker, salient lines, tail."""
        raise NotImplementedError


def watermark(history: Sequence[Message], groups: Sequence[Group], keep: int) -> int:
    """Return the candidate: the start of the `keep`-th newest group with tool results."""
    raise NotImplementedError


def watermark_pays(before: int, after: int, limits: Limits) -> bool:
    """Say whether moving the watermark is worth the change; both numbers are estimates."""
    raise NotImplementedError
