"""A summary made ahead of need, taken into use when the trigger is passed: no call, no wait."""

from __future__ import annotations

import dataclasses

from backscroll.compaction.decision import Stage
from backscroll.compaction.ladder import Aim, Climb, climb
from backscroll.compaction.layouts import is_valid
from backscroll.compaction.plan_value import Plan
from backscroll.compaction.reading import Reading
from backscroll.compaction.store import Cache, CompactionEntry, with_ring


def ready_cache(reading: Reading, entry: CompactionEntry, prefix_n: int) -> Cache | None:
    """Return the cache made ahead of need that covers most, if it covers more than `prefix_n`."""
    found = [
        cache
        for cache in entry.ring
        if cache.ready and cache.prefix_n > prefix_n and is_valid(reading, cache)
    ]
    return max(found, key=lambda cache: cache.prefix_n, default=None)


def adopted(start: Plan, reading: Reading, aim: Aim, state: Climb) -> tuple[Plan, Climb]:
    """Return plan and climb with a ready summary in use, or as they were if none brings it down."""
    cache = ready_cache(reading, start.entry, state.view.layout.prefix_n)
    if cache is None:
        return start, state
    entry = in_use(start.entry, cache, start.given.settings.ring)
    again = climb(reading, entry, dataclasses.replace(aim, may_summarise=False))
    if again.view.tokens > aim.goal:
        return start, state
    covered = cache.prefix_n - state.view.layout.prefix_n
    delta = again.view.tokens - state.view.tokens
    stage = Stage("summary", "done", "made ahead of need", covered, delta)
    again = again.replace(stages=(stage, *again.stages), seen=state.seen)
    return dataclasses.replace(start, entry=entry, adopted=True), again


def in_use(entry: CompactionEntry, cache: Cache, ring: int) -> CompactionEntry:
    """Return the entry with a ready cache in use, the former one in the ring."""
    others = tuple(kept for kept in entry.ring if kept != cache)
    entry = entry.replace(ring=others)
    if entry.cache is not None:
        entry = with_ring(entry, entry.cache, ring)
    made = {key: value for key, value in cache.made.items() if key != "ready"}
    return entry.replace(cache=dataclasses.replace(cache, made=made))
