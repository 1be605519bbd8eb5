"""Items of a record joined into spans, and the bodies that differ from the store, in blocks."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

BLOCK = 64
"""How many positions share one blob of replacement bodies."""


@dataclass(slots=True)
class Item:
    """One message of the view, or one that was left out, with what became of it."""

    fate: str
    position: int | None = None
    why: str = ""
    by: str | None = None
    store: str | None = None
    repaired: str | None = None
    what: str | None = None
    role: str | None = None
    blob: str | None = None
    before: int = 0
    after: int = 0
    body: str | None = None
    of: list[int] | None = None


def spans(items: Sequence[Item]) -> list[dict[str, Any]]:
    """Return the items as JSON values; neighbours of one fate and reason are one span."""
    out: list[dict[str, Any]] = []
    last: tuple[Any, ...] | None = None
    for item in items:
        key = (item.fate, item.why, item.by, item.store, item.repaired)
        joins = last == key and item.position is not None and out[-1]["to"] == item.position - 1
        if joins:
            span = out[-1]
            span["to"] = item.position
            span["tokens"] = [span["tokens"][0] + item.before, span["tokens"][1] + item.after]
        else:
            out.append(_span(item))
        last = key if item.position is not None else None
    return out


def _span(item: Item) -> dict[str, Any]:
    out: dict[str, Any] = {"fate": item.fate}
    if item.position is not None:
        out["from"] = out["to"] = item.position
    for name in ("what", "role", "blob", "of"):
        if getattr(item, name) is not None:
            out[name] = getattr(item, name)
    out["tokens"] = [item.before, item.after]
    for name in ("by", "why", "store", "repaired"):
        if getattr(item, name):
            out[name] = getattr(item, name)
    return out


def store_bodies(items: Sequence[Item], blobs: dict[str, bytes]) -> list[list[Any]]:
    """Put the replacement bodies into blobs by blocks of positions; returns `[block, sha256]`."""
    blocks: defaultdict[int, dict[int, str]] = defaultdict(dict)
    for item in items:
        if item.body is not None and item.position is not None:
            blocks[(item.position - 1) // BLOCK][item.position] = item.body
    out = []
    for block in sorted(blocks):
        members = sorted(blocks[block].items())
        text = "{" + ",".join(f'"{position}":{body}' for position, body in members) + "}"
        out.append([block, store_blob(blobs, text)])
    return out


def store_blob(blobs: dict[str, bytes], text: str) -> str:
    """Put a text into the blobs; returns its sha256, which names it."""
    data = text.encode("utf-8", "surrogatepass")
    name = hashlib.sha256(data).hexdigest()
    blobs[name] = data
    return name
