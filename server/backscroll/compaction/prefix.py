"""How much of a request is the beginning of the one before it: what a prompt cache can reuse."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from backscroll.compaction.plan_value import Plan
from backscroll.compaction.view import Layout
from backscroll.kernel.request import ChatRequest

Broke = Literal["micro", "summary", "drop", "caps", "system", "tools", "edit"]


@dataclass(frozen=True, slots=True)
class SentView:
    """What one call sent, as far as the next one is compared with it."""

    system: tuple[str, ...]
    tools: tuple[str, ...]
    digests: tuple[str, ...]
    tokens: tuple[int, ...]
    layout: Layout
    length: int
    history_hash: str


def sent_view(planned: Plan, request: ChatRequest) -> SentView | None:
    """Return what a plan sends; None for one that could not be made as it should."""
    state, reading = planned.state, planned.reading
    if state is None or reading is None:
        return None
    digest = planned.given.means.sizes.digests.sent
    return SentView(
        tuple(request.system),
        tuple(f"{tool.name}\n{tool.description}\n{tool.schema}" for tool in request.tools),
        tuple(digest(item.message) for item in state.view.items),
        tuple(item.after for item in state.view.items),
        state.view.layout,
        len(reading.history),
        reading.hashes[-1],
    )


def compare(before: SentView | None, now: SentView, hashes: Sequence[str]) -> dict[str, Any] | None:
    """Return how many leading messages equal the former call's, and what ended the equality.

    `hashes` are those of every prefix of the present history. None without a former call.
    """
    if before is None:
        return None
    systems = len(now.system) if before.system == now.system else 0
    pairs = zip(before.digests, now.digests, strict=False)
    equal = next((n for n, (was, new) in enumerate(pairs) if was != new), None)
    whole = min(len(before.digests), len(now.digests))
    equal = whole if equal is None else equal
    if before.system != now.system:
        equal = 0
    broke = _broke(before, now, equal, hashes)
    tokens = sum(now.tokens[:equal])
    return {"messages": systems + equal, "tokens": tokens, "broke": broke}


def _broke(before: SentView, now: SentView, equal: int, hashes: Sequence[str]) -> Broke | None:
    if before.system != now.system:
        return "system"
    if before.tools != now.tools:
        return "tools"
    if equal == len(before.digests):
        return None
    was, new = before.layout, now.layout
    if before.length >= len(hashes) or hashes[before.length] != before.history_hash:
        return "edit"
    if was.cache != new.cache:
        return "summary"
    if was.drop_n != new.drop_n:
        return "drop"
    return "micro" if was.micro_n != new.micro_n else "caps"
