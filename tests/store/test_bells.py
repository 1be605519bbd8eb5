"""The subscription of a worker: what it hears, and what it does when it is cut off."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest
from backscroll.kernel.errors import StoreError
from backscroll.store import bells as module
from backscroll.store.bells import Bells
from backscroll.store.connection import RedisClients, connect
from backscroll.store.entry import Bell, NewEntry
from backscroll.store.keys import Keys, ThreadKey
from backscroll.store.thread_log import ThreadLog

ONE, TWO = ThreadKey("local", "1"), ThreadKey("ann", "会话 2")


class Heard:
    """What a subscription told."""

    def __init__(self) -> None:
        self.bells: list[tuple[ThreadKey, Bell]] = []
        self.ready: list[ThreadKey] = []
        self._told = asyncio.Event()

    async def until(self, condition: Callable[[], bool]) -> None:
        """Return when the condition holds."""
        async with asyncio.timeout(10):
            while not condition():
                self._told.clear()
                await self._told.wait()

    def on_bell(self, thread: ThreadKey, bell: Bell) -> None:
        """Keep a bell."""
        self.bells.append((thread, bell))
        self._told.set()

    def on_ready(self, thread: ThreadKey) -> None:
        """Keep a confirmation."""
        self.ready.append(thread)
        self._told.set()


@asynccontextmanager
async def listening(clients: RedisClients, keys: Keys) -> AsyncIterator[tuple[Bells, Heard]]:
    """Run a subscription for as long as the block lasts."""
    heard = Heard()
    bells = Bells(clients, keys, heard.on_bell, heard.on_ready)
    task = asyncio.create_task(bells.run())
    try:
        yield bells, heard
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def note(log: ThreadLog, thread: ThreadKey) -> None:
    """Append an entry."""
    await log.append(thread, [NewEntry("note", "x", b"{}", "operator", "")], fence=0)


@pytest.fixture
def log(clients: RedisClients, keys: Keys) -> ThreadLog:
    """Give the log of another worker."""
    return ThreadLog(clients, keys, "w2")


async def test_hears_the_threads_it_watches(
    clients: RedisClients, keys: Keys, log: ThreadLog
) -> None:
    """From the moment it is told that the subscription stands, and no others."""
    async with listening(clients, keys) as (bells, heard):
        await bells.subscribe(ONE)
        assert bells.connected
        assert heard.ready == [ONE]

        await note(log, TWO)
        await note(log, ONE)

        await heard.until(lambda: bool(heard.bells))
        assert [(thread, bell.last) for thread, bell in heard.bells] == [(ONE, 1)]
    assert not bells.connected


async def test_stops_hearing(clients: RedisClients, keys: Keys, log: ThreadLog) -> None:
    """A thread that is not watched any more costs nothing."""
    async with listening(clients, keys) as (bells, heard):
        await bells.subscribe(ONE)
        await bells.subscribe(TWO)
        await bells.unsubscribe(ONE)

        await note(log, ONE)
        await note(log, TWO)

        await heard.until(lambda: bool(heard.bells))
        assert [thread for thread, _ in heard.bells] == [TWO]
        channels = await clients.read.pubsub_channels(f"{keys.prefix}:*")
        assert keys.bell(ONE).encode() not in channels


async def test_comes_back_when_it_is_cut_off(
    clients: RedisClients, keys: Keys, log: ThreadLog
) -> None:
    """memory-06: every watched thread is told to be compared with the log."""
    async with listening(clients, keys) as (bells, heard):
        await bells.subscribe(ONE)
        await bells.subscribe(TWO)
        heard.ready.clear()

        await clients.write.client_kill_filter(_type="pubsub")

        await heard.until(lambda: sorted(heard.ready, key=str) == sorted([ONE, TWO], key=str))
        await note(log, ONE)
        await heard.until(lambda: bool(heard.bells))
        assert bells.connected


async def test_hears_again_what_was_left_and_taken_up(
    clients: RedisClients, keys: Keys, log: ThreadLog
) -> None:
    """Watching, leaving and watching at once ends in watching."""
    async with listening(clients, keys) as (bells, heard):
        await bells.subscribe(ONE)
        await asyncio.gather(bells.unsubscribe(ONE), bells.subscribe(ONE))

        await note(log, ONE)

        await heard.until(lambda: bool(heard.bells))


async def test_says_when_nobody_confirms(
    keys: Keys, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A Redis that is away: watching fails in time, leaving is quiet."""
    monkeypatch.setattr(module, "CONFIRM_S", 0.2)
    monkeypatch.setattr(module, "RETRY_S", (0.05,))
    away = connect(str(tmp_path_factory.mktemp("x") / "none"))
    async with listening(away, keys) as (bells, _):
        with pytest.raises(StoreError, match="did not confirm a subscription in time"):
            await bells.subscribe(ONE)
        await bells.unsubscribe(ONE)
        assert not bells.connected
