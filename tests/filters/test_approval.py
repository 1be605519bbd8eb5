"""AskApproval asks on the spot."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from agent.agents import agent_of
from backscroll.filters.approval import AskApproval
from backscroll.kernel.client import ChatClient
from backscroll.kernel.errors import AssemblyError, LeaseLost
from backscroll.kernel.tool import tool
from played_model import call, calls

ran: list[str] = []


@tool(sensitive=True)
async def pay(amount: int) -> str:
    """Pay."""
    ran.append("pay")
    return "paid"


@tool
async def look() -> str:
    """Look."""
    return "seen"


async def answer(ask: Any, name: str = "pay") -> Any:
    """Return the response of one tool call."""
    ran.clear()
    client = ChatClient(tools=[pay, look], filters=[AskApproval(ask)])
    return await client.call_tool(name, {"amount": 1} if name == "pay" else {})


async def test_denied() -> None:
    """SM1: the body does not run, and the model reads the denial."""
    response = await answer(lambda name, args: False)

    assert (response.content, response.outcome) == (
        "This call was not approved. It was not executed.",
        "refused",
    )
    assert ran == [] and response.error is None


async def test_approved() -> None:
    """The question has name and arguments, and may be async."""
    asked: list[Any] = []

    async def ask(name: str, args: Any) -> bool:
        asked.append((name, dict(args)))
        return True

    assert (await answer(ask)).content == "paid"
    assert asked == [("pay", {"amount": 1})]


async def test_asking_that_fails(caplog: Any) -> None:
    """SM1: an exception denies; a lost lease comes out."""

    def fail(name: str, args: Any) -> bool:
        raise EOFError

    def lost(name: str, args: Any) -> bool:
        raise LeaseLost("t", 1, 2)

    with caplog.at_level(logging.CRITICAL):
        assert (await answer(fail)).outcome == "refused"
    with pytest.raises(LeaseLost):
        await answer(lost)


async def test_other_tools_are_not_asked_about() -> None:
    """SM1: a tool that is not sensitive runs without a question."""
    assert (await answer(None or (lambda name, args: 1 / 0), "look")).content == "seen"


async def test_in_an_agent() -> None:
    """With the filter sensitive tools do not pause the turn; both can be asked for."""
    ask = AskApproval(lambda name, args: True)
    script = [calls(call("pay", {"amount": 1})), "ok"]
    agent = agent_of(*script, tools=[pay], filters=[ask])
    both = agent_of(*script, tools=[pay], filters=[ask], sensitive_tools="ask")

    assert (await agent.invoke("hi")).status == "completed"
    assert (await both.invoke("hi")).status == "paused"
    with pytest.raises(AssemblyError):
        AskApproval("yes")  # type: ignore[arg-type]
