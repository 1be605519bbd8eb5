"""The context of a turn: how what tools write is folded into it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from backscroll.kernel.tool import Slot

RESERVED = frozenset({"conversation_id", "run_id", "call_id"})
"""Names in the context that no write changes."""


def apply_writes(
    context: Mapping[str, Any],
    writes: Iterable[Mapping[str, Any] | None],
    slots: Mapping[str, Slot],
) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return the context with the writes of one batch folded in, in call order, and conflicts.

    A declared slot is reduced; an undeclared name has the last writer's value, and is a conflict
    when it was written twice.
    """
    folded = dict(context)
    written: set[str] = set()
    conflicts: dict[str, None] = {}
    for row in writes:
        for name, value in (row or {}).items():
            if name in RESERVED:
                continue
            slot = slots.get(name)
            if slot is not None:
                folded[name] = slot.reduce(folded[name] if name in folded else slot.init(), value)
                continue
            if name in written:
                conflicts[name] = None
            folded[name] = value
            written.add(name)
    return folded, tuple(conflicts)
