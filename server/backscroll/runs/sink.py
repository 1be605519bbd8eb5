"""The one writer of a run's log: events of the agent in, batches of entries out, in order."""

from __future__ import annotations

import asyncio
import logging
import secrets
from functools import partial

from backscroll.agent.events import AgentEvent, CallStarted, Reported
from backscroll.agui.coalesce import Batch
from backscroll.agui.encode import RunEncoder
from backscroll.compaction.beside import beside
from backscroll.compaction.decision import CompactionFinished
from backscroll.kernel.errors import StoreError
from backscroll.kernel.request import Note
from backscroll.runs.activity import CompactionCards
from backscroll.runs.notes import note_blob
from backscroll.runs.recorder import Recorded, Recorder
from backscroll.runs.run_memory import RunMemory
from backscroll.store.entry import NewEntry
from backscroll.store.thread_log import RunLease, ThreadLog

logger = logging.getLogger(__name__)


class RunSink:
    """Takes a turn's events; deltas wait a little so that a batch of them is one append.

    A call returns when what it brought is in the log, unless it was a delta that waits. An append
    that fails makes every later call fail the same way; `settle` writes what it left unwritten.
    """

    def __init__(
        self,
        log: ThreadLog,
        lease: RunLease,
        encoder: RunEncoder,
        recorder: Recorder,
        memory: RunMemory,
        cards: CompactionCards,
        *,
        coalesce_s: float,
        coalesce_deltas: int,
    ) -> None:
        self._log, self._lease = log, lease
        self._encoder, self._recorder, self._memory = encoder, recorder, memory
        self._cards = cards
        self._coalesce_s = coalesce_s
        self._batch = Batch(coalesce_deltas)
        self._writing = asyncio.Lock()
        self._waiting = asyncio.Event()
        self._unwritten: tuple[str, Recorded] | None = None
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
            await self._write_batch()

    async def note(self, note: Note) -> None:
        """Write a note of the run's own, after what waits."""
        async with self._writing:
            await self._write_batch()
            await self._look_up_note(note)
            await self._append(self._recorder.note(note))

    async def settle(self) -> None:
        """Write what a failed append left unwritten, and what came after it.

        What the encoder has made must be in the log before anything that follows from it. May be
        called again when it raises.
        """
        async with self._writing:
            await self._send()
            self._failure = None
            await self._write_batch()

    async def run(self) -> None:
        """Write waiting deltas when their time is up, until cancelled."""
        while True:
            await self._waiting.wait()
            await asyncio.sleep(self._coalesce_s)
            self._waiting.clear()
            try:
                await self.flush()
            except Exception:
                # Told to the turn by the next event it reports.
                return

    async def _write_batch(self) -> None:
        if self._failure is not None:
            raise self._failure
        entries: list[NewEntry] = []
        blobs: dict[str, bytes] = {}
        meta: dict[str, str] = {}
        try:
            for event in self._batch.take():
                text = await self._look_up(event)
                recorded = await self._record(event)
                entries += recorded.entries
                blobs.update(recorded.blobs)
                meta.update(recorded.meta)
                entries += self._encoder.feed(event)
                entries += self._cards.take(event, text)
        except Exception as error:
            self._keep(Recorded(tuple(entries), blobs, meta))
            self._failure = error
            raise
        await self._append(Recorded(tuple(entries), blobs, meta))

    async def _record(self, event: AgentEvent) -> Recorded:
        """Return what operators read of an event."""
        memory = self._memory
        take = partial(self._recorder.take, event, memory.last_read, memory.rewrites)
        if not isinstance(event, CallStarted):
            return take()
        history = (message for _, message in memory.last_read)
        return await beside(take, event.request.messages, history)

    async def _append(self, recorded: Recorded) -> None:
        self._keep(recorded)
        try:
            await self._send()
        except Exception as error:
            self._failure = error
            raise

    def _keep(self, recorded: Recorded) -> None:
        """Hold on to what must be in the log before anything that comes later."""
        if recorded.entries or recorded.blobs:
            self._unwritten = (secrets.token_hex(8), recorded)

    async def _send(self) -> None:
        """Write the batch under its name, under which it is written once however often it comes."""
        if self._unwritten is None:
            return
        name, recorded = self._unwritten
        await self._log.append(
            self._lease.thread,
            recorded.entries,
            fence=self._lease.fence,
            batch=name,
            blobs=recorded.blobs,
            meta=recorded.meta,
        )
        self._unwritten = None

    async def _look_up(self, event: AgentEvent) -> str | None:
        """Read what the log knows of what an event reports; returns the text of its summary."""
        report = event.report if isinstance(event, Reported) else None
        if isinstance(report, CompactionFinished):
            await self._number_compaction()
        if isinstance(report, Note):
            await self._look_up_note(report)
        elif isinstance(report, CompactionFinished) and self._cards.has_text:
            return await self._summary(report)
        return None

    async def _number_compaction(self) -> None:
        """Number a decision; operators make some, too, whatever run is under way."""
        try:
            number = await self._log.allot_compaction(self._lease.thread)
        except StoreError as error:
            # If the store is down, the append that follows says so.
            logger.debug("%s", error)
            return
        self._recorder.number_compaction(number)

    async def _look_up_note(self, note: Note) -> None:
        if note.key is None or self._recorder.is_noted(note.key):
            return
        name, _ = note_blob(note.key)
        if await self._blob(name) is not None:
            self._recorder.mark_noted(note.key)

    async def _summary(self, report: CompactionFinished) -> str | None:
        name = (report.decision.get("summary") or {}).get("sha256")
        if name is None:
            return None
        data = report.blobs.get(name) or await self._blob(name)
        return None if data is None else data.decode("utf-8", "replace")

    async def _blob(self, name: str) -> bytes | None:
        try:
            return (await self._log.blobs(self._lease.thread, [name])).get(name)
        except StoreError as error:
            # If the store is down, the append that follows says so.
            logger.debug("%s", error)
            return None
