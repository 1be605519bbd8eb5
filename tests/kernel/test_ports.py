"""Ids are new, and the wish to stop ends work once and cleanly."""

from __future__ import annotations

import asyncio

import pytest
from backscroll.kernel.errors import ModelError
from backscroll.kernel.ports import CancelToken, RandomIds, SystemClock


def test_ids_are_new_and_carry_their_prefix() -> None:
    """A thousand ids are a thousand different ones."""
    ids = {RandomIds().new("msg") for _ in range(1000)}

    assert len(ids) == 1000
    assert all(found.startswith("msg_") and len(found) == 21 for found in ids)


async def test_the_clock_is_real() -> None:
    """Now is now, and durations never go back."""
    clock = SystemClock()
    before = clock.monotonic()
    await clock.sleep(0)
    assert clock.monotonic() >= before
    assert clock.now() > 1_700_000_000


async def test_race_returns_what_the_work_returns() -> None:
    """Without the wish nothing changes."""

    async def work() -> int:
        return 7

    assert await CancelToken().race(work()) == 7


async def test_race_ends_the_work() -> None:
    """The wish cancels the work, waits for its clean-up, and raises `cancelled`."""
    token, started, cleaned = CancelToken(), asyncio.Event(), asyncio.Event()

    async def work() -> None:
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            cleaned.set()

    async def wish() -> None:
        await started.wait()
        token.cancel("enough")

    async with asyncio.TaskGroup() as group:
        group.create_task(wish())
        with pytest.raises(ModelError, match="enough") as caught:
            await token.race(work())

    assert caught.value.kind == "cancelled"
    assert cleaned.is_set()
    assert token.reason == "enough"


async def test_race_does_not_begin_after_the_wish() -> None:
    """A token already cancelled starts nothing."""
    token = CancelToken()
    token.cancel()
    ran = False

    async def work() -> None:
        nonlocal ran
        ran = True

    with pytest.raises(ModelError):
        await token.race(work())
    assert not ran


async def test_cancelling_the_task_is_not_the_wish() -> None:
    """Cancelling the surrounding task goes through as it is, and ends the work first."""
    token, started, cleaned = CancelToken(), asyncio.Event(), asyncio.Event()

    async def work() -> None:
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            cleaned.set()

    task = asyncio.create_task(token.race(work()))
    await started.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert cleaned.is_set()


def test_callbacks_run_once_and_can_be_taken_off() -> None:
    """A callback runs on the first cancel only; one taken off does not run."""
    token, calls = CancelToken(), []
    token.on_cancel(lambda: calls.append("a"))
    token.on_cancel(lambda: calls.append("b"))()

    token.cancel("first")
    token.cancel("second")
    token.on_cancel(lambda: calls.append("late"))

    assert calls == ["a", "late"]
    assert token.reason == "first"
