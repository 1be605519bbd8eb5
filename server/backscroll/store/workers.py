"""The registry of workers: who lives, and what each says of itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgpack

from backscroll.store.connection import RedisClients, store_errors
from backscroll.store.keys import Keys
from backscroll.store.scripts import Script, resend

GONE_AFTER_S = 60.0

_BEAT = Script("beat")


@dataclass(frozen=True, slots=True)
class WorkerInfo:
    """A worker's last sign of life, in milliseconds, and what it said (Any: JSON values)."""

    worker: str
    seen: int
    info: Mapping[str, Any]


class WorkerRegistry:
    """Keeps the workers of all processes on one Redis."""

    def __init__(self, clients: RedisClients, keys: Keys) -> None:
        self._clients, self._keys = clients, keys

    async def beat(self, worker: str, info: Mapping[str, Any]) -> None:
        """Say that a worker lives; those silent for a minute are dropped."""
        packed = msgpack.packb(dict(info))
        args = [worker, packed, round(GONE_AFTER_S * 1000)]
        with store_errors("note a worker"):
            await resend(lambda _: _BEAT.run(self._clients.write, [self._keys.workers()], args))

    async def leave(self, worker: str) -> None:
        """Take a worker out that ends."""
        with store_errors("forget a worker"):
            await resend(lambda _: self._clients.write.hdel(self._keys.workers(), worker))

    async def workers(self, seen_within_s: float = GONE_AFTER_S) -> list[WorkerInfo]:
        """Return the workers that gave a sign of life of late, by name."""
        with store_errors("list workers"):
            seconds, micros = await self._clients.read.time()
            fields = await self._clients.read.hgetall(self._keys.workers())
        oldest = seconds * 1000 + micros // 1000 - seen_within_s * 1000
        found = []
        for worker, value in sorted(fields.items()):
            seen, packed = value.split(b" ", 1)
            if int(seen) >= oldest:
                found.append(WorkerInfo(worker.decode(), int(seen), msgpack.unpackb(packed)))
        return found
