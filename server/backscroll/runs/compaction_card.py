"""What the compaction store holds of a thread now, as operators see it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from backscroll.compaction.canon_forms import prefix_hashes
from backscroll.compaction.settings import Settings
from backscroll.compaction.store import CompactionEntry
from backscroll.kernel.message import Message


def compaction_card(
    entry: CompactionEntry, live: Sequence[Message], settings: Settings, now_ms: int
) -> dict[str, Any]:
    """Return failures, whether summaries are paused after them, and whether the cache still fits.

    `live` is the history that the next call would be made from.
    """
    until = None
    if entry.failures >= max(settings.failures_open, 1) and entry.opened_ms is not None:
        until = entry.opened_ms + round(settings.cooldown * 1000)
    card: dict[str, Any] = {
        "failures": entry.failures,
        "paused": until is not None and now_ms < until,
    }
    cache = entry.cache
    if cache is None:
        return card
    matches = cache.prefix_n <= len(live)
    matches = matches and prefix_hashes(live)[cache.prefix_n] == cache.prefix_hash
    shown: dict[str, Any] = {
        "prefix_n": cache.prefix_n,
        "prefix_hash": cache.prefix_hash,
        "matches": matches,
    }
    if isinstance(cache.made.get("at"), int):
        shown["made"] = cache.made["at"]
    return {**card, "cache": shown, "bytes": len(cache.summary.encode("utf-8", "surrogatepass"))}
