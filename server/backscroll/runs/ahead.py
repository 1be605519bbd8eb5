"""Summaries made between runs, so that the call that needs one does not wait for it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from backscroll.agent.agent import Agent
from backscroll.compaction.decision import CompactionFinished
from backscroll.compaction.filter import Compaction
from backscroll.kernel.errors import StoreError
from backscroll.kernel.ports import CancelToken
from backscroll.runs.hub import Feed, Hub
from backscroll.runs.thread_compaction import ThreadCompaction
from backscroll.store.keys import ThreadKey
from backscroll.store.thread_log import ThreadLog
from backscroll.store.threads import ThreadStore

logger = logging.getLogger(__name__)

AT_ONCE = 2
WAITING = 100


class AheadSummaries:
    """Looks at threads whose run has ended, where the agent's compaction wants that.

    A few are made at once, some threads wait their turn, and those beyond are passed over: the
    next call makes its summary itself then. `run` must be running for anything to happen.
    """

    def __init__(
        self, agent: Agent, log: ThreadLog, hub: Hub, is_leaving: Callable[[], bool]
    ) -> None:
        self._of, self._threads, self._hub = ThreadCompaction(agent, log), ThreadStore(log), hub
        self._is_leaving = is_leaving
        self._wanted = agent.compaction is not None and agent.compaction.background
        self._queue: asyncio.Queue[ThreadKey] = asyncio.Queue(WAITING)

    def after_run(self, thread: ThreadKey) -> None:
        """Take in that a run of this thread has ended."""
        if not self._wanted:
            return
        try:
            self._queue.put_nowait(thread)
        except asyncio.QueueFull:
            logger.info("thread %s gets no summary ahead of need: too many wait", thread.key)

    async def run(self) -> None:
        """Make summaries until cancelled."""
        async with asyncio.TaskGroup() as group:
            for _ in range(AT_ONCE):
                group.create_task(self._work())

    async def _work(self) -> None:
        while True:
            thread = await self._queue.get()
            try:
                await self._look_at(thread)
            except StoreError as error:
                logger.warning("thread %s gets no summary ahead of need: %s", thread.key, error)
            except Exception:
                logger.exception("thread %s gets no summary ahead of need", thread.key)

    async def _look_at(self, thread: ThreadKey) -> None:
        """Make a summary if the thread's next calls need one; a run that starts comes first."""
        compaction = self._of.bound(thread)
        if compaction is None or self._is_leaving():
            return
        async with self._hub.watch(thread) as feed:
            record = await self._threads.record(thread)
            if record is None or record.run or record.pause:
                return
            cancel = CancelToken()
            listening = asyncio.create_task(_cancel_at_start(feed, record.entries, cancel))
            try:
                done = await self._prepared(compaction, thread, cancel)
            finally:
                listening.cancel()
                await asyncio.wait([listening])
        if done is not None:
            await self._of.note(thread, done)

    async def _prepared(
        self, compaction: Compaction, thread: ThreadKey, cancel: CancelToken
    ) -> CompactionFinished | None:
        return await compaction.prepare(await self._of.request(thread), cancel)


async def _cancel_at_start(feed: Feed, cursor: int, cancel: CancelToken) -> None:
    """Cancel as soon as a run starts, on whichever worker, or that can no longer be heard."""
    try:
        while True:
            for held in await feed.after(cursor):
                cursor = held.seq
                if held.entry.type == "RUN_STARTED":
                    cancel.cancel("a run starts")
                    return
    except StoreError as error:
        cancel.cancel(str(error))
