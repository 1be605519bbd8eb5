"""What compaction keeps between calls, and where: a cache that is valid because its hash matches.

A store that knows only `cache` and `failures` of an entry, and no optional method, is a full
citizen: `store_access` offers the rest over it. What it loses costs calls, never correctness.
"""

from __future__ import annotations

import dataclasses
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from backscroll.compaction.settings import Settings
from backscroll.kernel.ports import Clock, SystemClock

RING = 4
LRU = 1_000


@dataclass(frozen=True, slots=True)
class Cache:
    """A summary that stands for the first `prefix_n` messages of a history with this hash."""

    prefix_n: int
    prefix_hash: str
    summary: str
    made: Mapping[str, Any] = field(default_factory=dict)  # who, when, how; never needed to use it

    @property
    def ready(self) -> bool:
        """Say whether it was made ahead of need and is not in use yet."""
        return bool(self.made.get("ready"))

    @property
    def chosen(self) -> bool:
        """Say whether an operator wants it used, also where less would do."""
        return bool(self.made.get("chosen"))


@dataclass(frozen=True, slots=True)
class Marks:
    """How far a history is shortened and dropped; valid while its hash at `at_n` matches."""

    micro_n: int
    drop_n: int
    at_n: int
    at_hash: str


@dataclass(frozen=True, slots=True)
class CompactionEntry:
    """What is kept for one conversation; all but `cache` and `failures` may be lost."""

    cache: Cache | None = None
    failures: int = 0
    marks: Marks | None = None
    ring: tuple[Cache, ...] = ()
    opened_ms: int | None = None
    generation: int | None = None

    def replace(self, **changes: Any) -> CompactionEntry:
        """Return a copy with some fields changed."""
        return dataclasses.replace(self, **changes)

    def paused_until_ms(self, settings: Settings) -> int | None:
        """Return when the pause after failures ends or ended; None where none began."""
        if self.failures < max(settings.failures_open, 1) or self.opened_ms is None:
            return None
        return self.opened_ms + round(settings.cooldown * 1000)


EMPTY = CompactionEntry()


class CompactionStore(Protocol):
    """Keeps one entry per conversation.

    Optional methods, detected: `swap(id, entry, generation) -> bool` writes only over that
    generation; `count_failure(id) -> int` adds one and sets `opened_ms`, as one step that makes a
    new generation; `take_lease(id, token, ttl_s) -> bool` and `drop_lease(id, token)`.
    """

    async def get(self, conversation_id: str) -> CompactionEntry:
        """Return the entry; the empty one for an unknown conversation or a corrupt value."""
        ...

    async def put(self, conversation_id: str, entry: CompactionEntry) -> None:
        """Replace the entry; its generation is ignored."""
        ...

    async def clear(self, conversation_id: str) -> None:
        """Forget the entry."""
        ...


@dataclass(frozen=True, slots=True)
class ModelFact:
    """What was learned about one model: the calibration ratio, and a limit it stated."""

    r: float = 1.0
    samples: int = 0
    limit: int | None = None
    limit_at: float | None = None
    configured: int | None = None

    def replace(self, **changes: Any) -> ModelFact:
        """Return a copy with some fields changed."""
        return dataclasses.replace(self, **changes)


class ModelFacts(Protocol):
    """Keeps what was learned, per provider, endpoint and model; losing it costs accuracy only."""

    async def get(self, key: str) -> ModelFact:
        """Return what is known of that model, or the defaults."""
        ...

    async def put(self, key: str, fact: ModelFact) -> None:
        """Replace what is known."""
        ...


class PinStore(Protocol):
    """Keeps which messages of a conversation are pinned, by message id."""

    async def pins(self, conversation_id: str) -> frozenset[str]:
        """Return the ids of the pinned messages."""
        ...

    async def pin(self, conversation_id: str, message_id: str) -> None:
        """Pin a message."""
        ...

    async def unpin(self, conversation_id: str, message_id: str) -> None:
        """Take a pin off."""
        ...


class InMemoryCompactionStore:
    """Entries in the process, the least recently used ones forgotten; has every capability."""

    def __init__(self, limit: int = LRU, clock: Clock | None = None) -> None:
        self._limit, self._clock = limit, clock or SystemClock()
        self._entries: OrderedDict[str, CompactionEntry] = OrderedDict()
        self._leases: dict[str, tuple[str, float]] = {}

    async def get(self, conversation_id: str) -> CompactionEntry:
        """Return the entry, and count it as used."""
        if conversation_id in self._entries:
            self._entries.move_to_end(conversation_id)
        return self._entries.get(conversation_id, CompactionEntry(generation=0))

    async def put(self, conversation_id: str, entry: CompactionEntry) -> None:
        """Replace the entry."""
        self._write(conversation_id, entry)

    async def clear(self, conversation_id: str) -> None:
        """Forget the entry."""
        if conversation_id in self._entries:
            self._write(conversation_id, EMPTY)

    async def swap(
        self, conversation_id: str, entry: CompactionEntry, generation: int | None
    ) -> bool:
        """Write only if nobody wrote since that generation was read."""
        if (generation or 0) != self._generation(conversation_id):
            return False
        self._write(conversation_id, entry)
        return True

    async def count_failure(self, conversation_id: str) -> int:
        """Add one failure of the summariser and say when; returns the new count."""
        entry = self._entries.get(conversation_id, EMPTY)
        failures, now_ms = entry.failures + 1, int(self._clock.now() * 1000)
        self._write(conversation_id, entry.replace(failures=failures, opened_ms=now_ms))
        return failures

    async def take_lease(self, conversation_id: str, token: str, ttl_s: float) -> bool:
        """Claim the right to summarise for a while; False while someone else holds it."""
        holder, until = self._leases.get(conversation_id, ("", 0.0))
        now = self._clock.monotonic()
        if holder not in ("", token) and until > now:
            return False
        self._leases[conversation_id] = (token, now + ttl_s)
        return True

    async def drop_lease(self, conversation_id: str, token: str) -> None:
        """Give the claim back, if it is still ours."""
        if self._leases.get(conversation_id, ("", 0.0))[0] == token:
            del self._leases[conversation_id]

    def _generation(self, conversation_id: str) -> int:
        return self._entries.get(conversation_id, EMPTY).generation or 0

    def _write(self, conversation_id: str, entry: CompactionEntry) -> None:
        generation = self._generation(conversation_id) + 1
        self._entries[conversation_id] = entry.replace(generation=generation)
        self._entries.move_to_end(conversation_id)
        while len(self._entries) > self._limit:
            self._entries.popitem(last=False)


class InMemoryModelFacts:
    """What was learned, in the process."""

    def __init__(self) -> None:
        self._facts: dict[str, ModelFact] = {}

    async def get(self, key: str) -> ModelFact:
        """Return what is known of that model, or the defaults."""
        return self._facts.get(key, ModelFact())

    async def put(self, key: str, fact: ModelFact) -> None:
        """Replace what is known."""
        self._facts[key] = fact


class InMemoryPinStore:
    """Pins in the process, the least recently used conversations forgotten."""

    def __init__(self, limit: int = LRU) -> None:
        self._limit = limit
        self._pins: OrderedDict[str, frozenset[str]] = OrderedDict()

    async def pins(self, conversation_id: str) -> frozenset[str]:
        """Return the ids of the pinned messages, and count them as used."""
        if conversation_id in self._pins:
            self._pins.move_to_end(conversation_id)
        return self._pins.get(conversation_id, frozenset())

    async def pin(self, conversation_id: str, message_id: str) -> None:
        """Pin a message."""
        self._write(conversation_id, {*await self.pins(conversation_id), message_id})

    async def unpin(self, conversation_id: str, message_id: str) -> None:
        """Take a pin off."""
        self._write(conversation_id, await self.pins(conversation_id) - {message_id})

    def _write(self, conversation_id: str, pins: Iterable[str]) -> None:
        self._pins[conversation_id] = frozenset(pins)
        self._pins.move_to_end(conversation_id)
        while len(self._pins) > self._limit:
            self._pins.popitem(last=False)


def with_ring(entry: CompactionEntry, cache: Cache, limit: int = RING) -> CompactionEntry:
    """Return the entry with a cache put in front of its ring; one of the same hash gives way."""
    others = tuple(old for old in entry.ring if old.prefix_hash != cache.prefix_hash)
    return entry.replace(ring=(cache, *others)[:limit])
