"""A stored history rewritten by write-back: what is put in its place, and how it was before.

A message keeps its position for ever. The place of one that was replaced stays in the list, empty
or taken by the summary, so no other message moves.
"""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import msgpack

from backscroll.kernel.canon import canonical_json
from backscroll.kernel.message import Message
from backscroll.store.entry import NewEntry
from backscroll.store.history import (
    Ranges,
    Rewrite,
    StoredHistory,
    StoredMessage,
    decode,
    encode,
    format_ranges,
    in_ranges,
    message_entry,
    with_range,
)


@dataclass(frozen=True, slots=True)
class Rewriting:
    """What a shorter history does to a stored one, decided on the revision that was read."""

    history: StoredHistory
    replaced: tuple[StoredMessage, ...]
    put: tuple[tuple[int, Message], ...]

    @property
    def ranges(self) -> Ranges:
        """The positions whose messages are replaced."""
        found: Ranges = ()
        for stored in self.replaced:
            found = with_range(found, stored.position, stored.position)
        return found

    def archive(self) -> bytes:
        """Return the replaced messages as they are stored."""
        kept = [
            [stored.position, stored.seq, stored.time, _element(stored, stored.run)]
            for stored in self.replaced
        ]
        return zlib.compress(msgpack.packb(kept))

    def entries(self, run: str) -> list[NewEntry]:
        """Return the entries that announce what is put into the history."""
        more = {"replaces": format_ranges(self.ranges)}
        return [message_entry(position, message, run, more) for position, message in self.put]

    def pack(self, run: str) -> bytes:
        """Return the change for the script."""
        taken = {position for position, _ in self.put}
        put = [
            [position, _id(message), offset, encode(message, run, ())]
            for offset, (position, message) in enumerate(self.put, start=1)
        ]
        forgotten = [_id(stored.message) for stored in self.replaced]
        empty = [stored.position for stored in self.replaced if stored.position not in taken]
        packed: bytes = msgpack.packb([forgotten, empty, put], use_bin_type=False)
        return packed

    def note(self, archive: str) -> str:
        """Return what meta keeps of this and all former rewritings; `archive` names a blob."""
        return pack_rewrites((*self.history.rewrites, Rewrite(self.ranges, archive)))


def is_in_place(history: StoredHistory, messages: Sequence[Message]) -> bool:
    """Say whether a history begins with just these messages already."""
    live = history.live[: len(messages)]
    return [stored.message.id for stored in live] == [message.id for message in messages]


def plan_rewriting(
    history: StoredHistory, messages: Sequence[Message], expected: int, ids: Sequence[str] | None
) -> Rewriting | None:
    """Return what puts messages in place of the first `expected` live ones, None if it cannot be.

    It cannot when those are not the ones with these ids, when a message that stays is not among
    them as it is, or when new ones find no place behind what they replace.
    """
    live = history.live
    present = live[:expected]
    if len(present) < expected or (ids is not None and [s.message.id for s in present] != [*ids]):
        return None
    known = {stored.message.id: at for at, stored in enumerate(present)}
    later = {stored.message.id for stored in live[expected:]}
    put: list[tuple[int, Message]] = []
    waiting: list[Message] = []
    after = 0
    for message in (*messages, None):
        at = len(present) if message is None else known.get(message.id)
        if message is not None and (at is None or at < after):
            if at is not None or message.id in later:
                return None
            waiting.append(message)
            continue
        assert at is not None
        if message is not None and present[at].message != message:
            return None
        free = [stored.position for stored in present[after:at]]
        if len(waiting) > len(free):
            return None
        put += zip(free[len(free) - len(waiting) :], waiting, strict=True)
        waiting, after = [], at + 1
    stays = {message.id for message in messages}
    replaced = tuple(stored for stored in present if stored.message.id not in stays)
    return Rewriting(history, replaced, tuple(put))


def as_of(
    history: StoredHistory, rewrites: int, archives: Mapping[str, bytes]
) -> list[tuple[int, Message]]:
    """Return all messages with their positions as they were after so many rewritings.

    What was replaced later and is in none of the archives is left out.
    """
    found = {stored.position: stored.message for stored in history.messages}
    for rewrite in reversed(history.rewrites[rewrites:]):
        for position in [p for p in found if in_ranges(rewrite.ranges, p)]:
            del found[position]
        if (data := archives.get(rewrite.archive)) is not None:
            found.update((s.position, s.message) for s in read_archive(data))
    return sorted(found.items())


def archived(archives: Iterable[bytes], positions: Sequence[int]) -> list[StoredMessage]:
    """Return the messages that were at these positions, which are empty now; each says so."""
    wanted = set(positions)
    found = {
        stored.position: replace(stored, marks=(*stored.marks, "archived"))
        for data in archives
        for stored in read_archive(data)
        if stored.position in wanted
    }
    return list(found.values())


def read_archive(data: bytes) -> list[StoredMessage]:
    """Return the messages of an archive."""
    kept = msgpack.unpackb(zlib.decompress(data))
    return [
        decode(position, msgpack.packb([seq, time, body])) for position, seq, time, body in kept
    ]


def pack_rewrites(rewrites: Sequence[Rewrite]) -> str:
    """Write how often and where a history was rewritten."""
    return canonical_json([[format_ranges(r.ranges), r.archive] for r in rewrites])


def archive_name(data: bytes) -> str:
    """Return the name of an archive among the blobs."""
    return hashlib.sha256(data).hexdigest()


def _element(stored: StoredMessage, run: str) -> bytes:
    return encode(stored.message, run, [m for m in stored.marks if m == "imported"])


def _id(message: Message) -> bytes:
    return (message.id or "").encode("utf-8", "surrogatepass")
