"""A request to a thread where another run is active: room is made for it, or it is refused."""

from __future__ import annotations

import asyncio

from backscroll.agui.input import RunInput
from backscroll.agui.options import AgentRules, busy_of
from backscroll.agui.refusal import RequestRefused
from backscroll.runs.hub import Hub
from backscroll.runs.lost import LostRuns
from backscroll.store.keys import ThreadKey
from backscroll.store.run_record import Busy
from backscroll.store.runs import RunStore
from backscroll.store.thread_log import ThreadLog


class BusyThreads:
    """Waits for runs that stop, stops those that may be superseded, and refuses the rest."""

    def __init__(
        self,
        log: ThreadLog,
        hub: Hub,
        store: RunStore,
        lost: LostRuns,
        rules: AgentRules,
        wait_s: float,
    ) -> None:
        self._log, self._hub, self._store, self._lost = log, hub, store, lost
        self._rules, self._wait_s = rules, wait_s

    async def make_room(self, thread: ThreadKey, request: RunInput, busy: Busy) -> None:
        """Return when it may be tried again; raises `thread_busy`."""
        if busy.expired:
            await self._lost.end_thread(thread)
            return
        head = await self._log.head(thread)
        policy = busy_of(request.options, self._rules)
        if policy == "supersede":
            await self._store.stop(thread, busy.run_id)
        elif head.stop != busy.run_id:
            message = f"Thread {thread.thread_id} is busy with run {busy.run_id}."
            raise RequestRefused("thread_busy", message, {"runId": busy.run_id})
        if not await self._until_ended(thread, busy.run_id):
            message = f"Thread {thread.thread_id} is still busy with run {busy.run_id}."
            raise RequestRefused("thread_busy", message, {"runId": busy.run_id})

    async def _until_ended(self, thread: ThreadKey, run_id: str) -> bool:
        """Wait until a stopping run has ended; False when that takes too long."""
        async with self._hub.watch(thread) as feed:
            cursor = feed.head
            try:
                async with asyncio.timeout(self._wait_s):
                    while (await self._log.head(thread)).run == run_id:
                        cursor = (await feed.after(cursor))[-1].seq
            except TimeoutError:
                return False
        return True
