"""Summaries made between runs, on a real log."""

from __future__ import annotations

import asyncio
import json
import logging
from typing import Any

import pytest
from backscroll.agent.agent import Agent
from backscroll.compaction.extractive import ExtractiveSummariser
from backscroll.compaction.filter import Compaction
from backscroll.compaction.summariser import SummaryDraft, SummaryPart
from backscroll.kernel.errors import StoreError
from backscroll.kernel.ports import CancelToken
from backscroll.runs.ahead import AheadSummaries, _cancel_at_start
from backscroll.runs.worker import Worker
from deadlines import scaled
from served import until
from windowed_model import Windowed
from working import bodies, events, key, run, working

WORDS = "The report of this week holds many words and not one surprise for anybody at all. "


class Gated(ExtractiveSummariser):
    """A summariser that waits while it is closed, and counts who asks and who gives up."""

    def __init__(self) -> None:
        super().__init__()
        self.open, self.asked, self.stopped = asyncio.Event(), 0, 0

    async def summarise(self, part: SummaryPart) -> SummaryDraft:
        """Wait, then summarise."""
        self.asked += 1
        try:
            await self.open.wait()
        except asyncio.CancelledError:
            self.stopped += 1
            raise
        return await super().summarise(part)


def agent_with(summariser: Gated, **options: Any) -> Agent:
    """Return an agent whose answers are long."""
    script = [f"{n}: {WORDS * 40}" for n in range(30)]
    options = {"background": True, **options}
    return Agent(name="a", model=Windowed(script), compaction=Compaction(summariser, **options))


async def talked(worker: Worker, turns: int, first: int = 1) -> None:
    """Hold so many turns."""
    for turn in range(first, first + turns):
        texts = [f"question {n}" for n in range(1, turn + 1)]
        await run(worker, "t", f"r{turn}", *texts)


async def first_decision(worker: Worker) -> dict[str, Any]:
    """Return the first decision of the thread as soon as it is in the log."""
    async with asyncio.timeout(scaled(10)), worker.hub.watch(key()) as feed:
        cursor = 0
        while True:
            for item in await feed.after(cursor):
                cursor = item.seq
                if item.entry.kind == "compaction":
                    return dict(json.loads(item.entry.body))


async def test_a_summary_is_made_when_a_run_has_ended(valkey_url: str, prefix: str) -> None:
    """It is in the ring as ready and in the log as `background`; clients see nothing of it."""
    gated = Gated()
    gated.open.set()
    async with working(agent_with(gated), valkey_url, prefix) as worker:
        await talked(worker, 6)
        await until(lambda: gated.asked == 1, "the summary is made", scaled(10))
        told = await first_decision(worker)
        entry = await worker.compaction.get("t")
        await talked(worker, 2, first=7)
        decisions = await bodies(worker, "compaction")
        cards = [e for e in await events(worker) if e["type"] == "ACTIVITY_SNAPSHOT"]

    assert (told["trigger"], told["result"], told["compaction"]) == ("background", "done", 1)
    assert entry.cache is None and [cache.ready for cache in entry.ring] == [True]
    adopted = [d for d in decisions if d.get("summary", {}).get("source") == "adopted"]
    assert len(adopted) == 1 and "background" not in {c["content"]["trigger"] for c in cards}


async def test_a_run_that_starts_stops_it(valkey_url: str, prefix: str) -> None:
    """On another worker too; the run does not wait for it, and nothing is counted."""
    gated, other = Gated(), Gated()
    other.open.set()
    async with (
        working(agent_with(gated), valkey_url, prefix) as worker,
        working(agent_with(other, background=False), valkey_url, prefix) as second,
    ):
        await talked(worker, 6)
        await until(lambda: gated.asked == 1, "the summary is begun", scaled(10))
        await talked(second, 1, first=7)
        await until(lambda: gated.stopped == 1, "the summary is given up", scaled(10))
        entry = await worker.compaction.get("t")

    assert (entry.failures, entry.ring) == (0, ()) and gated.asked == 1


async def test_nothing_is_made_where_it_is_not_wanted(valkey_url: str, prefix: str) -> None:
    """Not without `background`, in a worker that leaves, on a busy or an unknown thread."""
    gated = Gated()
    async with working(agent_with(gated, background=False), valkey_url, prefix) as worker:
        await talked(worker, 6)
        worker.registry.ahead.after_run(key())
        assert worker.registry.ahead._queue.empty()
        wanting = AheadSummaries(agent_with(gated), worker.log, worker.hub, lambda: False)
        leaving = AheadSummaries(agent_with(gated), worker.log, worker.hub, lambda: True)
        await leaving._look_at(key())
        await wanting._look_at(key("unknown"))
        await worker.clients.write.hset(worker.keys.meta(key()), "run", "r9")
        await wanting._look_at(key())
        await worker.clients.write.hset(worker.keys.meta(key()), mapping={"run": "", "pause": "p"})
        await wanting._look_at(key())

    assert gated.asked == 0


async def test_too_many_threads_are_passed_over(valkey_url: str, prefix: str) -> None:
    """The queue has a bound; what does not fit is left to the next call."""
    async with working(agent_with(Gated(), background=False), valkey_url, prefix) as worker:
        ahead = AheadSummaries(agent_with(Gated()), worker.log, worker.hub, lambda: False)
        for n in range(150):
            ahead.after_run(key(f"t{n}"))

        assert ahead._queue.qsize() == 100


async def test_a_failure_is_counted_and_noted(valkey_url: str, prefix: str) -> None:
    """The decision says so, and the next run is not harmed."""

    class Broken(Gated):
        async def summarise(self, part: SummaryPart) -> SummaryDraft:
            raise RuntimeError("no notes today")

    async with working(agent_with(Broken()), valkey_url, prefix) as worker:
        await talked(worker, 6)
        told = await first_decision(worker)
        entry = await worker.compaction.get("t")

    assert (told["result"], told["reason"]) == ("failed", "summariser_failed")
    assert entry.failures == 1


@pytest.mark.parametrize("error", [StoreError("down"), RuntimeError("ours")])
async def test_what_goes_wrong_is_logged(
    valkey_url: str, prefix: str, caplog: pytest.LogCaptureFixture, error: Exception
) -> None:
    """And the next thread is looked at."""
    seen: list[str] = []

    async def look(thread: Any) -> None:
        seen.append(thread.thread_id)
        if len(seen) == 1:
            raise error

    caplog.set_level(logging.WARNING)
    async with working(agent_with(Gated()), valkey_url, prefix) as worker:
        worker.registry.ahead._look_at = look  # type: ignore[method-assign]
        worker.registry.ahead.after_run(key("one"))
        worker.registry.ahead.after_run(key("two"))
        await until(lambda: len(seen) == 2, "both were looked at", scaled(10))

    assert "thread one gets no summary ahead of need" in caplog.text


async def test_what_cannot_be_heard_is_not_risked() -> None:
    """A log that fails ends the summary."""

    class Deaf:
        async def after(self, cursor: int) -> list[Any]:
            raise StoreError("the log is down")

    cancel = CancelToken()
    await _cancel_at_start(Deaf(), 0, cancel)  # type: ignore[arg-type]
    assert cancel.cancelled
