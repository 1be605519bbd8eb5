"""Delivering the entries of a thread to one reader: in order, each once, none left out."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass

from backscroll.agui.dialect import Dialect
from backscroll.agui.fit import fits
from backscroll.runs.hub import Feed, Held

TERMINAL = frozenset({"RUN_FINISHED", "RUN_ERROR"})
PAGE = 200

WriteFrames = Callable[[Iterable[str]], Awaitable[None]]


class NeedsResync(Exception):
    """The feed cannot go on from here: a frame does not fit, or the log no longer reaches back."""

    def __init__(self, cursor: int) -> None:
        self.cursor = cursor
        super().__init__(f"cannot go on after seq {cursor}")


@dataclass(slots=True)
class Delivery:
    """One feed on its way to one reader; `cursor` is the last seq delivered or passed over.

    With `run`, only that run's events are delivered, and delivery ends with its terminal event.
    """

    feed: Feed
    dialect: Dialect
    write: WriteFrames
    cursor: int
    max_frame: int
    run: str | None = None

    async def until_terminal(self) -> None:
        """Deliver until the run has ended; without a run, until cancelled."""
        while True:
            for held in await self.feed.after(self.cursor, PAGE):
                entry = held.entry
                if entry.kind == "event" and self.run in (None, entry.run):
                    await self.write(self._frames(held))
                    if self.run is not None and entry.type in TERMINAL:
                        self.cursor = held.seq
                        return
                self.cursor = held.seq

    async def until_started(self) -> None:
        """Deliver the run's RUN_STARTED and nothing more."""
        assert self.run is not None
        while True:
            for held in await self.feed.after(self.cursor, 1):
                entry = held.entry
                is_ours = entry.kind == "event" and entry.run == self.run
                if is_ours:
                    await self.write(self._frames(held))
                self.cursor = held.seq
                if is_ours:
                    return

    def _frames(self, held: Held) -> Iterable[str]:
        """Return an entry as frames that the reader can take; raises NeedsResync."""
        text = held.text(self.dialect.form, self.dialect.frame)
        if fits(text, self.max_frame):
            return (text,)
        fitted = self.dialect.fitted(held.entry, self.max_frame)
        if fitted is None:
            raise NeedsResync(self.cursor)
        return fitted
