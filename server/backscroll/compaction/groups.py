"""Groups of messages that nothing separates, and what of a history is always sent."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from backscroll.kernel.message import Message


@dataclass(frozen=True, slots=True)
class Group:
    """A run of messages, H[start:end], that stands or falls together.

    `is_open` says that one of its calls still waits for its result; `results` are the indexes of
    the tool messages in it.
    """

    start: int
    end: int
    is_open: bool = False
    results: tuple[int, ...] = ()


def find_groups(
    history: Sequence[Message], pending: Collection[str] = frozenset()
) -> tuple[Group, ...]:
    """Partition a history into groups; `pending` are the ids of calls that wait for answers."""
    raise NotImplementedError


def always_kept(
    history: Sequence[Message], groups: Sequence[Group], pinned: Collection[str] = frozenset()
) -> Mapping[int, str]:
    """Return the indexes of what is always sent, each with the reason; `pinned` are message ids."""
    raise NotImplementedError
