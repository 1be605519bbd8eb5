"""Single flight: of several that want the same work at once, one does it and all wait for it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from backscroll.kernel.ports import CancelToken

T = TypeVar("T")


@dataclass(slots=True)
class _Flight(Generic[T]):
    task: asyncio.Task[T]
    cancel: CancelToken
    waiters: int = 0


@dataclass(slots=True)
class Flights(Generic[T]):
    """The works in progress, one per key.

    A waiter that gives up does not end the work for the others; the last one to give up does.
    """

    _flights: dict[str, _Flight[T]] = field(default_factory=dict)

    def is_flying(self, key: str) -> bool:
        """Say whether somebody does the work of this key now."""
        return key in self._flights

    async def fly(
        self, key: str, work: Callable[[CancelToken], Coroutine[None, None, T]], cancel: CancelToken
    ) -> T:
        """Begin the work of a key, or join it; raises `cancelled` when our own token says so.

        The work gets a token of its own, cancelled when nobody waits any more.
        """
        flight = self._flights.get(key)
        if flight is None:
            token = CancelToken()
            flight = _Flight(asyncio.create_task(work(token)), token)
            self._flights[key] = flight
        flight.waiters += 1
        try:
            return await cancel.race(_joined(flight.task))
        finally:
            flight.waiters -= 1
            if not flight.waiters:
                if self._flights.get(key) is flight:
                    del self._flights[key]
                await _ended(flight)


async def _joined(task: asyncio.Task[T]) -> T:
    return await asyncio.shield(task)


async def _ended(flight: _Flight[T]) -> None:
    """End work that nobody waits for; it has cleaned up when this returns."""
    if flight.task.done():
        # Whoever still waited has seen its error.
        flight.task.cancelled() or flight.task.exception()
        return
    flight.cancel.cancel("nobody waits for it any more")
    flight.task.cancel()
    await asyncio.wait([flight.task])
