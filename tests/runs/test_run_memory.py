"""The memory of one run."""

from __future__ import annotations

import pytest
from backscroll.kernel.errors import LeaseLost
from backscroll.kernel.message import assistant, user
from backscroll.runs.run_memory import RunMemory
from backscroll.store.chat_memory import RedisChatMemory
from backscroll.store.connection import RedisClients
from backscroll.store.keys import Keys
from backscroll.store.thread_log import RunLease, ThreadLog
from working import key


@pytest.fixture
def log(clients: RedisClients, keys: Keys) -> ThreadLog:
    """Give the log."""
    return ThreadLog(clients, keys, "w")


async def test_remembers_what_was_read_with_its_positions(log: ThreadLog) -> None:
    """Superseded messages leave gaps in the positions."""
    store = RedisChatMemory(log)
    await store.add("t", [user("a", "u1"), assistant("b", id="a1")])
    await store.supersede("t", 2)
    memory = RunMemory(store)
    await memory.add("t", [user("c", "u2")])

    found = await memory.get("t")

    assert [m.text for m in found] == ["a", "c"]
    assert [(n, m.id) for n, m in memory.last_read] == [(1, "u1"), (3, "u2")]


async def test_what_is_added_is_read_only_when_asked(log: ThreadLog) -> None:
    """A record is made from the history that the request was made from."""
    memory = RunMemory(RedisChatMemory(log))
    await memory.get("t")
    await memory.add("t", [user("a", "u1")])

    assert memory.last_read == ()


async def test_writes_with_the_lease(log: ThreadLog) -> None:
    """Once another worker owns the run, nothing is stored."""
    memory = RunMemory(RedisChatMemory(log, lease=RunLease(key(), "r", 7)))

    with pytest.raises(LeaseLost):
        await memory.add("t", [user("a", "u1")])


async def test_clears(log: ThreadLog) -> None:
    """An ephemeral conversation leaves nothing."""
    memory = RunMemory(RedisChatMemory(log))
    await memory.add("t", [user("a", "u1")])
    await memory.clear("t")

    assert await memory.get("t") == [] and memory.last_read == ()
