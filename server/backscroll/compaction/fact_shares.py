"""Which facts fit: classes and parts of the ledger have shares, and hand on what they leave."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from backscroll.compaction.fact_rules import SHARES, FactClass
from backscroll.compaction.fact_scan import Found

CLASS_SHARES: Mapping[FactClass, float] = {"standing": 0.65, "ledger": 0.25, "other": 0.10}
NEWEST_SHARE = 0.80
"""How much of a share the newest entries may fill before the oldest get the rest."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A fact with its place in the span, the reference of its message and its tokens."""

    found: Found
    at: int
    ref: int | None
    tokens: int


def merge(entries: Iterable[Entry]) -> list[Entry]:
    """Return one entry per key, in order: the newest, but a write beats a later read."""
    merged: dict[tuple[str, ...], Entry] = {}
    for entry in entries:
        key = entry.found.key
        older = merged.pop(key, None)
        merged[key] = older if older and older.found.wrote and not entry.found.wrote else entry
    return sorted(merged.values(), key=lambda entry: entry.at)


def choose(entries: Sequence[Entry], room: int, goal: Entry | None = None) -> list[Entry]:
    """Return the entries that fit into `room` tokens, class by class and oldest first.

    The goal is always among them, at the expense of the standing share.
    """
    goal_tokens = goal.tokens if goal else 0
    standing = int(CLASS_SHARES["standing"] * room) - goal_tokens
    chosen, left = fill(_of_class(entries, "standing"), standing)
    ledger, left = _ledger(
        _of_class(entries, "ledger"), int(CLASS_SHARES["ledger"] * room) + max(0, left)
    )
    used = goal_tokens + sum(entry.tokens for entry in (*chosen, *ledger))
    other, _ = fill(_of_class(entries, "other"), room - used, newest_share=1.0)
    return [*([goal] if goal else ()), *chosen, *ledger, *other]


def fill(
    entries: Sequence[Entry], room: int, newest_share: float = NEWEST_SHARE
) -> tuple[list[Entry], int]:
    """Return what fits, in order, and the tokens left: first the newest, then the oldest."""
    if sum(entry.tokens for entry in entries) <= room:
        return list(entries), room - sum(entry.tokens for entry in entries)
    left, cut, newest_room = room, len(entries), int(newest_share * room)
    while cut > 0 and room - left + entries[cut - 1].tokens <= newest_room:
        cut -= 1
        left -= entries[cut].tokens
    oldest: list[Entry] = []
    for entry in entries[:cut]:
        if entry.tokens > left:
            break
        oldest.append(entry)
        left -= entry.tokens
    return [*oldest, *entries[cut:]], left


def _ledger(entries: Sequence[Entry], room: int) -> tuple[list[Entry], int]:
    """Return what of the ledger fits; what one part leaves goes to any other that needs it.

    What was written comes before what was only read or named.
    """
    groups = {share: [e for e in entries if e.found.share == share] for share in SHARES}
    needs = {share: sum(entry.tokens for entry in group) for share, group in groups.items()}
    rooms = {share: min(needs[share], int(part * room)) for share, part in SHARES.items()}
    spare = room - sum(rooms.values())
    chosen: list[Entry] = []
    left = 0
    for share, group in groups.items():
        more = min(spare, needs[share] - rooms[share])
        spare -= more
        wrote, left = fill([e for e in group if e.found.wrote], rooms[share] + more + left)
        rest, left = fill([e for e in group if not e.found.wrote], left)
        chosen += [*wrote, *rest]
    return sorted(chosen, key=lambda entry: entry.at), spare + left


def _of_class(entries: Sequence[Entry], cls: FactClass) -> list[Entry]:
    return [entry for entry in entries if entry.found.cls == cls]
