"""What an operator may change of an entry: the text of a summary, and which summary is in use."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from backscroll.compaction.facts import first_user
from backscroll.compaction.layouts import is_valid
from backscroll.compaction.reading import PlanInput, Reading
from backscroll.compaction.report import text_hash
from backscroll.compaction.store import Cache, CompactionEntry
from backscroll.compaction.summary_text import join_summary
from backscroll.kernel.errors import BackscrollError

HISTORY = "history"
"""The word for going back to the whole history."""


class ActionRefused(BackscrollError):
    """An operator's action is refused and nothing was changed; `details` holds its numbers."""

    def __init__(self, code: str, message: str, **details: Any) -> None:
        self.code, self.details = code, details
        super().__init__(message)


def edited(
    reading: Reading, entry: CompactionEntry, text: str, sha256: str, made: Mapping[str, Any]
) -> CompactionEntry:
    """Return the entry with another core in its summary, the facts beside it made afresh.

    The former text goes to the ring. Refused unless `sha256` is that of the present summary.
    """
    cache = entry.cache
    present = text_hash(cache.summary) if cache is not None else None
    if cache is None or present != sha256:
        known = {"sha256": present} if present is not None else {}
        raise ActionRefused("summary_changed", "The summary is another one by now.", **known)
    if not is_valid(reading, cache):
        raise ActionRefused("summary_changed", "The history that it stands for has changed.")
    core = text.strip()
    if not core:
        raise ActionRefused("invalid_input", "text: expected a summary, got nothing")
    n, means, limits = cache.prefix_n, reading.given.means, reading.limits
    room = min(limits.facts_max, max(limits.block_max - means.sizes.text(core), 0))
    goal = first_user(reading.history)
    at = goal if goal is not None and goal < n else None
    facts = means.facts.block(reading.history[:n], reading.refs[:n], room, at)
    new = Cache(n, cache.prefix_hash, join_summary(core, facts.text), {**made, "kind": "edited"})
    return _in_use(reading, entry, new, entry.ring)


def gone_back(reading: Reading, entry: CompactionEntry, to: str | None) -> CompactionEntry:
    """Return the entry with another summary in use until the trigger is passed again.

    `to` is the sha256 of one in the ring, or HISTORY for none; None takes the newest one of the
    ring that fits the history, else none. What is left goes to the ring, so it can be gone back to.
    """
    fitting = [cache for cache in entry.ring if is_valid(reading, cache)]
    if to == HISTORY or (to is None and not fitting):
        if entry.cache is None:
            raise ActionRefused("not_found", "There is no summary to go back from.")
        return _in_use(reading, entry, None, entry.ring)
    found = [cache for cache in fitting if to is None or text_hash(cache.summary) == to]
    if not found:
        raise ActionRefused("not_found", "There is no such summary that fits the history.")
    target = found[0]
    return _in_use(reading, entry, target, tuple(c for c in entry.ring if c is not target))


def pinned_tokens(given: PlanInput, pins: frozenset[str]) -> tuple[int, int]:
    """Return what the groups of these pins take, and what they may take."""
    reading = Reading(dataclasses.replace(given, pins=pins))
    starts = {group.start: group for group in map(reading.group_of, reading.pinned)}
    messages = (m for group in starts.values() for m in reading.history[group.start : group.end])
    return sum(map(reading.estimate, messages)), reading.limits.pins_max


def group_ids(given: PlanInput, message_id: str) -> frozenset[str]:
    """Return the ids of all messages of a message's group, none if it is not in the history."""
    reading = Reading(given)
    at = next((i for i, m in enumerate(given.history) if m.id == message_id), None)
    if at is None:
        return frozenset()
    group = reading.group_of(at)
    return frozenset(m.id for m in given.history[group.start : group.end] if m.id is not None)


def _in_use(
    reading: Reading, entry: CompactionEntry, cache: Cache | None, others: tuple[Cache, ...]
) -> CompactionEntry:
    """Return the entry with this summary in use, and set aside what would be used instead."""
    used = None if cache is None else _flagged(cache, "chosen")
    name = None if used is None else text_hash(used.summary)
    ring: dict[str, Cache] = {}
    for old in (*((entry.cache,) if entry.cache is not None else ()), *others):
        if text_hash(old.summary) != name:
            goes = used is None or old.prefix_n >= used.prefix_n
            ring.setdefault(text_hash(old.summary), _flagged(old, "ready") if goes else old)
    kept = tuple(ring.values())[: reading.given.settings.ring]
    return entry.replace(cache=used, ring=kept, marks=None)


def _flagged(cache: Cache, flag: str) -> Cache:
    made = {key: value for key, value in cache.made.items() if key not in ("ready", "chosen")}
    return dataclasses.replace(cache, made={**made, flag: True})
