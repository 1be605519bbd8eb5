"""Compaction entries as plain values and as bytes; what cannot be read is the empty entry."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgpack

from backscroll.compaction.store import EMPTY, Cache, CompactionEntry, Marks, ModelFact

VERSION = 1


def entry_to_dict(entry: CompactionEntry) -> dict[str, Any]:
    """Return the entry as JSON values; the generation belongs to the store and is left out."""
    out: dict[str, Any] = {"v": VERSION, "cache": _cache_dict(entry.cache)}
    out["failures"] = entry.failures
    if entry.marks is not None:
        marks = entry.marks
        out["marks"] = [marks.micro_n, marks.drop_n, marks.at_n, marks.at_hash]
    if entry.ring:
        out["ring"] = [_cache_dict(cache) for cache in entry.ring]
    if entry.opened_ms is not None:
        out["opened_ms"] = entry.opened_ms
    return out


def entry_from_dict(value: Any) -> CompactionEntry:
    """Read an entry; a corrupt value or a newer version is the empty entry."""
    try:
        if not isinstance(value, Mapping) or value.get("v", VERSION) > VERSION:
            return EMPTY
        marks = value.get("marks")
        return CompactionEntry(
            _cache(value.get("cache")),
            _count(value.get("failures", 0)),
            None if marks is None else _marks(*marks),
            tuple(cache for cache in map(_cache, value.get("ring") or ()) if cache),
            value["opened_ms"] if isinstance(value.get("opened_ms"), int) else None,
        )
    except (TypeError, ValueError, KeyError):
        return EMPTY


def pack_entry(entry: CompactionEntry) -> bytes:
    """Return the entry as msgpack."""
    packed: bytes = msgpack.packb(entry_to_dict(entry))
    return packed


def unpack_entry(data: bytes | None) -> CompactionEntry:
    """Read an entry from msgpack; nothing, or what cannot be read, is the empty entry."""
    if data is None:
        return EMPTY
    try:
        return entry_from_dict(msgpack.unpackb(data))
    except (ValueError, TypeError, msgpack.UnpackException):
        return EMPTY


def fact_to_dict(fact: ModelFact) -> dict[str, Any]:
    """Return what was learned about a model as JSON values."""
    names = ("r", "samples", "limit", "limit_at", "configured")
    members = ((name, getattr(fact, name)) for name in names)
    return {name: value for name, value in members if value is not None}


def fact_from_dict(value: Any) -> ModelFact:
    """Read what was learned; what cannot be read is nothing learned."""
    try:
        limit, at = value.get("limit"), value.get("limit_at")
        configured = value.get("configured")
        return ModelFact(
            float(value.get("r", 1.0)),
            int(value.get("samples", 0)),
            None if limit is None else int(limit),
            None if at is None else float(at),
            None if configured is None else int(configured),
        )
    except (AttributeError, TypeError, ValueError):
        return ModelFact()


def _cache_dict(cache: Cache | None) -> dict[str, Any] | None:
    if cache is None:
        return None
    out: dict[str, Any] = {"prefix_n": cache.prefix_n, "prefix_hash": cache.prefix_hash}
    out["summary"] = cache.summary
    if cache.made:
        out["made"] = dict(cache.made)
    return out


def _cache(value: Any) -> Cache | None:
    if value is None:
        return None
    prefix_n, prefix_hash, summary = value["prefix_n"], value["prefix_hash"], value["summary"]
    if not (isinstance(prefix_hash, str) and isinstance(summary, str)):
        raise TypeError("expected text")
    return Cache(_count(prefix_n), prefix_hash, summary, dict(value.get("made") or {}))


def _marks(micro_n: Any, drop_n: Any, at_n: Any, at_hash: Any) -> Marks:
    if not isinstance(at_hash, str):
        raise TypeError("expected text")
    return Marks(_count(micro_n), _count(drop_n), _count(at_n), at_hash)


def _count(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise TypeError("expected a count")
    return value
