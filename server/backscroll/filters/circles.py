"""Circles: when rounds of tool calls repeat themselves."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence

from backscroll.kernel.content import content_to_json
from backscroll.kernel.turn import ToolRecord


def fingerprint(records: Sequence[ToolRecord], with_results: bool = True) -> str:
    """Return a hash of one round: its calls in any order, and, unless left out, their results."""
    lines = []
    for record in records:
        result = [record.outcome, content_to_json(record.content)] if with_results else []
        lines.append(json.dumps([record.name, record.args, *result], sort_keys=True, default=repr))
    return hashlib.sha256("\n".join(sorted(lines)).encode("utf-8", "replace")).hexdigest()


def circle(rounds: Sequence[str], recent: int, distinct: int, window: int) -> int | None:
    """Return how many of the last rounds form a circle, or None if they do not.

    They do when the last `recent` are at most `distinct` different ones, or when a longer row of
    rounds, up to half the window, has just been repeated.
    """
    if len(rounds) >= recent and len(set(rounds[-recent:])) <= distinct:
        return recent
    for length in range(distinct + 1, window // 2 + 1):
        if len(rounds) >= 2 * length and rounds[-2 * length : -length] == rounds[-length:]:
            return 2 * length
    return None
