"""Entries in the form they are stored, published and read in."""

from __future__ import annotations

import msgpack
import pytest
from backscroll.store.entry import (
    Bell,
    Entry,
    Kind,
    NewEntry,
    one_line,
    pack_entries,
    unpack_bell,
    unpack_entry,
    unpack_stream,
)


def new(kind: Kind = "event", type: str = "X", body: bytes = b"{}") -> NewEntry:
    """Return an entry to write."""
    return NewEntry(kind, type, body, "client", "r1", "ref", "a\npreview")


def test_an_entry_comes_back_as_it_was_written() -> None:
    """Head and body hold everything but number and time."""
    kind, stamp, head, body = pack_entries([new()], "w1")

    assert (kind, stamp) == ("event", 0)
    assert unpack_entry(7, 1000, head, body) == Entry(
        7, 1000, "r1", "event", "X", "client", "ref", "a preview", "w1", b"{}"
    )


def test_a_large_call_record_is_compressed() -> None:
    """Call records above 2 KB are stored smaller and read as they were."""
    record = b'{"fate":"kept"}' * 1000

    _, _, head, body = pack_entries([new("call", "started", record)], "w1")

    assert len(body) < 500
    read = unpack_entry(1, 1, head, body)
    assert read.body == record
    assert read.bytes == 15_000


@pytest.mark.parametrize("kind", ["event", "note", "call"])
def test_other_bodies_are_stored_plain(kind: Kind) -> None:
    """Bodies of other kinds, and small ones, are stored as they are."""
    body = b"x" * (100 if kind == "call" else 5000)

    assert pack_entries([new(kind, "x", body)], "w")[3] == body


def test_reads_what_xrange_answers() -> None:
    """The number is the first half of the stream id."""
    _, _, head, body = pack_entries([new()], "w1")

    (entry,) = unpack_stream([(b"41-0", {b"t": b"1000", b"h": head, b"b": body})])

    assert (entry.seq, entry.time, entry.type) == (41, 1000, "X")


def test_reads_a_bell() -> None:
    """Entries of a bell are numbered from its first, and share its time."""
    parts = [part for n in range(2) for part in pack_entries([new(type=str(n))], "w1")[2:]]

    bell = unpack_bell(msgpack.packb([5, 6, 1000, parts, ""]))

    assert (bell.first, bell.last, bell.time, bell.stop) == (5, 6, 1000, "")
    assert [(e.seq, e.type, e.time) for e in bell.entries] == [(5, "0", 1000), (6, "1", 1000)]


def test_reads_a_bell_that_asks_for_a_stop() -> None:
    """It names the run and carries no entry."""
    assert unpack_bell(msgpack.packb([5, 4, 1, [], "läuft"])) == Bell(5, 4, 1, (), "läuft")


def test_a_preview_is_one_short_line() -> None:
    """White space becomes one blank, and what is too long ends in a dot of its own."""
    assert one_line(" a \n\t b ") == "a b"
    assert one_line("x" * 500) == "x" * 159 + "…"
    assert one_line("é" * 160) == "é" * 160


@pytest.mark.parametrize(
    ("kind", "type", "is_error"),
    [
        ("event", "RUN_ERROR", True),
        ("call", "failed", True),
        ("compaction", "failed", True),
        ("event", "RUN_FINISHED", False),
        ("call", "finished", False),
    ],
)
def test_knows_what_counts_as_an_error(kind: Kind, type: str, is_error: bool) -> None:
    """Failed runs, calls and compactions count as errors of a thread."""
    assert new(kind, type).is_error is is_error
