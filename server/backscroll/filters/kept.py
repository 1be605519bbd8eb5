"""What a filter keeps about conversations: in the process, bounded, and harmless to lose."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")

CONVERSATIONS = 1_000
"""Of how many conversations a filter keeps something; those not used for longest go first."""


class Kept(Generic[T]):
    """One thing per conversation, made when it is first asked for."""

    def __init__(self, make: Callable[[], T], limit: int = CONVERSATIONS) -> None:
        self._make, self._limit = make, limit
        self._kept: OrderedDict[str, T] = OrderedDict()

    def of(self, conversation_id: str | None) -> T:
        """Return what is kept of a conversation."""
        key = conversation_id or ""
        if key not in self._kept:
            self._kept[key] = self._make()
        self._kept.move_to_end(key)
        if len(self._kept) > self._limit:
            self._kept.popitem(last=False)
        return self._kept[key]

    def renew(self, conversation_id: str | None) -> T:
        """Return what is kept of a conversation after starting it anew."""
        self._kept.pop(conversation_id or "", None)
        return self.of(conversation_id)
