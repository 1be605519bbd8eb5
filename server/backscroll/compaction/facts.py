"""The facts block: what rules find in messages, within fixed shares, without any model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from backscroll.compaction.fact_rules import FactClass
from backscroll.kernel.message import Message


@dataclass(frozen=True, slots=True)
class FactLine:
    """One printed line, the rule that found it, and the reference of its message."""

    text: str
    rule: str
    cls: FactClass
    ref: int | None


@dataclass(frozen=True, slots=True)
class FactsBlock:
    """The facts of a span: the text, its lines, and how many were kept and left out per class.

    `covered` holds the bare texts in it, for an ExtractiveSummariser.
    """

    text: str
    lines: tuple[FactLine, ...] = ()
    kept: Mapping[FactClass, int] | None = None
    left_out: Mapping[FactClass, int] | None = None
    tokens: int = 0
    covered: frozenset[str] = frozenset()


class FactReader:
    """Reads facts out of messages and writes facts blocks; what a message gave is remembered."""

    def block(
        self,
        messages: Sequence[Message],
        refs: Sequence[int | None],
        max_tokens: int,
    ) -> FactsBlock:
        """Return the facts of a span; `messages` is H[:n] or a part of it, with its references."""
        raise NotImplementedError
