"""An agent for tests to serve: its model is whatever OPENAI_BASE_URL names."""

from __future__ import annotations

from backscroll import Agent, tool


@tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@tool
def get_order(id: int) -> dict[str, object]:
    """Look up an order."""
    return {"id": id, "status": "paid"}


@tool
def broken() -> str:
    """Fail, always."""
    raise RuntimeError("the warehouse does not answer")


@tool(sensitive=True)
def pay(to: str, amount: int) -> str:
    """Pay somebody; people are asked first."""
    return f"paid {amount} to {to}"


@tool(sensitive=True)
def mail(to: str) -> str:
    """Write to somebody; people are asked first."""
    return f"sent to {to}"


agent = Agent(
    name="tested",
    model="openai:scripted",
    instructions="You are tested.",
    tools=[add, get_order, broken, pay, mail],
)
