"""Delivery on one worker: a ring of recent entries per watched thread, and cursors that read it.

A reader is only a cursor. It takes entries from the ring, or, where the ring does not reach, from
the log. What is published without its predecessor starts the ring anew, so a hole is always read
from the log and never skipped.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Protocol

from backscroll.kernel.errors import StoreError
from backscroll.store.bells import Bells
from backscroll.store.connection import RedisClients
from backscroll.store.entry import Bell, Entry
from backscroll.store.keys import Keys, ThreadKey
from backscroll.store.thread_log import LogHead

logger = logging.getLogger(__name__)

RING_ENTRIES = 2048
RING_BYTES = 4 * 1024 * 1024
CHECK_S = 5.0


class ThreadDeleted(StoreError):
    """The thread a feed reads was deleted; what has its name now is another one."""


class LogReader(Protocol):
    """What the hub needs of the log."""

    async def read(self, thread: ThreadKey, after: int, limit: int = 1000) -> list[Entry]:
        """Return entries after a seq, oldest first."""
        ...

    async def head(self, thread: ThreadKey) -> LogHead:
        """Return the state of the log; `seq` is its newest entry."""
        ...


class Held:
    """An entry in delivery; each text form of it is written once and shared by all sockets."""

    __slots__ = ("_texts", "entry")

    def __init__(self, entry: Entry) -> None:
        self.entry = entry
        self._texts: dict[str, str] = {}

    @property
    def seq(self) -> int:
        """The entry's number."""
        return self.entry.seq

    def text(self, form: str, write: Callable[[Entry], str]) -> str:
        """Return the entry in a form, written by `write` the first time it is asked for."""
        found = self._texts.get(form)
        if found is None:
            found = self._texts[form] = write(self.entry)
        return found


class _Watched:
    """What a worker knows of one watched thread."""

    def __init__(self) -> None:
        self.watchers = 0
        self.life = 0
        self.epoch = ""
        self.head = 0
        self.ring: deque[Held] = deque()
        self.bytes = 0
        self.changed = asyncio.Event()
        self.stops: list[Callable[[str], None]] = []

    def take(self, bell: Bell) -> None:
        """Take in what was published."""
        if bell.stop:
            for listener in list(self.stops):
                listener(bell.stop)
        if not bell.stop and not bell.last:
            self.forget()
        if bell.last <= self.head:
            return
        if self.ring and bell.first != self.ring[-1].seq + 1:
            self._clear()
        for entry in bell.entries:
            self.ring.append(Held(entry))
            self.bytes += entry.bytes
        if not bell.entries:
            self._clear()
        while len(self.ring) > RING_ENTRIES or self.bytes > RING_BYTES:
            self.bytes -= self.ring.popleft().entry.bytes
        self.advance(bell.last)

    def advance(self, head: int) -> None:
        """Note that the log reaches this far, and wake the readers."""
        if head > self.head:
            self.head = head
            self.changed.set()
            self.changed = asyncio.Event()

    def forget(self) -> None:
        """Begin anew, since the thread was deleted, and wake the readers."""
        self._clear()
        self.life += 1
        self.head, self.epoch = 0, ""
        self.changed.set()
        self.changed = asyncio.Event()

    def compare(self, found: LogHead, heard: int) -> None:
        """Take in the head of the log; `heard` is how far it was known to reach before the read."""
        if heard and (not found.exists or self.epoch not in ("", found.epoch)):
            self.forget()
        self.epoch = found.epoch
        self.advance(found.seq)

    def after(self, cursor: int, limit: int) -> list[Held] | None:
        """Return what the ring holds after a cursor, or None if it does not reach back so far."""
        if not self.ring or self.ring[0].seq > cursor + 1 or self.ring[-1].seq <= cursor:
            return None
        start = cursor + 1 - self.ring[0].seq
        return [self.ring[n] for n in range(start, min(start + limit, len(self.ring)))]

    def _clear(self) -> None:
        self.ring.clear()
        self.bytes = 0


class Feed:
    """One reader's way into one thread; it has a cursor of its own and no queue."""

    def __init__(self, thread: ThreadKey, watched: _Watched, log: LogReader) -> None:
        self.thread = thread
        self._watched, self._log = watched, log
        self._life = watched.life

    @property
    def head(self) -> int:
        """The newest seq this worker has heard of."""
        return self._watched.head

    async def after(self, cursor: int, limit: int = 200) -> list[Held]:
        """Return entries after the cursor, in order and without holes; waits until there is one.

        Raises ThreadDeleted.
        """
        while True:
            changed = self._watched.changed
            self._check_life()
            if self._watched.head > cursor:
                held = self._watched.after(cursor, limit)
                if held is None:
                    found = await self._log.read(self.thread, cursor, limit)
                    self._check_life()
                    held = [Held(entry) for entry in found]
                if held:
                    return held
            await changed.wait()

    def _check_life(self) -> None:
        if self._watched.life != self._life:
            raise ThreadDeleted(f"thread {self.thread.thread_id!r} was deleted")

    def on_stop(self, listener: Callable[[str], None]) -> Callable[[], None]:
        """Call back with the run id when a stop is asked for; returns what ends that."""
        self._watched.stops.append(listener)
        return lambda: self._watched.stops.remove(listener)


class Hub:
    """All watched threads of a worker, over one subscription; `run` keeps it going."""

    def __init__(self, clients: RedisClients, keys: Keys, log: LogReader) -> None:
        self._log = log
        self._watched: dict[ThreadKey, _Watched] = {}
        self._stale: set[ThreadKey] = set()
        self._check = asyncio.Event()
        self._bells = Bells(clients, keys, self._on_bell, self._on_ready)

    @property
    def subscribed(self) -> bool:
        """Say whether this worker hears what is appended."""
        return self._bells.connected

    async def wait_subscribed(self, within_s: float) -> None:
        """Return once this worker hears what is appended, or when the time is up."""
        try:
            async with asyncio.timeout(within_s):
                await self._bells.wait_connected()
        except TimeoutError:
            logger.warning("the subscription is not up after %s s; going on without it", within_s)

    async def run(self) -> None:
        """Listen, and compare with the log after each reconnect and every few seconds."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._bells.run())
            group.create_task(self._compare())

    @asynccontextmanager
    async def watch(self, thread: ThreadKey) -> AsyncIterator[Feed]:
        """Watch a thread for as long as the block lasts; entries from now on are heard."""
        watched = self._watched.setdefault(thread, _Watched())
        watched.watchers += 1
        try:
            await self._bells.subscribe(thread)
            await self._compare_one(thread, watched)
            yield Feed(thread, watched, self._log)
        finally:
            watched.watchers -= 1
            if not watched.watchers and self._watched.get(thread) is watched:
                del self._watched[thread]
                await self._bells.unsubscribe(thread)

    def _on_bell(self, thread: ThreadKey, bell: Bell) -> None:
        watched = self._watched.get(thread)
        if watched is not None:
            watched.take(bell)

    def _on_ready(self, thread: ThreadKey) -> None:
        self._stale.add(thread)
        self._check.set()

    async def _compare(self) -> None:
        """Find what was published while nobody listened."""
        while True:
            try:
                async with asyncio.timeout(CHECK_S):
                    await self._check.wait()
            except TimeoutError:
                self._stale.update(self._watched)
            self._check.clear()
            stale, self._stale = self._stale, set()
            for thread in stale & self._watched.keys():
                watched = self._watched.get(thread)
                if watched is None:
                    continue
                try:
                    await self._compare_one(thread, watched)
                except StoreError:
                    self._stale.add(thread)

    async def _compare_one(self, thread: ThreadKey, watched: _Watched) -> None:
        heard = watched.head
        watched.compare(await self._log.head(thread), heard)
