"""A stored history as a value: what it holds, what is live in it, and what a change does to it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgpack

from backscroll.kernel.canon import canonical_json, clean_text
from backscroll.kernel.message import Message
from backscroll.store.entry import NewEntry, one_line

BIG_INT = 1
"""The msgpack extension for whole numbers beyond 64 bits, which JSON allows; written in decimal."""

Ranges = tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class StoredMessage:
    """A message in its place: position from 1, the entry that announced it, and its marks.

    Marks: `superseded`, `imported`, `incomplete`.
    """

    position: int
    message: Message
    seq: int = 0
    time: int = 0
    run: str = ""
    marks: tuple[str, ...] = ()

    @property
    def is_live(self) -> bool:
        """Say whether the message is part of the live history."""
        return "superseded" not in self.marks


@dataclass(frozen=True, slots=True)
class Rewrite:
    """Where write-back put other messages, and the blob that keeps the former ones, if one does."""

    ranges: Ranges
    archive: str = ""


@dataclass(frozen=True, slots=True)
class HistoryChange:
    """What to do to a history, decided on the revision that was read."""

    revision: int
    count: int
    added: tuple[Message, ...] = ()
    edited: tuple[StoredMessage, ...] = ()
    superseded: tuple[StoredMessage, ...] = ()
    ranges: Ranges = ()
    marks: tuple[str, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Say whether there is nothing to write."""
        return not (self.added or self.edited or self.superseded)

    def entries(self, run: str) -> list[NewEntry]:
        """Return the entries that announce the change, in the order `pack` counts on."""
        found = [_superseded_entry(self.superseded, run)] if self.superseded else []
        found += [message_entry(stored.position, stored.message, run) for stored in self.edited]
        found += [
            message_entry(self.count + n, message, run)
            for n, message in enumerate(self.added, start=1)
        ]
        return found

    def pack(self, run: str, before: int = 0) -> bytes:
        """Return the change for the scripts; `before` entries of the batch precede its own."""
        offset = before + len(self.edited) + bool(self.superseded)
        added = [
            [offset + n, _id(message), encode(message, run, self.marks)]
            for n, message in enumerate(self.added, start=1)
        ]
        edited = [
            [stored.position, encode(stored.message, stored.run, _own_marks(stored.marks))]
            for stored in self.edited
        ]
        forgotten = [_id(stored.message) for stored in self.superseded]
        ranges = format_ranges(self.ranges) if self.superseded else ""
        packed: bytes = msgpack.packb([forgotten, added, edited, ranges], use_bin_type=False)
        return packed


@dataclass(frozen=True, slots=True)
class StoredHistory:
    """All messages of a thread as they were at one moment, superseded ones too.

    `edits` counts what was not mere appending, so a reader knows whether a tail is enough. `total`
    counts positions: those of messages that write-back replaced are among them, and empty.
    """

    messages: tuple[StoredMessage, ...] = ()
    revision: int = 0
    edits: int = 0
    ranges: Ranges = field(default=())
    rewrites: tuple[Rewrite, ...] = ()
    total: int = 0

    @property
    def live(self) -> list[StoredMessage]:
        """The history that clients and the agent see."""
        return [stored for stored in self.messages if stored.is_live]

    def change(
        self,
        added: Iterable[Message] = (),
        *,
        supersede_from: int | None = None,
        marks: Sequence[str] = (),
    ) -> HistoryChange:
        """Return the change that appends messages with ids, after superseding from a position."""
        gone = tuple(
            stored
            for stored in self.messages
            if supersede_from is not None and stored.position >= supersede_from and stored.is_live
        )
        ranges = self.ranges
        if gone:
            ranges = with_range(ranges, gone[0].position, self.total)
        return HistoryChange(
            revision=self.revision,
            count=self.total,
            added=tuple(added),
            superseded=gone,
            ranges=ranges,
            marks=tuple(marks),
        )


def encode(message: Message, run: str, marks: Sequence[str]) -> bytes:
    """Return a message with what is known of its origin, as it is stored."""
    value = {"m": message.to_dict(), "r": run, "k": list(marks)}
    packed: bytes = msgpack.packb(value, default=_big_int, unicode_errors="surrogatepass")
    return packed


def decode(position: int, element: bytes, ranges: Ranges = ()) -> StoredMessage:
    """Return a stored message from its element of the list."""
    seq, time, data = msgpack.unpackb(element, raw=True)
    value = msgpack.unpackb(
        data, ext_hook=_extension, strict_map_key=False, unicode_errors="surrogatepass"
    )
    message = Message.from_dict(value["m"], f"messages[{position}]")
    marks = [*value["k"]]
    if message.incomplete:
        marks.append("incomplete")
    if in_ranges(ranges, position):
        marks.append("superseded")
    return StoredMessage(position, message, seq, time, value["r"], tuple(marks))


def stored_form(message: Message) -> Message:
    """Return a message as it will be read back."""
    return decode(1, msgpack.packb([0, 0, encode(message, "", ())])).message


def parse_rewrites(text: str) -> tuple[Rewrite, ...]:
    """Read how often and where a history was rewritten."""
    return tuple(Rewrite(parse_ranges(where), name) for where, name in json.loads(text or "[]"))


def parse_ranges(text: str) -> Ranges:
    """Read ranges of positions, `3-5,9-9`."""
    pairs = (part.split("-") for part in text.split(",") if part)
    return tuple((int(first), int(last)) for first, last in pairs)


def format_ranges(ranges: Ranges) -> str:
    """Write ranges of positions."""
    return ",".join(f"{first}-{last}" for first, last in ranges)


def with_range(ranges: Ranges, first: int, last: int) -> Ranges:
    """Return ranges, rising and apart, that also cover first to last."""
    merged: list[tuple[int, int]] = []
    for start, end in sorted((*ranges, (first, last))):
        if merged and start <= merged[-1][1] + 1:
            merged[-1] = (merged[-1][0], max(merged[-1][1], end))
        else:
            merged.append((start, end))
    return tuple(merged)


def in_ranges(ranges: Ranges, position: int) -> bool:
    """Say whether a position is covered."""
    return any(first <= position <= last for first, last in ranges)


def message_head(position: int, message: Message) -> dict[str, Any]:
    """Return the head of a message: where it is, what it is, its size and hash as JSON."""
    whole = json.dumps(message.to_dict(), ensure_ascii=False, separators=(",", ":"))
    data = whole.encode("utf-8", "surrogatepass")
    head: dict[str, Any] = {
        "position": position,
        "id": message.id,
        "role": message.role.value,
        "chars": len(message.text),
        "bytes": len(data),
        "sha256": hashlib.sha256(data).hexdigest(),
    }
    if message.tool_calls:
        head["tool_calls"] = [{"id": call.id, "name": call.name} for call in message.tool_calls]
    if message.rewritten_by:
        head["rewritten_by"] = list(message.rewritten_by)
    optional: Mapping[str, Any] = {
        "tool_call_id": message.tool_call_id,
        "name": message.name,
        "outcome": message.outcome,
        "origin": message.origin,
        "incomplete": message.incomplete or None,
    }
    return {**head, **{name: value for name, value in optional.items() if value is not None}}


def message_entry(
    position: int, message: Message, run: str, more: Mapping[str, Any] | None = None
) -> NewEntry:
    """Return the entry that announces a message, with more that is to be known of it."""
    text = message.text or ", ".join(f"{c.name}({c.args_text})" for c in message.tool_calls)
    return NewEntry(
        kind="message",
        type="added",
        body=_json({**message_head(position, message), **(more or {})}),
        audience="operator",
        run=run,
        ref=message.id or "",
        preview=one_line(clean_text(text)),
    )


def _superseded_entry(gone: Sequence[StoredMessage], run: str) -> NewEntry:
    first, last = gone[0].position, gone[-1].position
    ids = [stored.message.id for stored in gone]
    return NewEntry(
        kind="message",
        type="superseded",
        body=_json({"from": first, "to": last, "ids": ids}),
        audience="operator",
        run=run,
        ref=gone[0].message.id or "",
        preview=f"messages {first} to {last} are superseded",
    )


def _json(value: Any) -> bytes:
    return clean_text(canonical_json(value)).encode()


def _id(message: Message) -> bytes:
    return (message.id or "").encode("utf-8", "surrogatepass")


def _own_marks(marks: Sequence[str]) -> list[str]:
    """Leave out the marks that are derived when a message is read."""
    return [mark for mark in marks if mark not in ("incomplete", "superseded")]


def _big_int(value: Any) -> msgpack.ExtType:
    if isinstance(value, int):
        return msgpack.ExtType(BIG_INT, str(value).encode())
    raise TypeError(f"expected a JSON value in a message, got {type(value).__name__}")


def _extension(code: int, data: bytes) -> Any:
    return int(data) if code == BIG_INT else msgpack.ExtType(code, data)
