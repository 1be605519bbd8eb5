"""The indexes over all threads: which exist, where a run id leads, which leases end when.

They live on other cluster slots than the threads, so they are written beside a thread's own step
and rebuilt from the threads when they are lost.
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Iterable, Sequence

from backscroll.kernel.errors import StoreError
from backscroll.store.connection import RedisClients, store_errors
from backscroll.store.keys import Keys, ThreadKey
from backscroll.store.scripts import Script

TOUCH_EVERY_MS = 1000
NEVER = 2**53
"""A time in milliseconds that never comes."""
RUN_CLAIM_MS = 30_000
_REMEMBERED = 10_000

logger = logging.getLogger(__name__)

_CLAIM_RUN = Script("claim_run")
_MARK_LEASE = Script("mark_lease")
_FORGET_LEASE = Script("forget_lease")


class Indexes:
    """Reads and writes the indexes; one per process. A run id leads to a thread for `ttl_ms`."""

    def __init__(self, clients: RedisClients, keys: Keys, ttl_ms: int = 0) -> None:
        self._clients, self._keys, self._ttl_ms = clients, keys, ttl_ms
        self._touched: OrderedDict[ThreadKey, int] = OrderedDict()

    async def touch(self, thread: ThreadKey, time: int, *, now: bool = False) -> None:
        """Note a thread's last activity; unless `now`, at most once a second per thread.

        What it follows has happened, so a failure is only logged: the next one makes up for it.
        """
        if not now and time - self._touched.get(thread, -TOUCH_EVERY_MS) < TOUCH_EVERY_MS:
            return
        self._touched[thread] = time
        self._touched.move_to_end(thread)
        if len(self._touched) > _REMEMBERED:
            self._touched.popitem(last=False)
        try:
            with store_errors("note a thread's activity"):
                async with self._clients.write.pipeline(transaction=False) as pipe:
                    for name in (self._keys.threads(), self._keys.threads(thread.owner)):
                        pipe.zadd(name, {thread.key: time}, gt=True)
                    await pipe.execute()
        except StoreError as error:
            self._touched.pop(thread, None)
            logger.warning("%s", error)

    async def page(
        self, owner: str | None, before: tuple[int, str] | None, limit: int
    ) -> list[tuple[ThreadKey, int]]:
        """Return threads with their last activity, newest first, that come after `before`."""
        found: list[tuple[ThreadKey, int]] = []
        at, offset = "+inf" if before is None else str(before[0]), 0
        while len(found) < limit:
            with store_errors("list threads"):
                rows = await self._clients.read.zrange(
                    self._keys.threads(owner),
                    at,
                    "-inf",
                    desc=True,
                    byscore=True,
                    withscores=True,
                    offset=offset,
                    num=limit,
                )
            found += _after(before, rows)
            offset += len(rows)
            if len(rows) < limit:
                break
        return found[:limit]

    async def claim_run(self, thread: ThreadKey, run_id: str) -> ThreadKey:
        """Reserve a run id for a thread about to start it; returns the thread that holds it.

        A claim nobody turns into a run ends by itself.
        """
        name = self._keys.run_index(thread.owner, run_id)
        with store_errors("claim a run id"):
            holder = await _CLAIM_RUN.run(self._clients.write, [name], [thread.key, RUN_CLAIM_MS])
        return ThreadKey.from_key(holder.decode())

    async def keep_run(self, thread: ThreadKey, run_id: str) -> None:
        """Let a run id lead to its thread from now on; a failure is only logged, as for `touch`."""
        name = self._keys.run_index(thread.owner, run_id)
        try:
            with store_errors("keep a run id"):
                await self._clients.write.set(name, thread.key, px=self._ttl_ms or None)
        except StoreError as error:
            logger.warning("%s", error)

    async def find_run(self, owner: str, run_id: str) -> ThreadKey | None:
        """Return the thread a run id leads to."""
        with store_errors("look up a run id"):
            found = await self._clients.read.get(self._keys.run_index(owner, run_id))
        return None if found is None else ThreadKey.from_key(found.decode())

    async def mark_lease(self, thread: ThreadKey, length_ms: int) -> None:
        """Note when a thread's lease will have expired; done before the lease is taken."""
        with store_errors("note a lease"):
            await _MARK_LEASE.run(
                self._clients.write, [self._keys.leases()], [thread.key, length_ms]
            )

    async def due_leases(self, limit: int = 100) -> list[tuple[ThreadKey, int]]:
        """Return threads whose noted lease has expired, with the time that was noted."""
        with store_errors("look for expired leases"):
            seconds, micros = await self._clients.read.time()
            rows = await self._clients.read.zrangebyscore(
                self._keys.leases(),
                "-inf",
                seconds * 1000 + micros // 1000,
                start=0,
                num=limit,
                withscores=True,
            )
        return [(ThreadKey.from_key(key.decode()), int(score)) for key, score in rows]

    async def forget_lease(self, thread: ThreadKey, noted: int) -> None:
        """Take a thread out of the leases unless a newer lease was noted."""
        with store_errors("forget a lease"):
            await _FORGET_LEASE.run(self._clients.write, [self._keys.leases()], [thread.key, noted])

    async def mark_pause(self, thread: ThreadKey, due: int | None) -> None:
        """Note that a thread is paused, and when it is to be looked at; None is never."""
        with store_errors("note a pause"):
            await self._clients.write.zadd(self._keys.pauses(), {thread.key: due or NEVER})

    async def forget_pause(self, thread: ThreadKey) -> None:
        """Take a thread out of the paused ones; a failure is only logged, as for `touch`."""
        try:
            with store_errors("forget a pause"):
                await self._clients.write.zrem(self._keys.pauses(), thread.key)
        except StoreError as error:
            logger.warning("%s", error)

    async def paused(self, until: int | None = None, limit: int = 1000) -> list[ThreadKey]:
        """Return paused threads, those first that are due first; only those due until a time."""
        with store_errors("list paused threads"):
            most = "+inf" if until is None else until
            rows = await self._clients.read.zrangebyscore(
                self._keys.pauses(), "-inf", most, start=0, num=limit
            )
        return [ThreadKey.from_key(key.decode()) for key in rows]

    async def forget_thread(self, thread: ThreadKey, run_ids: Iterable[str]) -> None:
        """Take a deleted thread and its run ids out of every index."""
        self._touched.pop(thread, None)
        async with self._clients.write.pipeline(transaction=False) as pipe:
            for name in (self._keys.threads(), self._keys.threads(thread.owner)):
                pipe.zrem(name, thread.key)
            pipe.zrem(self._keys.leases(), thread.key)
            pipe.zrem(self._keys.pauses(), thread.key)
            for run_id in run_ids:
                pipe.delete(self._keys.run_index(thread.owner, run_id))
            with store_errors("forget a thread"):
                await pipe.execute()

    async def rebuild(self) -> int:
        """Make the indexes anew from the threads, if they are lost; returns how many were found.

        The only place that walks over all keys.
        """
        with store_errors("rebuild the indexes"):
            if await self._clients.read.exists(self._keys.threads()):
                return 0
            found = 0
            async for name in self._clients.read.scan_iter(
                match=f"{_escape(self._keys.prefix)}:{{*}}:meta", count=1000
            ):
                found += await self._restore(self._keys.thread_of(name.decode()))
        return found

    async def _restore(self, thread: ThreadKey) -> int:
        async with self._clients.read.pipeline(transaction=False) as pipe:
            pipe.hmget(self._keys.meta(thread), ["time", "lease"])
            pipe.hkeys(self._keys.runs(thread))
            pipe.hexists(self._keys.pause(thread), "id")
            (time, lease), fields, is_paused = await pipe.execute()
        for field in fields:
            if field.startswith(b"s:"):
                await self.keep_run(thread, field[2:].decode("utf-8", "surrogatepass"))
        if lease is not None:
            await self._clients.write.zadd(self._keys.leases(), {thread.key: int(lease)})
        if is_paused:
            # Whoever looks at it next notes when it is really due.
            await self.mark_pause(thread, int(time or 1))
        await self.touch(thread, int(time or 0), now=True)
        return 1


def _after(
    before: tuple[int, str] | None, rows: Sequence[tuple[bytes, float]]
) -> list[tuple[ThreadKey, int]]:
    """Keep what comes after a place in the order by time, then key, both falling."""
    pairs = [(key.decode(), int(score)) for key, score in rows]
    return [
        (ThreadKey.from_key(key), time)
        for key, time in pairs
        if before is None or (time, key) < before
    ]


def _escape(prefix: str) -> str:
    """Return a prefix that a SCAN pattern takes literally."""
    return "".join(f"\\{c}" if c in "*?[]^\\" else c for c in prefix)
