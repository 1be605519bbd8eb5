"""What one reader is sent of a thread or a run: the beginning that fits it, then the tail."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, replace

from backscroll.agui.cursor import START, Cursor, ResyncReason, check_cursor
from backscroll.agui.dialect import Dialect, DialectName
from backscroll.agui.join import Prelude
from backscroll.runs.hub import Feed
from backscroll.runs.registry import Accepted
from backscroll.store.keys import ThreadKey
from backscroll.web.delivery import Delivery, NeedsResync, WriteFrames
from backscroll.web.services import Services


@dataclass(frozen=True, slots=True)
class Resync:
    """A reader's cursor cannot be continued: what it had, where the log is, and why."""

    thread_id: str
    cursor: Cursor
    head: Cursor
    reason: ResyncReason


@dataclass(frozen=True, slots=True)
class Peer:
    """How one reader is written to.

    `write` writes frames with nothing between them. `resync` announces a prelude in a feed that
    is already open; a peer without it cannot be resynced and NeedsResync is raised instead.
    """

    dialect: DialectName
    is_older: bool
    max_frame: int
    write: WriteFrames
    resync: Callable[[Resync], Awaitable[None]] | None = None


class Feeds:
    """Delivers threads and runs to one peer."""

    def __init__(self, services: Services, peer: Peer) -> None:
        self._services, self._peer = services, peer
        self._worker = services.worker

    async def run(self, accepted: Accepted) -> None:
        """Deliver a run that was just accepted, until its terminal event."""
        async with self._worker.hub.watch(accepted.thread) as feed:
            if accepted.attached:
                await self._attached(feed, accepted)
                return
            delivery = await self._delivery(feed, accepted.after, accepted.run_id)
            if accepted.behind is not None:
                pair = await self._services.joiner.opening(
                    accepted.thread, accepted.history, accepted.behind, self._peer.max_frame
                )
                await self._peer.write(map(delivery.dialect.synthetic, pair.before))
                await delivery.until_started()
                await self._peer.write(map(delivery.dialect.synthetic, pair.after))
            await delivery.until_terminal()

    async def resume_run(self, thread: ThreadKey, run_id: str, first: int, offset: Cursor) -> None:
        """Deliver a run from a cursor on, until its terminal event."""
        async with self._worker.hub.watch(thread) as feed:
            head = await self._worker.log.head(thread)
            reason = check_cursor(offset, head.floor, head.seq, head.epoch)
            if offset == START and head.floor >= first:
                reason = "trimmed"
            if reason is not None:
                await self._announce(thread, offset, Cursor(head.seq, head.epoch), reason)
                await self._attached(feed, Accepted(thread, run_id, 0, attached=True))
                return
            after = max(offset.seq, first - 1)
            await (await self._delivery(feed, after, run_id)).until_terminal()

    async def watch(self, thread: ThreadKey, offset: Cursor | None) -> None:
        """Deliver a thread, run after run, until cancelled."""
        async with self._worker.hub.watch(thread) as feed:
            cursor = await self._begin(thread, offset)
            while True:
                delivery = await self._delivery(feed, cursor)
                try:
                    await delivery.until_terminal()
                except NeedsResync as stuck:
                    if self._peer.resync is None:
                        raise
                    head = await self._worker.log.head(thread)
                    at = Cursor(stuck.cursor, head.epoch)
                    await self._announce(thread, at, Cursor(head.seq, head.epoch), "trimmed")
                    cursor = await self._prelude(thread)

    async def _begin(self, thread: ThreadKey, offset: Cursor | None) -> int:
        """Send what comes before the tail; returns where the tail begins."""
        if offset is None:
            return await self._prelude(thread)
        head = await self._worker.log.head(thread)
        reason = check_cursor(offset, head.floor, head.seq, head.epoch)
        if reason is None:
            return max(offset.seq, 0)
        await self._announce(thread, offset, Cursor(head.seq, head.epoch), reason)
        return await self._prelude(thread)

    async def _announce(
        self, thread: ThreadKey, cursor: Cursor, head: Cursor, reason: ResyncReason
    ) -> None:
        if self._peer.resync is not None:
            await self._peer.resync(Resync(thread.thread_id, cursor, head, reason))

    async def _prelude(self, thread: ThreadKey) -> int:
        prelude = await self._services.joiner.of_thread(thread, self._peer.max_frame)
        await self._peer.write(self._dialect(thread, prelude.cursor.epoch).prelude(prelude))
        return prelude.cursor.seq

    async def _attached(self, feed: Feed, accepted: Accepted) -> None:
        joined = await self._services.joiner.of_run(
            accepted.thread, accepted.run_id, self._peer.max_frame
        )
        prelude: Prelude = joined.prelude
        dialect = self._dialect(accepted.thread, prelude.cursor.epoch)
        await self._peer.write(dialect.prelude(prelude))
        if joined.is_live:
            delivery = await self._delivery(feed, prelude.cursor.seq, accepted.run_id)
            await delivery.until_terminal()

    async def _delivery(self, feed: Feed, cursor: int, run: str | None = None) -> Delivery:
        epoch = (await self._worker.log.head(feed.thread)).epoch
        if not epoch:
            # Nobody has written this thread yet, so its log has no epoch before its first entry.
            await feed.after(0, 1)
            epoch = (await self._worker.log.head(feed.thread)).epoch
        dialect = self._dialect(feed.thread, epoch)
        return Delivery(feed, dialect, self._peer.write, cursor, self._peer.max_frame, run)

    def _dialect(self, thread: ThreadKey, epoch: str) -> Dialect:
        return Dialect(self._peer.dialect, thread.thread_id, epoch, self._peer.is_older)


def older(peer: Peer, is_older: bool) -> Peer:
    """Return the peer with the class its latest request declared."""
    return replace(peer, is_older=is_older)


async def cancel_all(tasks: Iterable[asyncio.Task[None]]) -> None:
    """Cancel tasks and wait for them; what they raise meanwhile is of no interest any more."""
    listed = list(tasks)
    for task in listed:
        task.cancel()
    await asyncio.gather(*listed, return_exceptions=True)
