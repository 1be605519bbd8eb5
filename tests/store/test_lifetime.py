"""How long a thread is kept."""

from __future__ import annotations

import logging

import pytest
from backscroll.agui.input import fingerprint
from backscroll.compaction.store import Cache, CompactionEntry
from backscroll.kernel.message import user
from backscroll.store.chat_memory import RedisChatMemory
from backscroll.store.compaction_choices import RedisCompactionChoices
from backscroll.store.compaction_store import RedisCompactionStore
from backscroll.store.connection import RedisClients, connect
from backscroll.store.entry import NewEntry
from backscroll.store.history import StoredHistory
from backscroll.store.keys import Keys, ThreadKey
from backscroll.store.lifetime import Lifetime
from backscroll.store.run_record import Started, StartRequest
from backscroll.store.runs import RunStore
from backscroll.store.thread_log import ThreadLog
from backscroll.store.threads import ThreadStore
from working import asked

T = ThreadKey("local", "t")
HOUR_S = 3600.0
NOTE = NewEntry("note", "x", b"{}", "operator", "")


def log_of(clients: RedisClients, keys: Keys, ttl_s: float) -> ThreadLog:
    """Return the log of a worker that keeps threads so long."""
    return ThreadLog(clients, keys, "w1", ttl_s)


async def lives(clients: RedisClients, keys: Keys) -> dict[str, int]:
    """Return how long each key under the prefix lives on, in ms; -1 is for ever."""
    names = [name async for name in clients.read.scan_iter(match=f"{keys.prefix}:*")]
    return {name.decode(): int(await clients.read.pttl(name)) for name in names}


async def whole_run(log: ThreadLog) -> None:
    """Write what a run writes: log, history, blobs, compaction, its record."""
    run = asked("t", "r1", "hi")
    change = StoredHistory().change([user("hi", "u1")])
    start = StartRequest(T, "r1", "a", fingerprint("a", run), [NOTE], change, 30.0)
    started = await RunStore(log).start(start)
    assert isinstance(started, Started)
    store = RedisCompactionStore(log.clients, log.keys, lease=started.lease)
    await store.put("t", CompactionEntry(Cache(20, "h", "S"), 1))
    await RedisCompactionChoices(log.clients, log.keys).pin("t", "u1")
    await log.append(T, [NOTE], fence=started.lease.fence, blobs={"s": b"x"}, state=b"{}")
    await RunStore(log).finish(started.lease, [NOTE], status="ok")


async def test_every_key_of_a_thread_expires(clients: RedisClients, keys: Keys) -> None:
    """memory-01: all together; the indexes over all threads stay."""
    await whole_run(log_of(clients, keys, HOUR_S))

    found = await lives(clients, keys)
    of_thread = {name: ms for name, ms in found.items() if "{t}" in name or ":run:" in name}
    assert len(of_thread) >= 8
    assert all(3_500_000 < ms <= 3_600_000 for ms in of_thread.values()), of_thread
    ends_at = await Lifetime(clients, keys).ends_at(T)
    assert ends_at is not None and ends_at > await log_of(clients, keys, 0).now()


async def test_without_a_time_nothing_expires(clients: RedisClients, keys: Keys) -> None:
    """memory-01: with the setting off."""
    await whole_run(log_of(clients, keys, 0))

    assert set((await lives(clients, keys)).values()) == {-1}
    assert await Lifetime(clients, keys).ends_at(T) is None


async def test_writes_slide_the_end_and_reads_do_not(clients: RedisClients, keys: Keys) -> None:
    """memory-01: as if time had passed before each of them."""
    memory = RedisChatMemory(log_of(clients, keys, HOUR_S))
    for n in range(3):
        await memory.add("t", [user(f"{n}", f"u{n}")])
        assert await clients.read.pttl(keys.messages(T)) > 3_500_000
        await age(clients, keys, 60_000)
        assert [message.text for message in await memory.get("t")] == [*"012"[: n + 1]]
        assert await clients.read.pttl(keys.messages(T)) <= 60_000


async def test_what_is_gone_is_in_no_list(clients: RedisClients, keys: Keys) -> None:
    """memory-01: the history is empty, and the thread is listed no more."""
    log = log_of(clients, keys, HOUR_S)
    memory, threads = RedisChatMemory(log), ThreadStore(log)
    await memory.add("t", [user("hi")])
    assert len(await threads.heads()) == 1
    await age(clients, keys, 0)

    assert await memory.get("t") == [] and await threads.heads() == []
    assert await clients.read.zcard(keys.threads()) == 0


async def age(clients: RedisClients, keys: Keys, left_ms: int) -> None:
    """Let so much time pass that only this much is left of every key of the thread."""
    for name in await lives(clients, keys):
        if "{t}" in name:
            await clients.write.pexpire(name, left_ms)


async def test_a_claim_on_a_summary_is_not_made_longer(clients: RedisClients, keys: Keys) -> None:
    """It ends by itself, and sooner than the thread."""
    log, store = log_of(clients, keys, HOUR_S), RedisCompactionStore(clients, keys)
    await store.take_lease("t", "me", 30)
    await log.append(T, [NOTE], fence=0)

    assert await clients.read.pttl(keys.compaction_lease(T)) <= 30_000


async def test_a_failure_is_only_logged(
    keys: Keys, tmp_path_factory: pytest.TempPathFactory, caplog: pytest.LogCaptureFixture
) -> None:
    """The next write makes up for it."""
    clients = connect(f"unix://{tmp_path_factory.mktemp('none')}/none.sock")
    with caplog.at_level(logging.WARNING):
        await Lifetime(clients, keys, HOUR_S).slide(T)
    await clients.close()

    assert "keep a thread" in caplog.text
