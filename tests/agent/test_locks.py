"""One holder per conversation, and nothing left when nobody holds it."""

from __future__ import annotations

import asyncio

import pytest
from backscroll.agent.locks import ConversationLocks


async def test_holders_wait_for_each_other() -> None:
    """Two holders of one conversation never overlap; another conversation does not wait."""
    locks, trace = ConversationLocks(), []
    entered, leave = asyncio.Event(), asyncio.Event()

    async def first() -> None:
        async with locks.hold("t"):
            entered.set()
            await leave.wait()
            trace.append("first")

    async def second() -> None:
        async with locks.hold("t"):
            trace.append("second")

    tasks = [asyncio.ensure_future(first()), asyncio.ensure_future(second())]
    await entered.wait()
    async with locks.hold("other"):
        trace.append("other")
    leave.set()
    await asyncio.gather(*tasks)

    assert trace == ["other", "first", "second"]


async def test_locks_are_not_kept() -> None:
    """After the last holder left, or failed, the lock is gone."""
    locks = ConversationLocks()

    with pytest.raises(ValueError):
        async with locks.hold("t"):
            raise ValueError

    assert locks._locks == {}
