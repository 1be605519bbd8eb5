"""What a start asks for, what it answers, and what is remembered of a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import msgpack

from backscroll.store.entry import NewEntry
from backscroll.store.history import HistoryChange
from backscroll.store.keys import ThreadKey
from backscroll.store.pause_record import PauseChange
from backscroll.store.thread_log import RunLease

RunStatus = Literal["running", "waiting", "ok", "cancelled", "error"]


@dataclass(frozen=True, slots=True)
class StartRequest:
    """A run to start: its first entries, and the messages it adds as decided on a history.

    `entries` come first in the log, then those of the messages. `title` names a thread that has no
    title yet; `takeover` is what another worker would need to go on; `pause` is what becomes of
    the thread's pause.
    """

    thread: ThreadKey
    run_id: str
    agent: str
    fingerprint: str
    entries: Sequence[NewEntry]
    change: HistoryChange
    lease_s: float
    title: str = ""
    parent_run: str = ""
    takeover: bytes = b""
    state: bytes | None = None
    pause: PauseChange | None = None


@dataclass(frozen=True, slots=True)
class RunInfo:
    """What is remembered of a run for as long as its thread exists; times in milliseconds."""

    run_id: str
    thread: ThreadKey
    agent: str = ""
    fingerprint: str = ""
    parent_run: str = ""
    status: RunStatus = "running"
    fence: int = 0
    first: int = 0
    last: int = 0
    started: int = 0
    ended: int | None = None
    error: str = ""
    details: Mapping[str, Any] = field(default_factory=dict)  # JSON values, such as usage


@dataclass(frozen=True, slots=True)
class Started:
    """The run is ours; its first entries are in the log."""

    lease: RunLease
    first: int
    last: int
    time: int


@dataclass(frozen=True, slots=True)
class Busy:
    """Another run is active; `expired` when its worker is lost and it must be ended first."""

    run_id: str
    expired: bool = False


@dataclass(frozen=True, slots=True)
class Known:
    """The run id was used before; on another thread it may be about to start just now."""

    run: RunInfo


@dataclass(frozen=True, slots=True)
class Changed:
    """The history is not the one the request was decided on: read it, decide again."""


@dataclass(frozen=True, slots=True)
class Renewed:
    """The lease holds until this time in milliseconds; `stop` when the run shall end."""

    until: int
    stop: bool


def pack_start(request: StartRequest) -> bytes:
    """Return what is remembered of a start besides its numbers."""
    return _pack([request.agent, request.fingerprint, request.parent_run])


def pack_end(status: RunStatus, error: str, details: Mapping[str, Any]) -> bytes:
    """Return what is remembered of an end besides its numbers."""
    return _pack([status, error, dict(details)])


def read_record(
    thread: ThreadKey, run_id: str, start: bytes, end: bytes | None
) -> tuple[RunInfo, str]:
    """Return a run from its two records, and the batch that started it."""
    fence, first, last, started, batch, packed = start.split(b" ", 5)
    agent, fingerprint, parent = _unpack(packed)
    ended: int | None = None
    status: RunStatus = "running"
    error, details = "", {}
    if end is not None:
        last, at, packed = end.split(b" ", 2)
        status, error, details = _unpack(packed)
        ended = int(at)
    info = RunInfo(
        run_id=run_id,
        thread=thread,
        agent=agent,
        fingerprint=fingerprint,
        parent_run=parent,
        status=status,
        fence=int(fence),
        first=int(first),
        last=int(last),
        started=int(started),
        ended=ended,
        error=error,
        details=details,
    )
    return info, batch.decode()


def _pack(value: Any) -> bytes:  # Any: a list of JSON values
    packed: bytes = msgpack.packb(value, unicode_errors="surrogatepass")
    return packed


def _unpack(data: bytes) -> Any:  # Any: what _pack was given
    return msgpack.unpackb(data, unicode_errors="surrogatepass", strict_map_key=False)
