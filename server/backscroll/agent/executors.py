"""Executors: how the tool executions of one batch are scheduled."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import TypeVar

from backscroll.agent.threads import Threads
from backscroll.kernel.client import Job
from backscroll.kernel.errors import AssemblyError, ToolError
from backscroll.kernel.request import ToolResponse

T = TypeVar("T")


class SequentialExecutor:
    """Runs the calls of a batch one after the other, in order; plain functions on one thread."""

    def __init__(self, threads: int = 1, timeout_s: float | None = None) -> None:
        self.timeout_s = timeout_s
        self._threads = Threads(_size(threads))

    async def run(self, jobs: Sequence[Job], *, serial: bool) -> list[ToolResponse]:
        """Run the jobs in order."""
        return [await job.run() for job in jobs]

    async def call(self, function: Callable[[], T]) -> T:
        """Run a plain function on the pool's thread."""
        return await self._threads.run(function)

    async def aclose(self) -> None:
        """Let go of the threads."""
        self._threads.close()


class ConcurrentExecutor(SequentialExecutor):
    """Runs the calls of a batch at once, each in a task of its own, unless one is serial."""

    def __init__(self, threads: int = 16, timeout_s: float | None = None) -> None:
        super().__init__(threads, timeout_s)

    async def run(self, jobs: Sequence[Job], *, serial: bool) -> list[ToolResponse]:
        """Run the jobs at once; a batch of one is awaited directly."""
        if serial or len(jobs) < 2:
            return await super().run(jobs, serial=serial)
        return await _together(jobs)


class PoolExecutor(ConcurrentExecutor):
    """Runs at most `size` calls at once over all batches, as a bulkhead.

    After `aclose` its calls fail with kind `environment`.
    """

    def __init__(self, size: int, timeout_s: float | None = None) -> None:
        super().__init__(size, timeout_s)
        self._room = asyncio.Semaphore(size)
        self._closed = False

    async def run(self, jobs: Sequence[Job], *, serial: bool) -> list[ToolResponse]:
        """Run the jobs as far as there is room."""
        if self._closed:
            raise ToolError("the pool of tools is closed", "environment")
        return await super().run([self._bounded(job) for job in jobs], serial=serial)

    async def aclose(self) -> None:
        """Take no more calls."""
        self._closed = True
        await super().aclose()

    def _bounded(self, job: Job) -> Job:
        async def run() -> ToolResponse:
            async with self._room:
                response: ToolResponse = await job.run()
                return response

        return Job(job.tool, run)


async def _together(jobs: Sequence[Job]) -> list[ToolResponse]:
    """Run the jobs as tasks; when one breaks, or we are cancelled, all are ended and awaited."""
    tasks = [asyncio.ensure_future(job.run()) for job in jobs]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
        broken = [error for task in done if (error := task.exception()) is not None]
        if broken:
            raise broken[0]
        return [task.result() for task in tasks]
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _size(threads: int) -> int:
    if not isinstance(threads, int) or isinstance(threads, bool) or threads < 1:
        message = f"threads: expected a whole number above 0, got {threads!r}"
        raise AssemblyError("invalid_option", message, "threads")
    return threads
