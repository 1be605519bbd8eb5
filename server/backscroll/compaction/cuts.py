"""Where a history may be cut: what lies before a safe cut can be summarised."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from backscroll.compaction.groups import Group
from backscroll.kernel.message import Message


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


def unsafe_because(question: CutQuestion, index: int) -> str | None:
    """Return why H may not be cut before this index, or None if the cut is safe."""
    raise NotImplementedError


def choose_cut(question: CutQuestion) -> CutChoice:
    """Return the safe cut that leaves about `tail` tokens behind it."""
    raise NotImplementedError
