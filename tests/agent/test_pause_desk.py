"""Each pause is handed out once, with a store or without."""

from __future__ import annotations

import pytest
from backscroll.agent.pause import InMemoryPauseStore
from backscroll.agent.pause_desk import REMEMBERED, PauseDesk, PauseMemory
from backscroll.kernel.errors import StoreError
from backscroll.kernel.turn import Pause

PAUSE = Pause("p1", "t", (), 0.0)


class Failing(InMemoryPauseStore):
    """A store that saves nothing."""

    async def save(self, pause: Pause) -> None:
        """Fail."""
        raise StoreError("full")


async def test_without_a_store_the_caller_has_it() -> None:
    """The caller's copy counts, once; after it was kept again it counts again."""
    desk = PauseDesk()
    await desk.keep(PAUSE)

    assert await desk.load("t") is None
    assert [await desk.take(PAUSE), await desk.take(PAUSE)] == [True, False]
    await desk.keep(PAUSE)
    assert await desk.take(PAUSE)
    await desk.discard("t")


async def test_with_a_store_the_store_decides() -> None:
    """What is not in the store any more is not handed out, whoever holds a copy."""
    store = InMemoryPauseStore()
    here, there = PauseDesk(store), PauseDesk(store)
    await here.keep(PAUSE)

    assert await there.load("t") == PAUSE
    assert [await there.take(PAUSE), await here.take(PAUSE)] == [True, False]


async def test_discarding() -> None:
    """A discarded pause is gone from the store."""
    desk = PauseDesk(InMemoryPauseStore())
    await desk.keep(PAUSE)

    await desk.discard("t")

    assert await desk.load("t") is None
    assert not await desk.take(PAUSE)


async def test_a_store_that_fails() -> None:
    """A pause that could not be stored is handed out from the caller's copy, once."""
    desk = PauseDesk(Failing())

    with pytest.raises(StoreError):
        await desk.keep(PAUSE)

    assert [await desk.take(PAUSE), await desk.take(PAUSE)] == [True, False]


async def test_memory_is_bounded() -> None:
    """Only so many pauses are remembered."""
    memory = PauseMemory()
    desk = PauseDesk(None, memory)

    for n in range(REMEMBERED + 5):
        await desk.take(Pause(f"p{n}", "t", (), 0.0))

    assert len(memory.gone) == REMEMBERED
