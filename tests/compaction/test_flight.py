"""Single flight: one works, all wait, and nobody's leaving hurts the others."""

from __future__ import annotations

import asyncio

import pytest
from backscroll.compaction.flight import Flights
from backscroll.kernel.errors import ModelError
from backscroll.kernel.ports import CancelToken
from compaction.planning import until


class Work:
    """Work that goes on until it is let go."""

    def __init__(self) -> None:
        self.begun, self.ended = 0, 0
        self.token: CancelToken | None = None
        self.go = asyncio.Event()

    async def __call__(self, token: CancelToken) -> str:
        """Do it once."""
        self.begun += 1
        self.token = token
        try:
            await self.go.wait()
        finally:
            self.ended += 1
        return f"result {self.begun}"


async def test_those_that_come_meanwhile_join() -> None:
    """STO3: one piece of work, one result for all."""
    flights, work = Flights[str](), Work()
    waiting = [asyncio.create_task(flights.fly("t", work, CancelToken())) for _ in range(3)]
    await until(lambda: work.begun == 1)
    assert flights.is_flying("t") and not flights.is_flying("u")
    work.go.set()
    assert await asyncio.gather(*waiting) == ["result 1"] * 3
    assert not flights.is_flying("t")
    assert await flights.fly("t", work, CancelToken()) == "result 2"


async def test_one_that_is_cancelled_leaves_the_others_waiting() -> None:
    """Its own wish to stop is its own."""
    flights, work, cancel = Flights[str](), Work(), CancelToken()
    first = asyncio.create_task(flights.fly("t", work, cancel))
    second = asyncio.create_task(flights.fly("t", work, CancelToken()))
    await until(lambda: work.begun == 1)
    cancel.cancel()
    with pytest.raises(ModelError) as caught:
        await first
    assert caught.value.kind == "cancelled"
    work.go.set()
    assert await second == "result 1"


async def test_the_last_to_leave_ends_the_work() -> None:
    """SUM13: it has cleaned up when the last waiter is told."""
    flights, work, cancel = Flights[str](), Work(), CancelToken()
    only = asyncio.create_task(flights.fly("t", work, cancel))
    await until(lambda: work.begun == 1)
    cancel.cancel()
    with pytest.raises(ModelError):
        await only
    assert work.ended == 1
    assert work.token is not None and work.token.cancelled
    assert not flights.is_flying("t")


async def test_a_task_that_is_cancelled_ends_the_work_too() -> None:
    """A worker that shuts down leaves nothing behind."""
    flights, work = Flights[str](), Work()
    only = asyncio.create_task(flights.fly("t", work, CancelToken()))
    await until(lambda: work.begun == 1)
    only.cancel()
    with pytest.raises(asyncio.CancelledError):
        await only
    assert work.ended == 1


async def test_an_error_reaches_everyone() -> None:
    """And it is no error that nobody looked at."""

    async def breaks(token: CancelToken) -> str:
        await asyncio.sleep(0)
        raise ValueError("broken")

    flights = Flights[str]()
    waiting = [flights.fly("t", breaks, CancelToken()) for _ in range(2)]
    found = await asyncio.gather(*waiting, return_exceptions=True)
    assert [str(error) for error in found] == ["broken", "broken"]
