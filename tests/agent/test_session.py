"""A session goes on with one conversation."""

from __future__ import annotations

from agent.agents import agent_of, lines
from backscroll.agent.answers import Approve
from backscroll.agent.pause import InMemoryPauseStore
from backscroll.compaction.filter import Compaction
from backscroll.compaction.store import CompactionEntry, InMemoryCompactionStore
from backscroll.kernel.tool import tool
from played_model import call, calls


async def test_goes_on_and_forgets() -> None:
    """A session asks, reads its history, and resets it without touching others."""
    agent = agent_of("one", "two", "three")
    session = agent.session("t")

    await session.invoke("a")
    await session.invoke("b")
    await agent.session("other").invoke("c")

    assert lines(await session.history())[2:] == ["user: b", "assistant: two"]
    await session.reset()
    assert await session.history() == []
    assert len(await agent.session("other").history()) == 2


async def test_reset_forgets_the_compaction_entry() -> None:
    """CS4: what compaction knows of the conversation is forgotten with it."""
    store = InMemoryCompactionStore()
    agent = agent_of("one", compaction=Compaction(summariser=None, store=store))
    session = agent.session("t")
    await session.invoke("a")
    await store.put("t", CompactionEntry(failures=2))

    await session.reset()

    assert (await store.get("t")).failures == 0


async def test_pauses_of_a_session() -> None:
    """A session sees what it waits for, goes on with it, and forgets it on reset."""
    paying = tool(sensitive=True)(pay)
    asks = calls(call("pay", id="c1"))
    agent = agent_of(asks, "done", asks, tools=[paying], pauses=InMemoryPauseStore())
    session = agent.session("t")

    await session.invoke("a")
    waiting = await session.paused()
    result = await session.resume({"c1": Approve()})
    await session.invoke("b")
    await session.reset()

    assert waiting is not None and waiting.items[0].tool == "pay"
    assert result.text == "done"
    assert await session.paused() is None
    assert await agent_of().session("t").paused() is None


async def pay() -> str:
    """Pay."""
    return "paid"
