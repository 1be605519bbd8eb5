"""An agent for tests to serve: one tool answers at once, one takes half a minute."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

from backscroll import Agent, tool


def begin() -> None:
    """Leave a sign that the slow tool runs."""
    Path(os.environ["BEGUN"]).touch()


@tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@tool
async def wait() -> str:
    """Take half a minute."""
    begin()
    await asyncio.sleep(30)
    return "waited"


agent = Agent(name="a", model="openai:scripted", tools=[add, wait])
