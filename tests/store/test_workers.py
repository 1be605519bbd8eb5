"""The registry of workers."""

from __future__ import annotations

import pytest
from backscroll.store.connection import RedisClients
from backscroll.store.keys import Keys
from backscroll.store.workers import WorkerRegistry


@pytest.fixture
def registry(clients: RedisClients, keys: Keys) -> WorkerRegistry:
    """Give the registry."""
    return WorkerRegistry(clients, keys)


async def test_lists_who_gave_a_sign_of_life(registry: WorkerRegistry) -> None:
    """With the time by Redis's clock and what each said last."""
    await registry.beat("w2", {"runs": 1})
    await registry.beat("w1", {"runs": 2, "draining": False, "version": "0.1"})
    await registry.beat("w2", {"runs": 3})

    one, two = await registry.workers()

    assert (one.worker, one.info) == ("w1", {"runs": 2, "draining": False, "version": "0.1"})
    assert (two.worker, two.info) == ("w2", {"runs": 3})
    assert two.seen >= one.seen > 1_000_000_000_000


async def test_who_leaves_is_gone(registry: WorkerRegistry) -> None:
    """Also when it was never there."""
    await registry.beat("w1", {})

    await registry.leave("w1")
    await registry.leave("w2")

    assert await registry.workers() == []


async def test_who_is_silent_is_not_listed(
    registry: WorkerRegistry, clients: RedisClients, keys: Keys
) -> None:
    """After a minute the next sign of life of anyone drops it."""
    await registry.beat("w1", {"runs": 1})
    seen, packed = (await clients.read.hget(keys.workers(), "w1")).split(b" ", 1)
    old = str(int(seen) - 61_000).encode()
    await clients.write.hset(keys.workers(), "w1", old + b" " + packed)

    assert await registry.workers() == []
    await registry.beat("w2", {})

    assert await clients.read.hkeys(keys.workers()) == [b"w2"]
