"""Deltas put together, so that a batch of them is one append; the runner owns the timer."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from backscroll.agent.events import AgentEvent, ReasoningDelta, TextDelta, ToolCallArgs

Delta = TextDelta | ReasoningDelta | ToolCallArgs


def merge(events: Sequence[AgentEvent]) -> list[AgentEvent]:
    """Return the events with neighbouring deltas of one message or call made one."""
    out: list[AgentEvent] = []
    pieces: list[str] = []
    for event in events:
        if out and isinstance(event, Delta) and _same(out[-1], event):
            pieces.append(event.delta)
            continue
        _finish(out, pieces)
        out.append(event)
        pieces = [event.delta] if isinstance(event, Delta) else []
    _finish(out, pieces)
    return out


class Batch:
    """Events waiting to be written; `add` says when they must not wait any longer."""

    def __init__(self, limit: int = 16) -> None:
        self._limit = limit
        self._events: list[AgentEvent] = []
        self._begun: set[tuple[type[AgentEvent], str]] = set()

    def __len__(self) -> int:
        return len(self._events)

    def add(self, event: AgentEvent) -> bool:
        """Take an event in; true when the batch is to be written now.

        That is for everything that is not a delta, for the first delta of a message or call, and
        when the batch is full.
        """
        self._events.append(event)
        if not isinstance(event, Delta):
            return True
        key = _key(event)
        if key not in self._begun:
            self._begun.add(key)
            return True
        return len(self._events) >= self._limit

    def take(self) -> list[AgentEvent]:
        """Return what waits, merged, and begin anew."""
        events, self._events = self._events, []
        return merge(events)


def _key(event: Delta) -> tuple[type[AgentEvent], str]:
    return type(event), event.call_id if isinstance(event, ToolCallArgs) else event.message_id


def _same(last: AgentEvent, event: Delta) -> bool:
    return isinstance(last, Delta) and _key(last) == _key(event)


def _finish(out: list[AgentEvent], pieces: list[str]) -> None:
    if len(pieces) > 1:
        out[-1] = dataclasses.replace(out[-1], delta="".join(pieces))  # type: ignore[call-arg]
