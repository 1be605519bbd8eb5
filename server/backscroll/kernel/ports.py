"""What the pure core takes from outside: time, ids, and the wish to stop."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Callable, Coroutine
from typing import Any, Protocol, TypeVar

from backscroll.kernel.errors import ModelError

T = TypeVar("T")

_ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZabcdefghijkmnopqrstuvwxyz"


class Clock(Protocol):
    """Time as the loop and the filters see it."""

    def now(self) -> float:
        """Return seconds since 1970."""
        ...

    def monotonic(self) -> float:
        """Return seconds that never go back, for durations."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Wait that long."""
        ...


class SystemClock:
    """The real clock."""

    def now(self) -> float:
        """Return seconds since 1970."""
        return time.time()

    def monotonic(self) -> float:
        """Return seconds that never go back."""
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        """Wait that long."""
        await asyncio.sleep(seconds)


class Ids(Protocol):
    """Where new ids come from."""

    def new(self, prefix: str) -> str:
        """Return an id that was never given out before, `<prefix>_<tail>`."""
        ...


class RandomIds:
    """Ids with a random tail of 96 bits or more."""

    def new(self, prefix: str) -> str:
        """Return `<prefix>_` and 17 random letters and digits."""
        return f"{prefix}_" + "".join(secrets.choice(_ALPHABET) for _ in range(17))


class CancelToken:
    """The wish that a turn stops; it is set once and can be waited for."""

    def __init__(self) -> None:
        self._reason: str | None = None
        self._callbacks: dict[int, Callable[[], None]] = {}
        self._next = 0

    @property
    def cancelled(self) -> bool:
        """Say whether the wish was uttered."""
        return self._reason is not None

    @property
    def reason(self) -> str | None:
        """The reason given, if cancelled."""
        return self._reason

    def cancel(self, reason: str = "cancelled") -> None:
        """Utter the wish; a second time changes nothing. Call it on the loop's thread."""
        if self._reason is not None:
            return
        self._reason = reason
        for callback in list(self._callbacks.values()):
            callback()
        self._callbacks.clear()

    def on_cancel(self, callback: Callable[[], None]) -> Callable[[], None]:
        """Call back once on cancel (now, if it happened); returns what takes the callback off."""
        if self._reason is not None:
            callback()
            return lambda: None
        key, self._next = self._next, self._next + 1
        self._callbacks[key] = callback

        def remove() -> None:
            self._callbacks.pop(key, None)

        return remove

    async def race(self, work: Coroutine[Any, Any, T]) -> T:
        """Return what the work returns, or end it and raise `cancelled` when the wish comes first.

        The work is ended by cancelling its task and has finished cleaning up when this raises.
        """
        if self.cancelled:
            work.close()
            raise ModelError("cancelled", self._reason or "cancelled")
        task = asyncio.ensure_future(work)
        remove = self.on_cancel(lambda: _end(task))
        try:
            return await _own(task)
        except asyncio.CancelledError:
            current = asyncio.current_task()
            if self.cancelled and not (current and current.cancelling()):
                raise ModelError("cancelled", self._reason or "cancelled") from None
            raise
        finally:
            remove()


def _end(task: asyncio.Future[Any]) -> None:
    task.cancel()


async def _own(task: asyncio.Future[T]) -> T:
    """Await a task of ours; when we are cancelled, it is cancelled and awaited too."""
    try:
        return await task
    except asyncio.CancelledError:
        if not task.done():
            task.cancel()
            await asyncio.wait([task])
        raise
