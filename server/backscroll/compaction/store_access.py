"""Any compaction store with every capability: what it lacks, or loses, is kept in the process."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar, cast

from backscroll.compaction.store import (
    EMPTY,
    LRU,
    RING,
    Cache,
    CompactionEntry,
    CompactionStore,
    Marks,
    with_ring,
)
from backscroll.kernel.errors import Never
from backscroll.kernel.ports import Clock

T = TypeVar("T")

LEASE_POLL_S = 0.1


@dataclass(slots=True)
class Held:
    """What the process keeps beside its stores, per conversation.

    `entries` could not be stored, `known` were read or written last, `opened` is when the
    summariser failed last.
    """

    entries: OrderedDict[str, CompactionEntry] = field(default_factory=OrderedDict)
    known: OrderedDict[str, CompactionEntry] = field(default_factory=OrderedDict)
    opened: OrderedDict[str, int] = field(default_factory=OrderedDict)


class StoreAccess:
    """A store as compaction uses it; a call that fails is answered from the process.

    `failed` counts the calls that failed, so that the filter can tell once per turn. `held` may be
    shared by several.
    """

    def __init__(
        self, store: CompactionStore, clock: Clock, held: Held | None = None, ring: int = RING
    ) -> None:
        self.store = store
        self._clock, self._ring = clock, ring
        held = held or Held()
        self._held, self._known, self._opened = held.entries, held.known, held.opened
        self.failed = 0

    async def get(self, conversation_id: str) -> CompactionEntry:
        """Return the entry; what could not be stored earlier is part of it."""
        held = self._held.get(conversation_id)
        stored = await self._try(lambda: self.store.get(conversation_id))
        if stored is None:
            return held or self._known.get(conversation_id, EMPTY)
        self._hold(self._known, conversation_id, stored)
        if held is not None:
            stored = joined(held, stored, lambda cache: True, self._ring) or stored
        return self._with_opened(conversation_id, stored)

    async def swap(
        self, conversation_id: str, entry: CompactionEntry, generation: int | None
    ) -> bool:
        """Write over that generation; False if somebody else wrote since."""
        swap = getattr(self.store, "swap", None)
        if swap is None:
            done = await self._try(lambda: self._put(conversation_id, entry))
        else:
            done = await self._try(
                lambda: cast("Awaitable[bool]", swap(conversation_id, entry, generation))
            )
        if done is None:
            self._hold(self._held, conversation_id, entry)
            return True
        if done:
            self._held.pop(conversation_id, None)
            self._hold(self._known, conversation_id, entry)
        return done

    def is_behind(self, conversation_id: str) -> bool:
        """Say whether the store lacks what could not be written to it."""
        return conversation_id in self._held

    def let_go(self, conversation_id: str) -> None:
        """Forget what the process keeps beside the store."""
        for kept in (self._held, self._known, self._opened):
            kept.pop(conversation_id, None)

    async def clear(self, conversation_id: str) -> None:
        """Forget the entry; a store without `clear` gets the empty one."""
        self.let_go(conversation_id)
        clear = getattr(self.store, "clear", None)
        if clear is None:
            await self._try(lambda: self._put(conversation_id, EMPTY))
        else:
            await self._try(lambda: cast("Awaitable[Any]", clear(conversation_id)))

    async def count_failure(self, conversation_id: str) -> int:
        """Add one failure of the summariser; returns the new count."""
        self._hold(self._opened, conversation_id, int(self._clock.now() * 1000))
        count = getattr(self.store, "count_failure", None)
        if count is not None:
            found = await self._try(lambda: cast("Awaitable[int]", count(conversation_id)))
            if found is not None:
                return found
        entry = await self.get(conversation_id)
        entry = entry.replace(failures=entry.failures + 1, opened_ms=self._opened[conversation_id])
        await self.swap(conversation_id, entry, entry.generation)
        return entry.failures

    async def take_lease(self, conversation_id: str, token: str, ttl_s: float) -> bool:
        """Claim the right to summarise; a store without leases gives it to everyone."""
        take = getattr(self.store, "take_lease", None)
        if take is None:
            return True
        taken = await self._try(
            lambda: cast("Awaitable[bool]", take(conversation_id, token, ttl_s))
        )
        return taken is not False

    async def drop_lease(self, conversation_id: str, token: str) -> None:
        """Give the claim back."""
        drop = getattr(self.store, "drop_lease", None)
        if drop is not None:
            await self._try(lambda: cast("Awaitable[Any]", drop(conversation_id, token)))

    async def await_turn(
        self,
        conversation_id: str,
        known: CompactionEntry,
        deadline: float,
        take: Callable[[], Awaitable[bool]],
    ) -> CompactionEntry | None:
        """Return the entry once another summary or failure is in it, else as it is in the end.

        None when the claim is ours: whoever had it gave it back and left nothing.
        """
        entry = await self.get(conversation_id)
        while _outcome(entry) == _outcome(known):
            if self._clock.monotonic() >= deadline:
                break
            if await take():
                return None
            await asyncio.sleep(LEASE_POLL_S)
            entry = await self.get(conversation_id)
        return entry

    async def _put(self, conversation_id: str, entry: CompactionEntry) -> bool:
        await self.store.put(conversation_id, entry)
        return True

    async def _try(self, work: Callable[[], Awaitable[T]]) -> T | None:
        """Return what the store answers, None when it fails; a lost lease comes out."""
        try:
            return await work()
        except Never.CONTAINED:
            raise
        except Exception:
            self.failed += 1
            return None

    def _with_opened(self, conversation_id: str, entry: CompactionEntry) -> CompactionEntry:
        """Fill in when the last failure was, for stores that do not keep it."""
        if entry.opened_ms is not None or not entry.failures:
            return entry
        return entry.replace(opened_ms=self._opened.get(conversation_id))

    def _hold(self, where: OrderedDict[str, T], conversation_id: str, value: T) -> None:
        where[conversation_id] = value
        where.move_to_end(conversation_id)
        while len(where) > LRU:
            where.popitem(last=False)


def _outcome(entry: CompactionEntry) -> tuple[object, ...]:
    """Return what changes when somebody has made a summary, or failed to."""
    return (entry.cache, entry.ring, entry.failures)


def joined(
    ours: CompactionEntry,
    theirs: CompactionEntry,
    is_valid: Callable[[Cache], bool],
    ring: int = RING,
) -> CompactionEntry | None:
    """Return what to write over an entry that somebody else wrote; None: theirs may stay.

    Of two summaries of one history the longer one wins; one of another branch goes to the ring,
    which holds at most so many.
    """
    merged = theirs
    for cache in reversed(ours.ring):
        if cache not in merged.ring and cache != merged.cache:
            merged = with_ring(merged, cache, ring)
    mine = ours.cache
    if mine is not None and mine != theirs.cache:
        if theirs.cache is None:
            merged = merged.replace(cache=mine)
        elif not is_valid(theirs.cache):
            merged = with_ring(merged, mine, ring)
        elif theirs.cache.prefix_n < mine.prefix_n:
            merged = with_ring(merged, theirs.cache, ring).replace(cache=mine)
    merged = merged.replace(marks=_later(ours.marks, theirs.marks))
    return None if merged == theirs else merged


def _later(ours: Marks | None, theirs: Marks | None) -> Marks | None:
    if ours is None or theirs is None:
        return ours or theirs
    return ours if ours.at_n >= theirs.at_n else theirs
