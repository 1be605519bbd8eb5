"""A limit is kept, whatever the work makes of its cancellation."""

from __future__ import annotations

import asyncio
import time

import pytest
from backscroll.kernel import deadline
from backscroll.kernel.deadline import TimedOut, within
from backscroll.kernel.errors import ToolError
from deadlines import scaled


async def test_work_that_is_quick() -> None:
    """Its value comes back, with a limit or without."""
    assert await within(5, asyncio.sleep(0, "a")) == "a"
    assert await within(None, asyncio.sleep(0, "b")) == "b"


async def test_work_that_takes_too_long() -> None:
    """RUN6: it is cancelled, may clean up, and has ended when the limit is told of."""
    cleaned: list[str] = []

    async def slow() -> None:
        try:
            await asyncio.sleep(30)
        finally:
            cleaned.append("up")

    with pytest.raises(TimedOut) as caught:
        await within(0.01, slow())

    assert caught.value.heeded and cleaned == ["up"]


@pytest.mark.parametrize("ends", [True, False], ids=["returns all the same", "never ends"])
async def test_work_that_ignores_its_cancellation(
    ends: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A value that comes too late is not taken; what never ends is given up after the grace."""
    monkeypatch.setattr(deadline, "GRACE_S", 0.05)
    release = asyncio.Event()

    async def deaf() -> str:
        while not release.is_set():
            try:
                await release.wait()
            except asyncio.CancelledError:
                if ends:
                    return "late"
        return "released"

    began = time.monotonic()
    with pytest.raises(TimedOut) as caught:
        await within(0.01, deaf())
    release.set()

    assert caught.value.heeded is ends and time.monotonic() - began < scaled(2)


async def test_our_own_cancellation_reaches_the_work() -> None:
    """Who waits is cancelled only when the work has cleaned up."""
    begun, cleaned = asyncio.Event(), asyncio.Event()

    async def slow() -> None:
        try:
            begun.set()
            await asyncio.sleep(30)
        finally:
            await asyncio.sleep(0)
            cleaned.set()

    task = asyncio.ensure_future(within(20, slow()))
    await begun.wait()
    task.cancel()

    with pytest.raises(asyncio.CancelledError):
        await task
    assert cleaned.is_set()


async def test_errors_of_the_work_are_its_own() -> None:
    """A timeout of the work itself is no limit of ours."""

    async def late() -> None:
        raise TimeoutError("mine")

    with pytest.raises(TimeoutError, match="mine"):
        await within(5, late())


@pytest.mark.parametrize("kind", [SystemExit, KeyboardInterrupt, GeneratorExit])
@pytest.mark.parametrize("limit", [None, 5])
async def test_work_that_ends_more_than_itself(
    kind: type[BaseException], limit: float | None
) -> None:
    """It has failed, and the event loop goes on."""

    async def leave() -> None:
        raise kind("enough")

    with pytest.raises(ToolError, match="enough") as caught:
        await within(limit, leave())
    assert isinstance(caught.value.__cause__, kind)
