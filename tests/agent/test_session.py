"""A session goes on with one conversation."""

from __future__ import annotations

from agent.agents import agent_of, lines
from backscroll.compaction.filter import Compaction
from backscroll.compaction.store import CompactionEntry, InMemoryCompactionStore


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
