"""A bounded memory of what a pure function gave, so that it is not worked out twice."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any, Generic, TypeVar

V = TypeVar("V")


class ObjectMemo(Generic[V]):
    """Remembers one value for each of many objects that never change; starts anew when full."""

    def __init__(self, make: Callable[[Any], V], limit: int = 8_192) -> None:
        self._make, self._limit = make, limit
        # The object is kept beside its value: an id alone could be used again by another one.
        self._values: dict[int, tuple[Any, V]] = {}

    def get(self, subject: Any) -> V:
        """Return the value of an object, made on first use."""
        found = self._values.get(id(subject))
        if found is not None:
            return found[1]
        if len(self._values) >= self._limit:
            self._values.clear()
        value = self._make(subject)
        self._values[id(subject)] = (subject, value)
        return value


class Memo(Generic[V]):
    """Remembers the values of the keys used last, up to a limit; threads may share it."""

    def __init__(self, limit: int = 50_000) -> None:
        self._limit = limit
        self._values: OrderedDict[Hashable, V] = OrderedDict()

    def get(self, key: Hashable, make: Callable[[], V]) -> V:
        """Return the value of a key, made on first use."""
        values = self._values
        try:
            values.move_to_end(key)
            return values[key]
        except KeyError:
            pass
        value = values[key] = make()
        if len(values) > self._limit:
            values.popitem(last=False)
        return value

    def __len__(self) -> int:
        """Count what is remembered."""
        return len(self._values)
