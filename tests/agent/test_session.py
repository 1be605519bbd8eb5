"""A session goes on with one conversation."""

from __future__ import annotations

from agent.agents import agent_of, lines


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
