"""Joining items into spans, and putting bodies into blocks."""

from __future__ import annotations

import hashlib
import json

from backscroll.compaction.record_items import Item, spans, store_blob, store_bodies


def test_neighbours_of_one_fate_and_reason_are_one_span() -> None:
    """Their tokens are added up, before and after."""
    items = [Item("kept", n, before=10, after=9) for n in (4, 5, 6)]
    assert spans(items) == [{"fate": "kept", "from": 4, "to": 6, "tokens": [30, 27]}]


def test_another_reason_source_or_repair_begins_a_span() -> None:
    """What differs in anything but the position stands alone."""
    items = [
        Item("kept", 1),
        Item("kept", 2, why="pinned"),
        Item("rewritten", 3, by="a", store="model_content"),
        Item("rewritten", 4, by="b", store="model_content"),
        Item("kept", 5, repaired="result_moved"),
        Item("kept", 7, repaired="result_moved"),
    ]
    assert [(s["from"], s["to"]) for s in spans(items)] == [
        (1, 1), (2, 2), (3, 3), (4, 4), (5, 5), (7, 7),
    ]  # fmt: skip


def test_injected_messages_are_never_joined() -> None:
    """Each has a body of its own."""
    items = [Item("injected", what="note", role="user", blob=b) for b in ("aa", "bb")]
    assert [span["blob"] for span in spans(items)] == ["aa", "bb"]
    assert "from" not in spans(items)[0]


def test_bodies_are_stored_in_blocks_of_64_positions() -> None:
    """Block k holds positions 64k+1 to 64k+64, as an object by position."""
    blobs: dict[str, bytes] = {}
    items = [Item("truncated", n, body=f'{{"n":{n}}}') for n in (64, 1, 65)]
    bodies = store_bodies([*items, Item("kept", 2)], blobs)
    assert [block for block, _ in bodies] == [0, 1]
    assert json.loads(blobs[bodies[0][1]]) == {"1": {"n": 1}, "64": {"n": 64}}
    assert json.loads(blobs[bodies[1][1]]) == {"65": {"n": 65}}


def test_a_blob_is_named_by_its_sha256() -> None:
    """Equal texts are one blob."""
    blobs: dict[str, bytes] = {}
    name = store_blob(blobs, "雪")
    assert name == store_blob(blobs, "雪") == hashlib.sha256("雪".encode()).hexdigest()
    assert blobs == {name: "雪".encode()}
