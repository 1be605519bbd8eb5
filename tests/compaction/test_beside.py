"""Large work leaves the event loop free, small work costs no thread."""

from __future__ import annotations

import asyncio
import threading

import pytest
from backscroll.compaction.beside import LARGE_CHARS, beside
from backscroll.kernel.message import user
from deadlines import scaled

LARGE = [user("x" * (LARGE_CHARS + 1))]


async def test_only_large_work_has_a_thread() -> None:
    """All lists count together, and what was raised comes out."""
    halves = [user("x" * (LARGE_CHARS // 2))]
    here = threading.current_thread()

    assert await beside(threading.current_thread, halves, halves) is here
    assert await beside(threading.current_thread, halves, halves, [user("xx")]) is not here
    with pytest.raises(ZeroDivisionError):
        await beside(lambda: 1 / 0, LARGE)


async def test_who_is_cancelled_waits_for_the_thread() -> None:
    """The work has ended when the cancel is through."""
    began, may_end, ended = threading.Event(), threading.Event(), threading.Event()

    def work() -> None:
        began.set()
        may_end.wait(10)
        ended.set()

    task = asyncio.ensure_future(beside(work, LARGE))
    async with asyncio.timeout(scaled(5)):
        while not began.is_set():  # noqa: ASYNC110 - a thread sets it
            await asyncio.sleep(0.001)
    task.cancel()
    done, _ = await asyncio.wait([task], timeout=0.1)
    may_end.set()
    with pytest.raises(asyncio.CancelledError):
        await task

    assert done == set() and ended.is_set()
