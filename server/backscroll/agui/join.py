"""What a reader is sent before the tail of a thread: the join prelude and the opening pair.

All of it is folded from one cut of the log and the history as it was there. Nothing of it is
stored: these are synthetic events, made for one connection, with the time of the cut.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from backscroll.agui.cursor import Cursor
from backscroll.agui.live_run import Activity, LiveRun
from backscroll.agui.messages import Shown
from backscroll.kernel.message import Message

NO_RUN = "backscroll-join"
"""The run id of the prelude of a thread that never had a run."""


@dataclass(frozen=True, slots=True)
class Cut:
    """Where a reader joins: the head of the log at that moment, and its time."""

    cursor: Cursor
    time: int


@dataclass(frozen=True, slots=True)
class LastRun:
    """The last run of an idle thread and how it ended; `code` is that of a failed run."""

    run_id: str
    status: Literal["completed", "cancelled", "error"] = "completed"
    code: str | None = None


@dataclass(frozen=True, slots=True)
class Visible:
    """What a thread shows at the cut; `state` is None when it never had state."""

    thread_id: str
    history: tuple[Message, ...] = ()
    state: Mapping[str, Any] | None = None
    activities: tuple[Activity, ...] = ()
    shown: Shown = Shown()  # a frozen value


@dataclass(frozen=True, slots=True)
class Prelude:
    """Synthetic events as JSON text, in order; the last one carries the cursor of the cut."""

    thread_id: str
    cursor: Cursor
    texts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class OpeningPair:
    """Two snapshots that put a client right which is behind.

    `before` goes in front of the run's RUN_STARTED (only where the snapshots are paged), `after`
    directly behind it.
    """

    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()


def idle_prelude(
    thread: Visible,
    cut: Cut,
    last: LastRun | None = None,
    pending: Sequence[str] = (),
    max_frame: int | None = None,
) -> Prelude:
    """Return the prelude of a thread without a live run; one nobody knows has no messages."""
    raise NotImplementedError


def live_prelude(thread: Visible, cut: Cut, live: LiveRun, max_frame: int | None = None) -> Prelude:
    """Return the prelude of a thread, or of its run, while that run is live."""
    raise NotImplementedError


def ended_prelude(
    thread: Visible, cut: Cut, run_id: str, terminal: bytes, max_frame: int | None = None
) -> Prelude:
    """Return the prelude of one run that has ended, closed by its own terminal event."""
    raise NotImplementedError


def opening_pair(thread: Visible, held: int, cut: Cut, max_frame: int | None = None) -> OpeningPair:
    """Return the pair for a client that holds the first `held` messages of the history."""
    raise NotImplementedError
