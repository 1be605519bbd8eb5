"""Joining a thread: what a reader is sent before the tail, folded from one cut of the log."""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from backscroll.agui.client_list import open_batch
from backscroll.agui.cursor import Cursor
from backscroll.agui.join import (
    Cut,
    LastRun,
    OpeningPair,
    Prelude,
    Visible,
    ended_prelude,
    idle_prelude,
    live_prelude,
    opening_pair,
)
from backscroll.agui.kept_activities import read_activities
from backscroll.agui.live_run import LiveRun
from backscroll.agui.messages import Shown
from backscroll.agui.options import AgentRules
from backscroll.agui.refusal import RequestRefused
from backscroll.kernel.errors import ResumeRefused
from backscroll.kernel.message import Message
from backscroll.store.entry import Entry
from backscroll.store.history_reader import HistoryReader
from backscroll.store.keys import ThreadKey
from backscroll.store.pause_record import PauseRecord
from backscroll.store.pauses import ThreadPauses
from backscroll.store.run_record import RunInfo
from backscroll.store.runs import RunStore
from backscroll.store.thread_log import ThreadLog
from backscroll.store.threads import ThreadRecord, ThreadStore

logger = logging.getLogger(__name__)

PAGE = 1000
_ENDS: dict[str, Literal["completed", "cancelled", "error"]] = {
    "cancelled": "cancelled",
    "error": "error",
}


@dataclass(frozen=True, slots=True)
class JoinedRun:
    """The prelude of a run, and whether its tail is still to come."""

    prelude: Prelude
    is_live: bool


class Joiner:
    """Makes join preludes; reads only."""

    def __init__(self, log: ThreadLog, runs: RunStore, rules: AgentRules) -> None:
        self._log, self._runs, self._rules = log, runs, rules
        self._shown = Shown(rules.show_reasoning, rules.result_chars)
        self._threads, self._pauses = ThreadStore(log), ThreadPauses(log)
        self._history = HistoryReader(log.clients, log.keys)

    async def of_thread(self, thread: ThreadKey, max_frame: int) -> Prelude:
        """Return the prelude of a thread; one nobody knows has no messages."""
        record = await self._threads.record(thread)
        if record is None:
            cut = Cut(Cursor(0), await self._log.now())
            return idle_prelude(Visible(thread.thread_id, shown=self._shown), cut)
        cut = _cut(record)
        visible = await self._visible(thread, cut)
        if record.run:
            live = await self._live(thread, record.run, cut)
            if live is not None and live.terminal is None:
                return live_prelude(visible, cut, live, max_frame)
        last = await self._last(thread, record)
        pending: list[str] = []
        pauses = PauseRecord()
        if record.status == "waiting":
            try:
                pauses = await self._pauses.read(thread)
            except ResumeRefused as error:
                # The thread can be read all the same; what it waits for is not taken for nothing.
                logger.error("the pause of %s cannot be read: %s", thread.key, error)
                run_id = last.run_id if last is not None else record.last_run
                last = LastRun(run_id, "error", error.code)
            else:
                batch = open_batch(visible.history, self._rules, pauses)
                pending = [call.id for call in batch.pending]
        expires_at = pauses.pause.expires_at if pauses.pause else None
        questions = pauses.open_questions
        return idle_prelude(visible, cut, last, pending, max_frame, questions, expires_at)

    async def of_run(self, thread: ThreadKey, run_id: str, max_frame: int) -> JoinedRun:
        """Return the prelude of one run: live, or closed by its own terminal event."""
        record = await self._threads.record(thread)
        info = await self._runs.run_info(thread.owner, run_id)
        if record is None or info is None:
            raise RequestRefused("not_found", f"There is no run {run_id}.")
        cut = _cut(record)
        live = await self._live(thread, run_id, cut)
        visible = await self._visible(thread, cut)
        if live is None or live.terminal is None:
            return JoinedRun(live_prelude(visible, cut, live or LiveRun(), max_frame), True)
        terminal = json.dumps(live.terminal, ensure_ascii=False, separators=(",", ":")).encode()
        return JoinedRun(ended_prelude(visible, cut, run_id, terminal, max_frame), False)

    async def opening(
        self, thread: ThreadKey, history: Sequence[Message], held: int, max_frame: int
    ) -> OpeningPair:
        """Return the two snapshots for a client that is behind."""
        head = await self._log.head(thread)
        cut = Cut(Cursor(head.seq, head.epoch), head.time)
        shown = {message.id or "" for message in history}
        activities = read_activities(await self._runs.activities(thread), shown)
        visible = Visible(thread.thread_id, tuple(history), None, activities, self._shown)
        return opening_pair(visible, held, cut, max_frame)

    async def _visible(self, thread: ThreadKey, cut: Cut) -> Visible:
        stored = await self._history.read(thread)
        # What was stored after the cut is announced by an entry of the tail.
        history = tuple(m.message for m in stored.live if m.seq <= cut.cursor.seq)
        packed = await self._log.state(thread)
        state: Any = None if packed is None else json.loads(packed)
        shown = {message.id or "" for message in history}
        activities = read_activities(await self._runs.activities(thread), shown)
        return Visible(thread.thread_id, history, state, activities, self._shown)

    async def _live(self, thread: ThreadKey, run_id: str, cut: Cut) -> LiveRun | None:
        info = await self._runs.run_info(thread.owner, run_id)
        if info is None:
            return None
        return LiveRun.of(await self._entries(thread, info, cut.cursor.seq))

    async def _entries(self, thread: ThreadKey, info: RunInfo, until: int) -> list[Entry]:
        found: list[Entry] = []
        after = info.first - 1
        last = until if info.ended is None else min(until, info.last)
        while after < last:
            page = await self._log.read(thread, after, PAGE)
            if not page:
                break
            found += [e for e in page if e.run == info.run_id and e.seq <= last]
            after = page[-1].seq
        return found

    async def _last(self, thread: ThreadKey, record: ThreadRecord) -> LastRun | None:
        run_id = record.last_run or record.run
        if not run_id:
            return None
        info = await self._runs.run_info(thread.owner, run_id)
        status = _ENDS.get(record.last_status, "completed")
        return LastRun(run_id, status, info.error or None if info else None)


def _cut(record: ThreadRecord) -> Cut:
    return Cut(Cursor(record.entries, record.epoch), record.activity)
