"""What the compaction store holds of a thread now, as operators see it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from backscroll.compaction.canon_forms import prefix_hashes
from backscroll.compaction.report import text_hash
from backscroll.compaction.settings import Settings
from backscroll.compaction.store import Cache, CompactionEntry
from backscroll.kernel.message import Message


def compaction_card(
    entry: CompactionEntry,
    live: Sequence[Message],
    settings: Settings,
    now_ms: int,
    pins: Collection[str] = (),
    overrides: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Return failures, whether summaries are paused after them, and whether the cache still fits.

    `live` is the history that the next call would be made from. Pins, settings of the thread, and
    summaries that can be gone back to are named where there are any.
    """
    until_ms = entry.paused_until_ms(settings)
    card: dict[str, Any] = {
        "failures": entry.failures,
        "paused": until_ms is not None and now_ms < until_ms,
    }
    hashes = prefix_hashes(live)
    if pins:
        card["pins"] = sorted(pins)
    if overrides:
        card["settings"] = dict(overrides)
    if entry.ring:
        card["ring"] = [_shown(cache, hashes) for cache in entry.ring]
    cache = entry.cache
    if cache is None:
        return card
    size = len(cache.summary.encode("utf-8", "surrogatepass"))
    return {**card, "cache": _shown(cache, hashes), "bytes": size}


def _shown(cache: Cache, hashes: Sequence[str]) -> dict[str, Any]:
    n = cache.prefix_n
    shown: dict[str, Any] = {
        "prefix_n": n,
        "prefix_hash": cache.prefix_hash,
        "matches": n < len(hashes) and hashes[n] == cache.prefix_hash,
        "sha256": text_hash(cache.summary),
    }
    if isinstance(cache.made.get("at"), int):
        shown["made"] = cache.made["at"]
    if isinstance(cache.made.get("kind"), str):
        shown["kind"] = cache.made["kind"]
    return shown
