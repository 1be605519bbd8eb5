"""Reading stored histories: whole, by position, by id."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from backscroll.kernel.message import Message
from backscroll.store.connection import RedisClients, store_errors
from backscroll.store.history import (
    HistoryChange,
    Ranges,
    Rewrite,
    StoredHistory,
    StoredMessage,
    decode,
    parse_ranges,
    parse_rewrites,
)
from backscroll.store.keys import Keys, ThreadKey
from backscroll.store.rewriting import archived, as_of


@dataclass(frozen=True, slots=True)
class Lookup:
    """Which of some ids are live in a history, and at which revision that was so."""

    revision: int
    count: int
    found: Mapping[str, StoredMessage]

    def message(self, message_id: str) -> Message | None:
        """Return the message stored under an id."""
        stored = self.found.get(message_id)
        return None if stored is None else stored.message

    def change(self, added: Sequence[Message], annotated: Sequence[Message]) -> HistoryChange:
        """Return the change that appends some messages and replaces others under their id."""
        edited = []
        for message in annotated:
            old = self.found[message.id or ""]
            edited.append(
                StoredMessage(old.position, message, old.seq, old.time, old.run, old.marks)
            )
        return HistoryChange(self.revision, self.count, tuple(added), tuple(edited))


class HistoryReader:
    """Reads the histories of all threads; superseded messages are included and marked."""

    def __init__(self, clients: RedisClients, keys: Keys) -> None:
        self._clients, self._keys = clients, keys

    async def read(self, thread: ThreadKey, known: StoredHistory | None = None) -> StoredHistory:
        """Return a history whole; with what is known of it, only its tail travels."""
        known = known or StoredHistory()
        fresh, elements = await self._fetch(thread, known.total, -1)
        if known.total and fresh.edits != known.edits:
            known = StoredHistory()
            fresh, elements = await self._fetch(thread, 0, -1)
        tail = _decode(elements, known.total, fresh.ranges)
        total = known.total + len(elements)
        return replace(fresh, messages=(*known.messages, *tail), total=total)

    async def past(
        self, thread: ThreadKey, known: StoredHistory, rewrites: int
    ) -> list[tuple[int, Message]]:
        """Return the messages of a history by position as they were after so many rewritings."""
        return as_of(known, rewrites, await self._archives(thread, known.rewrites[rewrites:]))

    async def _archives(self, thread: ThreadKey, rewrites: Sequence[Rewrite]) -> dict[str, bytes]:
        """Return the archives of some rewritings by their names, those that there are."""
        names = [one.archive for one in rewrites if one.archive]
        if not names:
            return {}
        with store_errors("read archived messages"):
            found = await self._clients.read.hmget(self._keys.blobs(thread), names)
        return {n: data for n, data in zip(names, found, strict=True) if data is not None}

    async def stored(self, thread: ThreadKey, first: int, last: int) -> list[StoredMessage]:
        """Return the messages at positions first to last, and archived ones where none is."""
        if last < max(first, 1):
            return []
        first = max(first, 1)
        fresh, elements = await self._fetch(thread, first - 1, last - 1)
        found = _decode(elements, first - 1, fresh.ranges)
        if len(found) == len(elements):
            return found
        archives = await self._archives(thread, fresh.rewrites)
        empty = [first + n for n, element in enumerate(elements) if not element]
        return sorted([*found, *archived(archives.values(), empty)], key=lambda s: s.position)

    async def total(self, thread: ThreadKey) -> int:
        """Return how many messages a thread has, superseded ones included."""
        with store_errors("count messages"):
            return int(await self._clients.read.llen(self._keys.messages(thread)))

    async def by_ids(self, thread: ThreadKey, ids: Sequence[str]) -> list[StoredMessage]:
        """Return the live messages with these ids, in order of position."""
        found = (await self.look_up(thread, ids)).found
        return sorted(found.values(), key=lambda stored: stored.position)

    async def look_up(self, thread: ThreadKey, ids: Sequence[str]) -> Lookup:
        """Return what is stored under ids, at a cost that does not grow with the history."""
        names = [id_.encode("utf-8", "surrogatepass") for id_ in ids]
        with store_errors("look up messages"):
            async with self._clients.read.pipeline(transaction=True) as pipe:
                pipe.hget(self._keys.meta(thread), "revision")
                pipe.llen(self._keys.messages(thread))
                pipe.hmget(self._keys.ids(thread), names or [b""])
                revision, count, places = await pipe.execute()
            places = {int(place): id_ for place, id_ in zip(places, ids, strict=False) if place}
            async with self._clients.read.pipeline(transaction=False) as pipe:
                for place in places:
                    pipe.lindex(self._keys.messages(thread), place - 1)
                elements = await pipe.execute()
        found = {
            id_: decode(place, element)
            for (place, id_), element in zip(places.items(), elements, strict=True)
            if element
        }
        return Lookup(int(revision or 0), count, found)

    async def _fetch(
        self, thread: ThreadKey, start: int, stop: int
    ) -> tuple[StoredHistory, list[bytes]]:
        """Return the state of a history without its messages, and elements of the same moment."""
        with store_errors("read the history"):
            async with self._clients.read.pipeline(transaction=True) as pipe:
                pipe.hmget(
                    self._keys.meta(thread), ["revision", "edits", "superseded", "rewritten"]
                )
                pipe.lrange(self._keys.messages(thread), start, stop)
                (revision, edits, superseded, rewritten), elements = await pipe.execute()
        ranges = parse_ranges((superseded or b"").decode())
        rewrites = parse_rewrites((rewritten or b"").decode())
        return StoredHistory((), int(revision or 0), int(edits or 0), ranges, rewrites), elements


def _decode(elements: Sequence[bytes], before: int, ranges: Ranges) -> list[StoredMessage]:
    return [
        decode(position, element, ranges)
        for position, element in enumerate(elements, start=before + 1)
        if element
    ]
