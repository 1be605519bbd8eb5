"""A time limit for a tool's body, kept also when the body does not heed its cancellation."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Any, TypeVar

from backscroll.kernel.errors import ToolError

T = TypeVar("T")

GRACE_S = 2.0
"""How long a coroutine may clean up after it was cancelled, before it is given up."""

ENDS = (SystemExit, KeyboardInterrupt, GeneratorExit)
"""What ends more than the code that raises it: a task that dies of one takes the loop along."""


class TimedOut(Exception):
    """The body took longer than it may; `heeded` tells whether it has ended."""

    def __init__(self, heeded: bool) -> None:
        super().__init__("the body took longer than it may")
        self.heeded = heeded


async def within(timeout_s: float | None, work: Awaitable[T]) -> T:
    """Return what the work returns, or raise TimedOut; without a limit it is awaited directly."""
    safe: Awaitable[T] = work if isinstance(work, asyncio.Future) else _task_safe(work)
    if timeout_s is None:
        return await safe
    task = asyncio.ensure_future(safe)
    try:
        await asyncio.wait({task}, timeout=timeout_s)
        if not task.done():
            task.cancel()
            await asyncio.wait({task}, timeout=GRACE_S)
            raise TimedOut(task.done())
    except asyncio.CancelledError:
        task.cancel()
        # Whoever cancels us bounds how long this may take.
        await asyncio.wait({task})
        raise
    finally:
        task.add_done_callback(_look_at)
    return task.result()


async def _task_safe(work: Awaitable[T]) -> T:
    """Await the work; what would end more than its own code is raised as its failure."""
    try:
        return await work
    except ENDS as error:
        raise as_failure(error) from error


def as_failure(error: BaseException) -> ToolError:
    """Return the failure of a tool that tried to end more than itself."""
    return ToolError(str(error) or type(error).__name__)


def _look_at(task: asyncio.Future[Any]) -> None:
    """Take note of how a task ended that nobody waits for any longer."""
    if not task.cancelled():
        task.exception()
