"""A bounded memory of what a pure function gave, so that it is not worked out twice."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

V = TypeVar("V")


class Memo(Generic[V]):
    """Remembers the values of the keys used last, up to a limit."""

    def __init__(self, limit: int = 50_000) -> None:
        self._limit = limit
        self._values: OrderedDict[Hashable, V] = OrderedDict()

    def get(self, key: Hashable, make: Callable[[], V]) -> V:
        """Return the value of a key, made on first use."""
        values = self._values
        if key in values:
            values.move_to_end(key)
            return values[key]
        value = values[key] = make()
        if len(values) > self._limit:
            values.popitem(last=False)
        return value

    def __len__(self) -> int:
        """Count what is remembered."""
        return len(self._values)
