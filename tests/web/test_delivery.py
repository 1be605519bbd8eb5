"""Delivering a thread's entries to one reader."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable
from typing import Any

import pytest
from backscroll.agui.dialect import Dialect
from backscroll.runs.worker import Worker
from backscroll.store.entry import NewEntry
from backscroll.web.delivery import Delivery, NeedsResync
from deadlines import scaled
from working import agent_of, begun, held, key, run, until_ended, working

SMALL = 65_536


class Reader:
    """A reader that keeps what it is sent."""

    def __init__(self) -> None:
        self.frames: list[str] = []

    async def write(self, frames: Iterable[str]) -> None:
        """Keep frames."""
        self.frames += frames

    @property
    def types(self) -> list[str]:
        """The types of the events that arrived."""
        return [json.loads(frame)["type"] for frame in self.frames]


def delivery(feed: Any, reader: Reader, cursor: int = 0, run_id: str | None = None) -> Delivery:
    """Return a delivery in the bare dialect."""
    return Delivery(feed, Dialect("bare", "t", "k3f0"), reader.write, cursor, SMALL, run_id)


async def within(work: Any) -> None:
    """Wait for a delivery to end."""
    async with asyncio.timeout(scaled(10)):
        await work


async def two_runs(worker: Worker) -> None:
    """Let a thread have two runs."""
    await run(worker, "t", "r1", "hi")
    await run(worker, "t", "r2", "hi", "more")


async def test_one_run_and_nothing_else(valkey_url: str, prefix: str) -> None:
    """Operator entries and other runs are passed over; the terminal event is the last frame."""
    async with working(agent_of("a", "b"), valkey_url, prefix) as worker:
        await two_runs(worker)
        reader = Reader()
        async with worker.hub.watch(key()) as feed:
            by = delivery(feed, reader, run_id="r2")
            await within(by.until_terminal())
        head = await worker.log.head(key())

    assert (reader.types[0], reader.types[-1]) == ("RUN_STARTED", "RUN_FINISHED")
    assert json.loads(reader.frames[0])["runId"] == "r2" and reader.types.count("RUN_STARTED") == 1
    assert by.cursor == head.seq


async def test_a_thread_without_end(valkey_url: str, prefix: str) -> None:
    """Without a run it goes on until it is cancelled; the cursor is what was delivered."""
    async with working(agent_of("a", "b"), valkey_url, prefix) as worker:
        reader = Reader()
        async with worker.hub.watch(key()) as feed:
            by = delivery(feed, reader)
            task = asyncio.ensure_future(by.until_terminal())
            await two_runs(worker)
            async with asyncio.timeout(scaled(10)):
                while by.cursor < (await worker.log.head(key())).seq:
                    pass
            task.cancel()
            await asyncio.wait([task])

    assert reader.types.count("RUN_FINISHED") == 2


async def test_the_start_alone(valkey_url: str, prefix: str) -> None:
    """The opening pair stands directly behind RUN_STARTED."""
    async with working(agent_of("a", "b"), valkey_url, prefix) as worker:
        await two_runs(worker)
        reader = Reader()
        async with worker.hub.watch(key()) as feed:
            by = delivery(feed, reader, run_id="r2")
            await within(by.until_started())
            started = list(reader.types)
            await within(by.until_terminal())

    assert started == ["RUN_STARTED"] == reader.types[:1] and reader.types.count("RUN_STARTED") == 1


async def test_frames_follow_a_live_run(valkey_url: str, prefix: str) -> None:
    """What is appended while the delivery waits is delivered."""
    async with working(agent_of(held()), valkey_url, prefix) as worker:
        await begun(worker)
        reader = Reader()
        async with worker.hub.watch(key()) as feed:
            task = asyncio.ensure_future(delivery(feed, reader, run_id="r1").until_terminal())
            await worker.registry.store.stop(key(), "r1")
            await until_ended(worker, "r1")
            await within(task)

    assert reader.types[-1] == "RUN_FINISHED"


def result(chars: int) -> NewEntry:
    """Return a tool result of that size as it would be logged."""
    body = {
        "type": "TOOL_CALL_RESULT",
        "timestamp": 1,
        "messageId": "m",
        "toolCallId": "c",
        "content": "字" * chars,
        "role": "tool",
    }
    return NewEntry(
        "event", "TOOL_CALL_RESULT", json.dumps(body, ensure_ascii=False).encode(), "client", "r1"
    )


async def test_what_can_be_shortened_is(valkey_url: str, prefix: str) -> None:
    """A frame above the reader's limit in bytes is fitted, and the next one follows."""
    async with working(agent_of("a"), valkey_url, prefix) as worker:
        await worker.log.append(key(), [result(200_000), result(5)], fence=0)
        reader = Reader()
        async with worker.hub.watch(key()) as feed:
            by = Delivery(feed, Dialect("bare", "t", "k3f0"), reader.write, 0, 300_000)
            task = asyncio.ensure_future(by.until_terminal())
            async with asyncio.timeout(scaled(10)):
                while by.cursor < 2:
                    await feed.after(by.cursor, 1)
                    await asyncio.sleep(0)
            task.cancel()
            await asyncio.wait([task])

    sizes = [len(frame.encode()) for frame in reader.frames]
    assert sizes[0] <= 300_000 and "characters left out" in reader.frames[0] and len(sizes) == 2


async def test_what_cannot_be_shortened_needs_a_resync(valkey_url: str, prefix: str) -> None:
    """The cursor stays before it, for the prelude to go on from."""
    async with working(agent_of("x" * 65_536), valkey_url, prefix) as worker:
        await run(worker, "t", "r1", "hi")
        seqs = [e.seq for e in await worker.log.read(key(), 0) if e.type == "TEXT_MESSAGE_CONTENT"]
        reader = Reader()
        async with worker.hub.watch(key()) as feed:
            with pytest.raises(NeedsResync) as stuck:
                await within(delivery(feed, reader, run_id="r1").until_terminal())

    assert stuck.value.cursor == seqs[0] - 1 and str(seqs[0] - 1) in str(stuck.value)
