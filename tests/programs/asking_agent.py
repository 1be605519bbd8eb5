"""An agent for tests to serve that asks people: its model is whatever OPENAI_BASE_URL names."""

from __future__ import annotations

import os
from pathlib import Path

from backscroll import Agent, ToolError, tool

LEDGER = Path(os.environ.get("LEDGER", os.devnull))
"""Where it is written down what really happened, whichever worker did it."""


def note(line: str) -> None:
    """Write down that something happened."""
    with LEDGER.open("a", encoding="utf-8") as ledger:
        ledger.write(line + "\n")


@tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    note("add")
    return a + b


@tool(sensitive=True)
def pay(to: str, amount: int) -> str:
    """Pay somebody."""
    note(f"pay {to} {amount}")
    return f"paid {amount} to {to}"


@tool(sensitive=True)
def mail(to: str) -> str:
    """Write to somebody."""
    note(f"mail {to}")
    return f"sent to {to}"


@tool
def login(door: str) -> str:
    """Log in; the first try always fails."""
    opened = LEDGER.exists() and f"knock {door}" in LEDGER.read_text(encoding="utf-8")
    note(f"knock {door}")
    if not opened:
        raise ToolError("the key is missing", "environment")
    return "in"


agent = Agent(
    name="asking",
    model="openai:scripted",
    instructions="You ask before you act.",
    tools=[add, pay, mail, login],
    on_environment_error="pause",
)
