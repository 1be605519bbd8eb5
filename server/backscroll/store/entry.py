"""One item of a thread's log, as it is written and as it is read."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import msgpack

Kind = Literal["event", "message", "call", "compaction", "note"]
Audience = Literal["client", "operator"]

STAMP = b"0" * 13
"""What a writer puts where the entry's time in milliseconds shall stand."""

PREVIEW_CHARS = 160
COMPRESS_BYTES = 2048

_ERRORS = {("event", "RUN_ERROR"), ("call", "failed"), ("compaction", "failed")}


@dataclass(frozen=True, slots=True)
class NewEntry:
    """An entry that has no number yet; `stamp_at` is where in the body STAMP begins, from 1."""

    kind: Kind
    type: str
    body: bytes
    audience: Audience
    run: str
    ref: str = ""
    preview: str = ""
    stamp_at: int = 0

    @property
    def is_error(self) -> bool:
        """Say whether the entry counts as one of the thread's errors."""
        return (self.kind, self.type) in _ERRORS


@dataclass(frozen=True, slots=True)
class Entry:
    """An entry of the log; `body` is plain, whatever form it is stored in."""

    seq: int
    time: int
    run: str
    kind: Kind
    type: str
    audience: Audience
    ref: str
    preview: str
    worker: str
    body: bytes

    @property
    def bytes(self) -> int:
        """The size of the body."""
        return len(self.body)


@dataclass(frozen=True, slots=True)
class Bell:
    """What a thread's channel carries: the entries just appended, or the run that shall stop.

    `entries` is empty when they are too large for the channel: then they are in the log.
    """

    first: int
    last: int
    time: int
    entries: tuple[Entry, ...] = ()
    stop: str = ""


def one_line(text: str, limit: int = PREVIEW_CHARS) -> str:
    """Return text as one line of at most `limit` characters."""
    line = " ".join(text[: 8 * limit].split())
    return line if len(line) <= limit else line[: limit - 1] + "…"


def pack_entries(entries: Iterable[NewEntry], worker: str) -> list[bytes | str | int]:
    """Return the script arguments of entries: kind, stamp, head and body of each."""
    packed: list[bytes | str | int] = []
    for entry in entries:
        body, is_packed = _compress(entry)
        head = [
            entry.run,
            entry.kind,
            entry.type,
            entry.audience,
            entry.ref,
            one_line(entry.preview),
            worker,
            is_packed,
        ]
        packed += (entry.kind, entry.stamp_at, _pack(head), body)
    return packed


def unpack_entry(seq: int, time: int, head: bytes, body: bytes) -> Entry:
    """Build an entry from its stored parts."""
    run, kind, type_, audience, ref, preview, worker, is_packed = _unpack(head)
    plain = zlib.decompress(body) if is_packed else body
    return Entry(seq, time, run, kind, type_, audience, ref, preview, worker, plain)


def unpack_stream(items: Sequence[tuple[bytes, Mapping[bytes, bytes]]]) -> list[Entry]:
    """Build entries from what XRANGE answers."""
    return [
        unpack_entry(int(id_.split(b"-")[0]), int(fields[b"t"]), fields[b"h"], fields[b"b"])
        for id_, fields in items
    ]


def unpack_bell(data: bytes) -> Bell:
    """Read a message of a thread's channel."""
    first, last, time, parts, stop = msgpack.unpackb(data, raw=True)
    heads, bodies = parts[::2], parts[1::2]
    entries = tuple(
        unpack_entry(first + n, time, head, body)
        for n, (head, body) in enumerate(zip(heads, bodies, strict=True))
    )
    return Bell(first, last, time, entries, stop.decode("utf-8", "surrogatepass"))


def _compress(entry: NewEntry) -> tuple[bytes, bool]:
    """Shorten large call records, which hardly anyone reads; never a body with a time in it."""
    if entry.kind != "call" or entry.stamp_at or len(entry.body) <= COMPRESS_BYTES:
        return entry.body, False
    small = zlib.compress(entry.body)
    return (small, True) if len(small) < len(entry.body) else (entry.body, False)


def _pack(value: Any) -> bytes:  # Any: a list of JSON values
    packed: bytes = msgpack.packb(value, unicode_errors="surrogatepass")
    return packed


def _unpack(data: bytes) -> Any:  # Any: what _pack was given
    return msgpack.unpackb(data, unicode_errors="surrogatepass")
