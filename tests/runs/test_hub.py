"""Delivery on one worker: rings, holes, and a subscription that is lost."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import msgpack
import pytest
from backscroll.runs import hub as hub_module
from backscroll.runs.hub import Feed, Held, Hub, ThreadDeleted
from backscroll.store.connection import RedisClients, connect
from backscroll.store.entry import Entry, NewEntry
from backscroll.store.keys import Keys, ThreadKey
from backscroll.store.thread_log import LogHead, ThreadLog
from backscroll.store.threads import ThreadStore
from cutting_proxy import cutting_proxy
from deadlines import scaled
from served import until
from working import key


class CountingLog:
    """A log that counts how often it is read."""

    def __init__(self, log: ThreadLog) -> None:
        self.log, self.reads = log, 0

    async def read(self, thread: ThreadKey, after: int, limit: int = 1000) -> list[Entry]:
        """Read, and count it."""
        self.reads += 1
        return await self.log.read(thread, after, limit)

    async def head(self, thread: ThreadKey) -> LogHead:
        """Return the head."""
        return await self.log.head(thread)


def entry(text: str = "x") -> NewEntry:
    """Return a small entry."""
    return NewEntry("note", "n", text.encode(), "operator", "r")


async def read_until(feed: Feed, last: int, cursor: int = 0, limit: int = 200) -> list[int]:
    """Return the numbers a reader gets until it has the last one."""
    seen: list[int] = []
    async with asyncio.timeout(scaled(10)):
        while cursor < last:
            for held in await feed.after(cursor, limit):
                cursor = held.seq
                seen.append(cursor)
    return seen


@pytest.fixture
def log(clients: RedisClients, keys: Keys) -> ThreadLog:
    """Give the log as another worker writes it."""
    return ThreadLog(clients, keys, "w")


@pytest.fixture
async def counting(log: ThreadLog) -> CountingLog:
    """Give a log that counts its reads."""
    return CountingLog(log)


@pytest.fixture
async def hub(clients: RedisClients, keys: Keys, counting: CountingLog) -> AsyncIterator[Hub]:
    """Give a hub that runs."""
    hub = Hub(clients, keys, counting)
    running = asyncio.ensure_future(hub.run())
    await hub.wait_subscribed(5)
    yield hub
    running.cancel()
    await asyncio.wait([running])


async def test_what_is_appended_comes_from_the_ring(
    hub: Hub, log: ThreadLog, counting: CountingLog
) -> None:
    """A reader that keeps up never reads the log, and entries are shared by all readers."""
    async with hub.watch(key()) as feed, hub.watch(key()) as other:
        await log.append(key(), [entry("a"), entry("b")], fence=0)
        first = await feed.after(0)
        await log.append(key(), [entry("c")], fence=0)
        second = await other.after(2)
        same = await other.after(0)

    assert [h.seq for h in first] == [1, 2] and [h.seq for h in second] == [3]
    assert [h.entry.body for h in same] == [b"a", b"b", b"c"] and same[0] is first[0]
    assert counting.reads == 0


async def test_a_text_form_is_written_once(log: ThreadLog) -> None:
    """A frame is encoded once and shared by all sockets."""
    await log.append(key(), [entry("a")], fence=0)
    held = Held((await log.read(key(), 0))[0])
    written: list[int] = []

    def write(entry: Entry) -> str:
        written.append(entry.seq)
        return f"text {len(written)}"

    texts = [held.text(form, write) for form in ("bare", "bare", "durable")]

    assert texts == ["text 1", "text 1", "text 2"]


async def test_what_was_before_the_watch_is_read_from_the_log(
    hub: Hub, log: ThreadLog, counting: CountingLog
) -> None:
    """The ring begins with the watch; everything older is in the log."""
    await log.append(key(), [entry() for _ in range(5)], fence=0)
    async with hub.watch(key()) as feed:
        await log.append(key(), [entry() for _ in range(3)], fence=0)
        seen = await read_until(feed, 8, limit=2)

        assert feed.head == 8
    assert seen == list(range(1, 9)) and counting.reads > 0


async def test_a_slow_cursor_falls_back_to_the_log(
    hub: Hub, log: ThreadLog, counting: CountingLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What fell out of the ring is read from the log; the fast reader beside it is not slowed."""
    monkeypatch.setattr(hub_module, "RING_ENTRIES", 4)
    async with hub.watch(key()) as slow, hub.watch(key()) as fast:
        for n in range(10):
            await log.append(key(), [entry(str(n))], fence=0)
            await read_until(fast, n + 1, n)
        reads = counting.reads
        seen = await read_until(slow, 10)

    assert reads == 0 and counting.reads > 0
    assert seen == list(range(1, 11))


async def test_a_ring_is_bounded_in_bytes(
    hub: Hub, log: ThreadLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Large entries push older ones out."""
    monkeypatch.setattr(hub_module, "RING_BYTES", 2500)
    async with hub.watch(key()) as feed:
        for n in range(6):
            await log.append(key(), [entry("x" * 1000)], fence=0)
            await read_until(feed, n + 1, n)
        watched = hub._watched[key()]

        assert [held.seq for held in watched.ring] == [5, 6] and watched.bytes == 2000
        assert await read_until(feed, 6) == [1, 2, 3, 4, 5, 6]


async def test_entries_too_large_for_the_bell_are_read_from_the_log(
    hub: Hub, log: ThreadLog, counting: CountingLog
) -> None:
    """The bell says how far the log reaches; what it could not carry is read."""
    async with hub.watch(key()) as feed:
        await log.append(key(), [entry("a")], fence=0)
        await read_until(feed, 1)
        await log.append(key(), [entry("x" * 1_100_000)], fence=0)
        seen = await read_until(feed, 2, 1)
        await log.append(key(), [entry("b")], fence=0)
        seen += await read_until(feed, 3, 2)

    assert seen == [2, 3] and counting.reads == 1


async def test_a_hole_is_read_and_never_skipped(
    hub: Hub, log: ThreadLog, keys: Keys, counting: CountingLog
) -> None:
    """A bell without its predecessor starts the ring anew; the hole is in the log."""
    async with hub.watch(key()) as feed:
        await log.append(key(), [entry()], fence=0)
        await read_until(feed, 1)
        watched = hub._watched[key()]
        hub._watched[key()] = hub_module._Watched()  # what comes now is not heard
        async with hub.watch(key()) as other:
            await log.append(key(), [entry()], fence=0)
            await read_until(other, 2)
            hub._watched[key()] = watched
            await log.append(key(), [entry()], fence=0)
            seen = await read_until(feed, 3, 1)

    assert seen == [2, 3] and counting.reads >= 1


async def test_an_old_bell_changes_nothing(hub: Hub, log: ThreadLog) -> None:
    """What the comparison with the log had found first is not taken twice."""
    async with hub.watch(key()) as feed:
        watched = hub._watched[key()]
        watched.advance(1)
        await log.append(key(), [entry()], fence=0)
        await log.append(key(), [entry()], fence=0)

        assert await read_until(feed, 2) == [1, 2]
        # The reader may have had both from the log before the second bell was heard.
        await until(lambda: len(watched.ring) > 0, "the second bell is heard")
        assert [held.seq for held in watched.ring] == [2]


async def test_a_stop_is_heard(hub: Hub, clients: RedisClients, keys: Keys) -> None:
    """Every listener of the thread is told the run, until it takes itself off."""
    heard: list[str] = []
    bell = msgpack.packb([1, 0, 0, [], "r1"])
    async with hub.watch(key()) as feed, hub.watch(key()) as other:
        told = asyncio.Event()
        remove = feed.on_stop(heard.append)
        other.on_stop(lambda run: told.set())
        await clients.write.publish(keys.bell(key()), bell)
        await told.wait()
        remove()
        told.clear()
        await clients.write.publish(keys.bell(key()), bell)
        await told.wait()

    assert heard == ["r1"]


async def test_a_thread_nobody_watches_is_forgotten(hub: Hub, log: ThreadLog) -> None:
    """The last watcher takes the ring with it, and the next one begins anew."""
    async with hub.watch(key()):
        async with hub.watch(key()):
            pass
        assert key() in hub._watched
    assert hub._watched == {}
    async with hub.watch(key()) as feed:
        await log.append(key(), [entry()], fence=0)

        assert await read_until(feed, 1) == [1]


async def test_a_lost_subscription_is_noticed_and_repaired(
    clients: RedisClients, keys: Keys, log: ThreadLog
) -> None:
    """memory-06: what was published meanwhile is read from the log, within seconds."""
    hub = Hub(clients, keys, log)
    running = asyncio.ensure_future(hub.run())
    await hub.wait_subscribed(5)
    async with hub.watch(key()) as feed:
        await log.append(key(), [entry()], fence=0)
        await read_until(feed, 1)
        await clients.write.client_kill_filter(_type="pubsub", skipme=True)
        await log.append(key(), [entry(), entry()], fence=0)
        seen = await read_until(feed, 3, 1)
        await hub.wait_subscribed(scaled(5))
        await log.append(key(), [entry()], fence=0)
        seen += await read_until(feed, 4, 3)
    running.cancel()
    await asyncio.wait([running])

    assert seen == [2, 3, 4]


async def test_a_silent_subscription_is_caught_up_from_the_log(
    valkey_url: str, keys: Keys, log: ThreadLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A bell that was swallowed on its way is missed for no longer than the comparison takes."""
    monkeypatch.setattr(hub_module, "CHECK_S", 0.3)
    async with cutting_proxy(valkey_url) as proxy:
        far = connect(proxy.url)
        hub = Hub(far, keys, ThreadLog(far, keys, "w"))
        running = asyncio.ensure_future(hub.run())
        await hub.wait_subscribed(5)
        async with hub.watch(key()) as feed:
            hub._bells._on_bell = lambda thread, bell: None
            await log.append(key(), [entry()], fence=0)

            assert await read_until(feed, 1) == [1]
        running.cancel()
        await asyncio.wait([running])
        await far.close()


async def test_a_store_that_is_away_is_asked_again(
    valkey_url: str, keys: Keys, log: ThreadLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The comparison survives what it cannot read, and catches up afterwards."""
    monkeypatch.setattr(hub_module, "CHECK_S", 0.1)
    async with cutting_proxy(valkey_url) as proxy:
        far = connect(proxy.url)
        hub = Hub(far, keys, ThreadLog(far, keys, "w"))
        running = asyncio.ensure_future(hub.run())
        await hub.wait_subscribed(5)
        async with hub.watch(key()) as feed:
            proxy.cuts = 12
            await log.append(key(), [entry()], fence=0)

            assert await read_until(feed, 1) == [1]
        running.cancel()
        await asyncio.wait([running])
        await far.close()


async def test_waiting_for_a_subscription_has_an_end(
    clients: RedisClients, keys: Keys, log: ThreadLog, caplog: pytest.LogCaptureFixture
) -> None:
    """A worker starts without it, and says so."""
    hub = Hub(clients, keys, log)

    await hub.wait_subscribed(0.01)

    assert not hub.subscribed and "subscription is not up" in caplog.text


async def test_a_deleted_thread_ends_its_feeds(hub: Hub, log: ThreadLog) -> None:
    """Readers are told; whoever watches the name afterwards reads the new thread from 1."""
    await log.append(key(), [entry(str(n)) for n in range(9)], fence=0)
    async with hub.watch(key()) as old, hub.watch(key()) as other:
        assert await read_until(old, 9) == list(range(1, 10))
        waiting = asyncio.ensure_future(old.after(9))
        await ThreadStore(log).delete(key())
        with pytest.raises(ThreadDeleted):
            await asyncio.wait_for(waiting, scaled(10))
        await log.append(key(), [entry("new"), entry("newer")], fence=0)

        async with hub.watch(key()) as new:
            assert await read_until(new, 2) == [1, 2]
        with pytest.raises(ThreadDeleted):
            await other.after(0)


async def test_a_deletion_that_nobody_heard_is_noticed(
    hub: Hub, log: ThreadLog, clients: RedisClients, keys: Keys, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The comparison with the log finds another epoch, or no log at all."""
    monkeypatch.setattr(hub_module, "CHECK_S", 0.05)
    for is_made_again in (False, True):
        await log.append(key(), [entry(str(n)) for n in range(5)], fence=0)
        async with hub.watch(key()) as feed:
            assert len(await read_until(feed, 5)) == 5
            waiting = asyncio.ensure_future(feed.after(5))
            async with clients.write.pipeline(transaction=True) as pipe:
                pipe.delete(keys.log(key()), keys.meta(key()))
                if is_made_again:
                    pipe.hset(keys.meta(key()), mapping={"seq": 3, "epoch": "aaaa"})
                await pipe.execute()

            with pytest.raises(ThreadDeleted):
                await asyncio.wait_for(waiting, scaled(10))
