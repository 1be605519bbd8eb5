"""What one reader is sent: the beginning that fits it, then the tail."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable
from typing import Any

import pytest
from agui_checker import assert_valid
from agui_client import Client
from backscroll.agui.cursor import START, Cursor
from backscroll.runs.worker import Worker
from backscroll.store.keys import LOCAL_OWNER
from backscroll.web.delivery import NeedsResync
from backscroll.web.feeds import Feeds, Peer, Resync, cancel_all, older
from backscroll.web.services import Services, WebLimits
from deadlines import scaled
from working import agent_of, asked, begun, events, held, key, run, until_ended, working


class Reader:
    """A durable reader that keeps frames and notices."""

    def __init__(self, worker: Worker, *, can_resync: bool = True, max_frame: int = 10**6) -> None:
        self.frames: list[Any] = []
        self.notices: list[Resync] = []
        resync = self.resync if can_resync else None
        self.peer = Peer("durable", False, max_frame, self.write, resync)
        self.feeds = Feeds(Services(worker, WebLimits()), self.peer)
        self._told = asyncio.Event()

    async def write(self, frames: Iterable[str]) -> None:
        """Keep frames."""
        self.frames += map(json.loads, frames)
        self._told.set()

    async def resync(self, resync: Resync) -> None:
        """Keep a notice."""
        self.notices.append(resync)

    @property
    def events(self) -> list[Any]:
        """The events, out of their envelopes."""
        return [frame.get("chunk", frame) for frame in self.frames]

    @property
    def types(self) -> list[str]:
        """The types of the events."""
        return [event["type"] for event in self.events]

    @property
    def cursor(self) -> str:
        """The cursor of the last frame that has one."""
        return [str(frame["id"]) for frame in self.frames if "id" in frame][-1]

    async def until(self, *types: str) -> None:
        """Wait until the last events are of these types."""
        async with asyncio.timeout(scaled(10)):
            while self.types[-len(types) :] != list(types):
                self._told.clear()
                await self._told.wait()


async def within(work: Any) -> None:
    """Wait for a feed that ends."""
    async with asyncio.timeout(scaled(10)):
        await work


async def test_a_new_run_is_delivered_raw(valkey_url: str, prefix: str) -> None:
    """From its RUN_STARTED to its terminal event, each with its cursor."""
    async with working(agent_of("a b"), valkey_url, prefix) as worker:
        reader = Reader(worker)
        accepted = await worker.registry.submit(LOCAL_OWNER, asked("t", "r", "hi"))
        await within(reader.feeds.run(accepted))
        logged = await events(worker)

    assert reader.events == logged and all("id" in frame for frame in reader.frames)


async def test_a_sender_that_is_behind_gets_the_opening_pair(valkey_url: str, prefix: str) -> None:
    """Two snapshots directly after RUN_STARTED, without cursors, for this reader alone."""
    async with working(agent_of("one", "two"), valkey_url, prefix) as worker:
        await run(worker, "t", "r1", "hi")
        new = {"id": "u9", "role": "user", "content": "new"}
        accepted = await worker.registry.submit(LOCAL_OWNER, asked("t", "r2", new))
        reader = Reader(worker)
        await within(reader.feeds.run(accepted))
        logged = [e["type"] for e in await events(worker, "t", "r2")]

    assert reader.types[:3] == ["RUN_STARTED", "MESSAGES_SNAPSHOT", "MESSAGES_SNAPSHOT"]
    assert ["id" in frame for frame in reader.frames[:4]] == [True, False, False, True]
    assert [*reader.types[:1], *reader.types[3:]] == logged
    shown = Client([{**new}]).apply(*reader.events).shown()
    assert [m["content"] for m in shown] == ["hi", "one", "new", "two"]
    assert_valid(reader.events)


async def test_attaching_to_a_run(valkey_url: str, prefix: str) -> None:
    """Live it is prelude and tail, ended it is closed by its own event."""
    async with working(agent_of(held()), valkey_url, prefix) as worker:
        await begun(worker)
        accepted = await worker.registry.submit(LOCAL_OWNER, asked("t", "r1", "hi"))
        live, ended = Reader(worker), Reader(worker)
        task = asyncio.ensure_future(live.feeds.run(accepted))
        await live.until("TEXT_MESSAGE_CONTENT")
        await worker.registry.stop(LOCAL_OWNER, "r1")
        await within(task)
        await within(ended.feeds.run(accepted))

    assert live.types[:2] == ["RUN_STARTED", "MESSAGES_SNAPSHOT"]
    for reader in (live, ended):
        assert reader.types[-1] == "RUN_FINISHED"
        assert_valid(reader.events)


@pytest.mark.parametrize("at", range(1, 9))
async def test_a_run_is_resumed_from_every_place(valkey_url: str, prefix: str, at: int) -> None:
    """What comes after the cursor, each once, none left out."""
    async with working(agent_of("a b c d"), valkey_url, prefix) as worker:
        await run(worker, "t", "r", "hi")
        logged = [e for e in await worker.log.read(key(), 0) if e.kind == "event"]
        reader = Reader(worker)
        await within(reader.feeds.resume_run(key(), "r", 1, Cursor(at)))

    assert reader.events == [json.loads(e.body) for e in logged if e.seq > at]
    assert reader.notices == []


@pytest.mark.parametrize(
    ("offset", "floor", "reason"),
    [
        (Cursor(9999), 0, "ahead"),
        (Cursor(3, "zzzz"), 0, "epoch"),
        (Cursor(1), 3, "trimmed"),
        (START, 3, "trimmed"),
    ],
)
async def test_a_run_that_cannot_be_resumed(
    valkey_url: str, prefix: str, offset: Cursor, floor: int, reason: str
) -> None:
    """The notice, then the run's prelude."""
    async with working(agent_of("a"), valkey_url, prefix) as worker:
        await run(worker, "t", "r", "hi")
        await worker.clients.write.hset(worker.keys.meta(key()), "floor", floor)
        reader = Reader(worker)
        await within(reader.feeds.resume_run(key(), "r", 1, offset))

    assert [n.reason for n in reader.notices] == [reason]
    assert reader.types == ["RUN_STARTED", "MESSAGES_SNAPSHOT", "RUN_FINISHED"]


async def test_a_run_from_its_start_is_raw(valkey_url: str, prefix: str) -> None:
    """Offset -1: everything, while nothing of it was removed; another run before it is not."""
    async with working(agent_of("a", "b"), valkey_url, prefix) as worker:
        await run(worker, "t", "r1", "hi")
        await run(worker, "t", "r2", "hi", "on")
        info = await worker.registry.store.run_info(LOCAL_OWNER, "r2")
        assert info is not None
        reader = Reader(worker)
        await within(reader.feeds.resume_run(key(), "r2", info.first, START))
        logged = await events(worker, "t", "r2")

    assert reader.events == logged


async def test_a_watch_goes_on_by_its_cursor(valkey_url: str, prefix: str) -> None:
    """The cursor of a prelude's end stands for all of it; from there nothing is told twice."""
    async with working(agent_of("one", "two"), valkey_url, prefix) as worker:
        await run(worker, "t", "r1", "hi")
        first, second = Reader(worker), Reader(worker)
        task = asyncio.ensure_future(first.feeds.watch(key(), None))
        await first.until("RUN_FINISHED")
        await cancel_all([task])
        seq, epoch = first.cursor.split(".")
        await run(worker, "t", "r2", "hi", "on")
        task = asyncio.ensure_future(second.feeds.watch(key(), Cursor(int(seq), epoch)))
        await second.until("RUN_FINISHED")
        await cancel_all([task])
        logged = await events(worker, "t", "r2")

    assert second.events == logged and second.notices == []
    assert_valid([*first.events, *second.events])


async def test_a_watch_from_the_start_is_the_whole_log(valkey_url: str, prefix: str) -> None:
    """Offset -1 while the floor is 0; above it, a resync."""
    async with working(agent_of("one"), valkey_url, prefix) as worker:
        await run(worker, "t", "r1", "hi")
        whole, trimmed = Reader(worker), Reader(worker)
        task = asyncio.ensure_future(whole.feeds.watch(key(), START))
        await whole.until("RUN_FINISHED")
        await worker.clients.write.hset(worker.keys.meta(key()), "floor", 2)
        more = asyncio.ensure_future(trimmed.feeds.watch(key(), START))
        await trimmed.until("RUN_FINISHED")
        await cancel_all([task, more])
        logged = await events(worker)

    assert whole.events == logged
    assert [n.reason for n in trimmed.notices] == ["trimmed"]
    assert trimmed.types[1] == "MESSAGES_SNAPSHOT"


async def test_a_thread_that_is_made_later_is_followed(valkey_url: str, prefix: str) -> None:
    """An unknown thread has the empty prelude; its runs follow, with cursors of its log."""
    async with working(agent_of("one"), valkey_url, prefix) as worker:
        reader = Reader(worker)
        task = asyncio.ensure_future(reader.feeds.watch(key(), None))
        await reader.until("RUN_STARTED", "RUN_FINISHED")
        await run(worker, "t", "r1", "hi")
        await reader.until("STEP_FINISHED", "RUN_FINISHED")
        await cancel_all([task])
        head = await worker.log.head(key())

    assert reader.cursor == f"{head.seq}.{head.epoch}"
    assert_valid(reader.events)


async def test_a_frame_that_does_not_fit_is_answered_with_a_resync(
    valkey_url: str, prefix: str
) -> None:
    """Durable feeds go on with a prelude; a peer that cannot is told by NeedsResync."""
    async with working(agent_of("x" * 65_536, "next"), valkey_url, prefix) as worker:
        await run(worker, "t", "r1", "hi")
        reader = Reader(worker, max_frame=65_536)
        task = asyncio.ensure_future(reader.feeds.watch(key(), START))
        await reader.until("RUN_STARTED", "RUN_FINISHED")
        await cancel_all([task])
        bare = Reader(worker, can_resync=False, max_frame=65_536)
        with pytest.raises(NeedsResync):
            await within(bare.feeds.watch(key(), START))

    assert [n.reason for n in reader.notices] == ["trimmed"]


async def test_the_class_of_a_peer_may_change(valkey_url: str, prefix: str) -> None:
    """6: on a socket it is that of the latest request."""
    async with working(agent_of("x"), valkey_url, prefix) as worker:
        peer = Reader(worker).peer
        reader = Reader(worker)
        reader.feeds = Feeds(Services(worker, WebLimits()), older(reader.peer, True))
        accepted = await worker.registry.submit(LOCAL_OWNER, asked("t", "r", "hi"))
        await within(reader.feeds.run(accepted))

    assert older(peer, True).is_older and not older(peer, False).is_older
    assert "outcome" not in reader.events[-1]


async def test_two_watchers_on_two_workers_see_the_same(valkey_url: str, prefix: str) -> None:
    """A run started on one worker is watched, from its first event, through the other."""
    async with (
        working(agent_of("a b c"), valkey_url, prefix) as one,
        working(agent_of("x"), valkey_url, prefix) as two,
    ):
        here, there = Reader(one), Reader(two)
        tasks = [asyncio.ensure_future(r.feeds.watch(key(), START)) for r in (here, there)]
        await one.registry.submit(LOCAL_OWNER, asked("t", "r", "hi"))
        await until_ended(one, "r")
        for reader in (here, there):
            await reader.until("RUN_FINISHED")
        await cancel_all(tasks)
        logged = await events(one)

    assert here.frames == there.frames and here.events == logged


async def test_cancelling_waits_for_what_is_cancelled() -> None:
    """What a task raises meanwhile is of no interest any more."""
    ended: list[str] = []

    async def stubborn() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            ended.append("stubborn")

    async def broken() -> None:
        raise ValueError

    tasks = [asyncio.ensure_future(stubborn()), asyncio.ensure_future(broken())]
    await asyncio.sleep(0)
    await cancel_all(tasks)

    assert ended == ["stubborn"] and all(task.done() for task in tasks)
