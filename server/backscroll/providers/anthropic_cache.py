"""Where a provider's prompt cache is marked: at most four places, by strategy."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from backscroll.kernel.model import Cache
from backscroll.providers.anthropic_messages import THOUGHTS

MAX_MARKS = 4

Block = dict[str, Any]
Places = Mapping[int, tuple[Mapping[str, Any], Block]]
"""The turn each message of the request went into, and its last block there."""

_SYSTEM = ("system", "system_and_tools", "system_and_conversation", "stable")
_TOOLS = ("tools", "system_and_tools", "stable")
_CONVERSATION = ("conversation", "system_and_conversation")


def mark(parts: Mapping[str, Any], places: Places, cache: Cache | None) -> None:
    """Set the marks of a strategy in the lists of a body; marked blocks are replaced by copies.

    `cache.at` are indexes of the request's messages.
    """
    if cache is None or cache.strategy == "none":
        return
    control = {"type": "ephemeral"}
    if cache.ttl is not None:
        control["ttl"] = cache.ttl
    ends = [(blocks, end) for blocks, end in _ends(parts, places, cache) if blocks]
    for blocks, end in ends[:MAX_MARKS]:
        _mark(blocks, end, control)


def _ends(
    parts: Mapping[str, Any], places: Places, cache: Cache
) -> Iterator[tuple[list[Block], int]]:
    """Yield each list to mark, and the position in it whose block is to carry the mark."""
    if cache.strategy in _SYSTEM:
        yield parts["system"], len(parts["system"]) - 1
    if cache.strategy in _TOOLS:
        tools = parts.get("tools", [])
        yield tools, len(tools) - 1
    turns = parts["messages"]
    if cache.strategy in _CONVERSATION and turns:
        yield turns[-1]["content"], len(turns[-1]["content"]) - 1
    if cache.strategy == "tool_results":
        yield from _last_result(turns)
    if cache.strategy == "stable":
        for index in sorted(set(cache.at)):
            if index in places:
                yield from _place(*places[index])


def _last_result(turns: list[Mapping[str, Any]]) -> Iterator[tuple[list[Block], int]]:
    for turn in reversed(turns):
        blocks = turn["content"]
        found = [n for n, block in enumerate(blocks) if block.get("type") == "tool_result"]
        if found:
            yield blocks, found[-1]
            return


def _place(turn: Mapping[str, Any], last: Block) -> Iterator[tuple[list[Block], int]]:
    blocks = turn["content"]
    found = [n for n, block in enumerate(blocks) if block is last]
    if found:
        yield blocks, found[0]


def _mark(blocks: list[Block], end: int, control: Mapping[str, str]) -> None:
    """Mark the block there, or the one before where it cannot carry a mark."""
    for place in range(end, -1, -1):
        if blocks[place].get("type") not in THOUGHTS:
            blocks[place] = {**blocks[place], "cache_control": dict(control)}
            return
