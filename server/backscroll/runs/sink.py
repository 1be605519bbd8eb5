"""The one writer of a run's log: events of the agent in, batches of entries out, in order."""

from __future__ import annotations

import asyncio

from backscroll.agent.events import AgentEvent
from backscroll.agui.coalesce import Batch
from backscroll.agui.encode import RunEncoder
from backscroll.runs.recorder import Recorded, Recorder
from backscroll.runs.run_memory import RunMemory
from backscroll.store.entry import NewEntry
from backscroll.store.thread_log import RunLease, ThreadLog


class RunSink:
    """Takes a turn's events; deltas wait a little so that a batch of them is one append.

    A call returns when what it brought is in the log, unless it was a delta that waits. An append
    that fails makes every later call fail the same way.
    """

    def __init__(
        self,
        log: ThreadLog,
        lease: RunLease,
        encoder: RunEncoder,
        recorder: Recorder,
        memory: RunMemory,
        *,
        coalesce_s: float,
        coalesce_deltas: int,
    ) -> None:
        self._log, self._lease = log, lease
        self._encoder, self._recorder, self._memory = encoder, recorder, memory
        self._coalesce_s = coalesce_s
        self._batch = Batch(coalesce_deltas)
        self._writing = asyncio.Lock()
        self._waiting = asyncio.Event()
        self._failure: Exception | None = None

    async def __call__(self, event: AgentEvent) -> None:
        """Take one event; raises what the log raised."""
        if self._failure is not None:
            raise self._failure
        if self._batch.add(event):
            await self.flush()
        else:
            self._waiting.set()

    async def flush(self) -> None:
        """Write what waits."""
        async with self._writing:
            events = self._batch.take()
            entries: list[NewEntry] = []
            blobs: dict[str, bytes] = {}
            meta: dict[str, str] = {}
            for event in events:
                recorded = self._recorder.take(event, self._memory.last_read)
                entries += recorded.entries
                blobs.update(recorded.blobs)
                meta.update(recorded.meta)
                entries += self._encoder.feed(event)
            await self._append(Recorded(tuple(entries), blobs, meta))

    async def write(self, recorded: Recorded) -> None:
        """Write entries of the run's own, after what waits."""
        await self.flush()
        async with self._writing:
            await self._append(recorded)

    async def run(self) -> None:
        """Write waiting deltas when their time is up, until cancelled."""
        while True:
            await self._waiting.wait()
            await asyncio.sleep(self._coalesce_s)
            self._waiting.clear()
            try:
                await self.flush()
            except Exception as error:
                # Told to the turn by the next event it reports.
                self._failure = error
                return

    async def _append(self, recorded: Recorded) -> None:
        if not recorded.entries and not recorded.blobs:
            return
        await self._log.append(
            self._lease.thread,
            recorded.entries,
            fence=self._lease.fence,
            blobs=recorded.blobs,
            meta=recorded.meta,
        )
