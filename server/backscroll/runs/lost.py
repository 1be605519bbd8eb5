"""Runs whose worker was lost: whoever finds the expired lease ends them."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from backscroll.agui.closing import close_blocks, close_run
from backscroll.agui.encode import RunIds
from backscroll.agui.kept_activities import write_activities
from backscroll.agui.live_run import LiveRun
from backscroll.agui.messages import Shown
from backscroll.agui.run_end import failed_with
from backscroll.agui.terminal import settled
from backscroll.conversation.history import heal
from backscroll.kernel.errors import LeaseLost, ResumeRefused
from backscroll.kernel.message import Message, Role
from backscroll.kernel.texts import Texts
from backscroll.store.chat_memory import RedisChatMemory
from backscroll.store.entry import Entry
from backscroll.store.keys import ThreadKey
from backscroll.store.pause_record import read_said
from backscroll.store.pauses import ThreadPauses
from backscroll.store.runs import RunStore
from backscroll.store.thread_log import RunLease, ThreadLog

logger = logging.getLogger(__name__)

PAGE = 1000


class LostRuns:
    """Finds and ends runs that nobody writes any more."""

    def __init__(
        self, log: ThreadLog, runs: RunStore, lease_s: float, texts: Texts, shown: Shown
    ) -> None:
        self._log, self._runs, self._lease_s = log, runs, lease_s
        self._texts, self._shown = texts, shown
        self._pauses = ThreadPauses(log)

    async def end_all(self) -> int:
        """End every run whose lease has expired; returns how many."""
        leases = await self._runs.claim_all_lost(self._lease_s)
        for lease in leases:
            await self._end(lease)
        return len(leases)

    async def end_thread(self, thread: ThreadKey) -> None:
        """End the run of one thread, if its lease has expired."""
        lease = await self._runs.claim_lost(thread, self._lease_s)
        if lease is not None:
            await self._end(lease)

    async def _end(self, lease: RunLease) -> None:
        """Close what the run left open, keep what it had said, and fail it."""
        thread = lease.thread
        info = await self._runs.run_info(thread.owner, lease.run)
        live = LiveRun.of(await self._entries(lease, info.first - 1 if info else 0))
        run = RunIds(thread.thread_id, lease.run)
        memory = RedisChatMemory(self._log, thread.owner, lease=lease)
        try:
            closing = close_blocks(live, run)
            history = await memory.get(thread.thread_id)
            unstored = live.unstored(history)
            kept = keepable(unstored)
            missing = await self._missing(thread, [*history, *kept])
            said = read_said(await self._runs.takeover(thread))
            stored = await memory.add(thread.thread_id, [*kept, *missing, *said])
            made = stored[len(kept) : len(kept) + len(missing)]
            ending = close_run(
                live,
                run,
                failed_with("worker_lost"),
                [*history, *stored],
                made,
                is_corrected=any(message.tool_calls for message in unstored),
                shown=self._shown,
            )
            shown = settled(live.activities.values(), failed_with("worker_lost"))
            await self._runs.finish(
                lease,
                [*closing, *ending],
                status="error",
                error="worker_lost",
                activities=write_activities(shown, history[-1].id if history else None),
            )
        except LeaseLost:
            logger.info("run %s was ended by another worker", lease.run)
            return
        logger.warning("run %s was lost with its worker and ended", lease.run)

    async def _missing(self, thread: ThreadKey, history: Sequence[Message]) -> list[Message]:
        """Return results for calls whose outcome nobody knows; those that wait have none yet."""
        try:
            waits = (await self._pauses.read(thread)).pause is not None
        except ResumeRefused:
            # Whatever it says, the thread waits: its calls are left alone.
            waits = True
        if waits:
            return []
        return heal(history, self._texts.outcome_unknown, "unknown")

    async def _entries(self, lease: RunLease, after: int) -> list[Entry]:
        found: list[Entry] = []
        while True:
            page = await self._log.read(lease.thread, after, PAGE)
            found += [entry for entry in page if entry.run == lease.run]
            if len(page) < PAGE:
                return found
            after = page[-1].seq


def keepable(unstored: Sequence[Message]) -> list[Message]:
    """Return what was shown but not stored, as it may be kept: text incomplete, calls left out.

    A call that was received in part, or whose message was never stored, is not run by anybody.
    """
    kept: list[Message] = []
    for message in unstored:
        if message.role is Role.ASSISTANT and (message.text or message.reasoning):
            kept.append(message.replace(tool_calls=(), incomplete=True))
        elif message.role is Role.TOOL:
            kept.append(message)
    return kept
