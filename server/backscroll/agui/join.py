"""What a reader is sent before the tail of a thread: the join prelude and the opening pair.

All of it is folded from one cut of the log and the history as it was there. Nothing of it is
stored: these are synthetic events, made for one connection, with the time of the cut.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from ag_ui import core as ag

from backscroll.agui.cursor import Cursor
from backscroll.agui.fit import ENVELOPE_BYTES, fit_messages, fits
from backscroll.agui.lanes import DELTA_CHARS, split_delta
from backscroll.agui.live_run import Activity, LiveRun
from backscroll.agui.messages import Shown, WireMessage
from backscroll.agui.pages import page_events
from backscroll.agui.questions import interrupts
from backscroll.agui.snapshot import snapshot_of, visible_messages
from backscroll.agui.wire import event_json, read_event
from backscroll.kernel.message import Message
from backscroll.kernel.turn import PauseItem

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
    questions: Sequence[PauseItem] = (),
    expires_at: float | None = None,
) -> Prelude:
    """Return the prelude of a thread without a live run; one nobody knows has no messages.

    It ends with the questions that are still open, if any, else with the calls that wait for the
    client.
    """
    run_id = last.run_id if last else NO_RUN
    metadata = None
    if last is not None and last.status != "completed":
        told = {"status": last.status, **({"code": last.code} if last.code else {})}
        metadata = {"backscroll": {"last_run": told}}
    finished = ag.RunFinishedEvent(
        thread_id=thread.thread_id,
        run_id=run_id,
        outcome=interrupts(questions, expires_at)
        if questions
        else ag.RunFinishedSuccessOutcome(pending_tool_call_ids=list(pending) or None),
        metadata=metadata,
    )
    return _prelude(thread, cut, _started(thread, run_id), [finished], max_frame)


def live_prelude(thread: Visible, cut: Cut, live: LiveRun, max_frame: int | None = None) -> Prelude:
    """Return the prelude of a thread, or of its run, while that run is live."""
    started = _started(thread, live.run_id)
    started.parent_run_id = live.parent_run_id
    return _prelude(thread, cut, started, list(_open(live, max_frame)), max_frame, live)


def ended_prelude(
    thread: Visible, cut: Cut, run_id: str, terminal: bytes, max_frame: int | None = None
) -> Prelude:
    """Return the prelude of one run that has ended, closed by its own terminal event."""
    started = _started(thread, run_id)
    return _prelude(thread, cut, started, [read_event(terminal)], max_frame)


def opening_pair(thread: Visible, held: int, cut: Cut, max_frame: int | None = None) -> OpeningPair:
    """Return the pair for a client that holds the first `held` messages of the history."""
    whole = visible_messages(thread.history, shown=thread.shown, activities=thread.activities)
    both = (visible_messages(thread.history[:held], shown=thread.shown), whole)
    for fit in (list, fit_messages):
        events = [snapshot_of(fit(messages)) for messages in both]
        texts = [event_json(event, cut.time) for event in events if event is not None]
        if all(fits(text, max_frame) for text in texts):
            return OpeningPair(after=tuple(texts))
    pages = page_events(thread.thread_id, whole, max_frame or 0)
    return OpeningPair(before=tuple(event_json(page, cut.time) for page in pages))


def _prelude(
    thread: Visible,
    cut: Cut,
    started: ag.RunStartedEvent,
    ending: Sequence[ag.BaseEvent],
    max_frame: int | None,
    live: LiveRun | None = None,
) -> Prelude:
    stale = live.spans if live else []
    messages = visible_messages(
        thread.history, live, shown=thread.shown, activities=thread.activities
    )
    pages, snapshot = _fitted(thread.thread_id, messages, stale, cut, max_frame)
    state = [] if thread.state is None else [ag.StateSnapshotEvent(snapshot=dict(thread.state))]
    texts = [
        *pages,
        event_json(started, cut.time),
        *snapshot,
        *(event_json(event, cut.time) for event in [*state, *ending]),
    ]
    return Prelude(thread.thread_id, cut.cursor, tuple(texts))


def _fitted(
    thread_id: str,
    messages: list[WireMessage],
    stale: Sequence[str],
    cut: Cut,
    max_frame: int | None,
) -> tuple[list[str], list[str]]:
    """Return the snapshot of messages within the limit: as pages, or as one event."""
    for fit in (list, fit_messages):
        snapshot = snapshot_of(fit(messages), stale)
        if snapshot is None:
            return [], []
        text = event_json(snapshot, cut.time)
        if fits(text, max_frame):
            return [], [text]
    pages = page_events(thread_id, messages, max_frame or 0)
    return [event_json(page, cut.time) for page in pages], []


def _started(thread: Visible, run_id: str) -> ag.RunStartedEvent:
    return ag.RunStartedEvent(
        thread_id=thread.thread_id, run_id=run_id, protocol_version=ag.PROTOCOL_VERSION
    )


def _open(live: LiveRun, max_frame: int | None) -> Iterator[ag.BaseEvent]:
    """Yield what is open at the cut, restated whole."""
    # A character takes at most six bytes of JSON.
    chars = DELTA_CHARS if max_frame is None else (max_frame - ENVELOPE_BYTES - 1024) // 6
    yield from (ag.StepStartedEvent(step_name=name) for name in live.steps)
    if live.predicts is not None:
        yield ag.CustomEvent(name="PredictState", value=live.predicts)
    yield from (ag.ReasoningStartEvent(message_id=span) for span in live.spans)
    for span, piece in live.reasoning.items():
        yield ag.ReasoningMessageStartEvent(message_id=span)
        for delta in split_delta(piece.whole, chars):
            yield ag.ReasoningMessageContentEvent(message_id=span, delta=delta)
    for message_id, piece in live.texts.items():
        yield ag.TextMessageStartEvent(message_id=message_id, role="assistant")
        for delta in split_delta(piece.whole, chars):
            yield ag.TextMessageContentEvent(message_id=message_id, delta=delta)
    for call_id, piece in live.calls.items():
        yield ag.ToolCallStartEvent(
            tool_call_id=call_id, tool_call_name=piece.name, parent_message_id=piece.message_id
        )
        for delta in split_delta(piece.whole, chars):
            yield ag.ToolCallArgsEvent(tool_call_id=call_id, delta=delta)
