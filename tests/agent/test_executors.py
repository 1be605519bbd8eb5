"""Executors decide what runs at once; the order of results is theirs to keep."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest
from backscroll.agent.executors import ConcurrentExecutor, PoolExecutor, SequentialExecutor
from backscroll.kernel.client import Job
from backscroll.kernel.errors import AssemblyError, ToolError
from backscroll.kernel.request import ToolResponse
from backscroll.kernel.tool import tool


@tool
async def anything() -> str:
    """Do anything."""
    return ""


def job(run: Any) -> Job:
    """Return a job that runs a function without arguments."""
    return Job(anything, run)


class Gauge:
    """Counts how many run at once, and the most there were."""

    def __init__(self) -> None:
        self.now = self.most = 0
        self.tasks: set[Any] = set()

    async def run(self) -> ToolResponse:
        """Be counted."""
        self.now += 1
        self.most = max(self.most, self.now)
        self.tasks.add(asyncio.current_task())
        await asyncio.sleep(0.01)
        self.now -= 1
        return ToolResponse("ok")


async def test_sequential() -> None:
    """RUN1: one after the other, in the caller's own task."""
    gauge = Gauge()

    responses = await SequentialExecutor().run([job(gauge.run)] * 3, serial=False)

    assert len(responses) == 3
    assert gauge.most == 1
    assert gauge.tasks == {asyncio.current_task()}


async def test_concurrent() -> None:
    """All at once, each in a task of its own; responses have the order of the jobs."""
    gauge = Gauge()

    async def last() -> ToolResponse:
        return ToolResponse("last")

    responses = await ConcurrentExecutor().run([*[job(gauge.run)] * 3, job(last)], serial=False)

    assert [response.content for response in responses] == ["ok", "ok", "ok", "last"]
    assert gauge.most == 3 and len(gauge.tasks) == 3


async def test_serial_and_single_batches() -> None:
    """RUN1, RUN2: a serial batch, or one of one call, starts no task of its own."""
    gauge = Gauge()
    executor = ConcurrentExecutor()

    await executor.run([job(gauge.run)] * 3, serial=True)
    await executor.run([job(gauge.run)], serial=False)

    assert gauge.most == 1
    assert gauge.tasks == {asyncio.current_task()}


async def test_a_pool_bounds_all_its_batches() -> None:
    """A pool of two runs two calls at once, over several batches."""
    gauge = Gauge()
    executor = PoolExecutor(2)

    await asyncio.gather(*(executor.run([job(gauge.run)] * 3, serial=False) for _ in range(3)))

    assert gauge.most == 2


async def test_a_closed_pool() -> None:
    """RUN8: a closed pool refuses batches and plain functions."""
    executor = PoolExecutor(2)
    await executor.aclose()

    with pytest.raises(ToolError) as caught:
        await executor.run([job(Gauge().run)], serial=False)
    with pytest.raises(ToolError):
        await executor.call(lambda: 1)

    assert caught.value.kind == "environment"


async def test_a_job_that_breaks_ends_the_others() -> None:
    """An exception out of a job ends the others, which are awaited, and comes out."""
    ended: list[str] = []

    async def wait() -> ToolResponse:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("wait")
        return ToolResponse("never")

    async def broken() -> ToolResponse:
        raise OSError("broken")

    with pytest.raises(OSError, match="broken"):
        await ConcurrentExecutor().run([job(wait), job(broken), job(broken)], serial=False)

    assert ended == ["wait"]


async def test_plain_functions_share_a_bound() -> None:
    """RUN5: 40 plain functions on four threads: at most four run at once."""
    guard, counts = threading.Lock(), {"now": 0, "most": 0}
    four = threading.Barrier(4)

    def work() -> int:
        with guard:
            counts["now"] += 1
            counts["most"] = max(counts["most"], counts["now"])
        four.wait(10)
        with guard:
            counts["now"] -= 1
        return 1

    executor = ConcurrentExecutor(threads=4)
    done = await asyncio.gather(*(executor.call(work) for _ in range(40)))

    assert sum(done) == 40
    assert counts["most"] == 4
    await executor.aclose()


@pytest.mark.parametrize("threads", [0, -1, "4", True])
def test_sizes_are_checked(threads: Any) -> None:
    """A number of threads that is none is refused at assembly."""
    with pytest.raises(AssemblyError, match="threads"):
        ConcurrentExecutor(threads=threads)
