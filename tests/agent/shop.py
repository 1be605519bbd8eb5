"""A shop whose tools count how often they ran, for turns that wait."""

from __future__ import annotations

from typing import Any

from agent.agents import agent_of
from backscroll.agent.agent import Agent
from backscroll.agent.pause import InMemoryPauseStore
from backscroll.kernel.errors import ToolError
from backscroll.kernel.tool import Tool, ToolResult, client_tool, tool

PICK, CONFIRM = client_tool("pick", "Pick a date."), client_tool("confirm", "Confirm it.")


class Shop:
    """Tools that count how often they ran."""

    def __init__(self) -> None:
        self.ran: list[str] = []
        self.key: str | None = None

        @tool
        async def add(a: int, b: int) -> ToolResult:
            """Add two numbers."""
            self.ran.append("add")
            return ToolResult(str(a + b), writes={"sum": a + b})

        @tool(sensitive=True)
        async def pay(amount: int) -> str:
            """Pay an amount."""
            self.ran.append(f"pay {amount}")
            return f"paid {amount}"

        @tool(sensitive=True)
        async def mail(to: str) -> str:
            """Send a mail."""
            self.ran.append(f"mail {to}")
            return f"sent to {to}"

        @tool
        async def login() -> str:
            """Log in, with a key."""
            self.ran.append("login")
            if self.key is None:
                raise ToolError("no key", "environment")
            return f"in with {self.key}"

        self.tools: list[Tool] = [add, pay, mail, login]

    def agent(self, *script: Any, **fields: Any) -> Agent:
        """Return an agent with these tools and a store for pauses."""
        fields = {"pauses": InMemoryPauseStore(), "tools": self.tools, **fields}
        return agent_of(*script, **fields)
