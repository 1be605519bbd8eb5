"""An agent for tests to serve whose tools take as long as a test wants them to."""

from __future__ import annotations

import asyncio
import time
from itertools import count
from pathlib import Path

from backscroll import Agent, tool

PAUSE_S = 0.02


def is_there(path: str) -> bool:
    """Say whether a file exists."""
    return Path(path).exists()


@tool
def get_order(id: int) -> dict[str, object]:
    """Look up an order."""
    return {"id": id, "status": "paid"}


@tool
async def wait_for(path: str) -> str:
    """Return as soon as a file exists."""
    for _ in count():
        if is_there(path):
            break
        await asyncio.sleep(PAUSE_S)
    return f"{Path(path).name} is there"


@tool
def stuck(path: str) -> str:
    """Block a thread until a file exists, and hear nothing meanwhile."""
    while not is_there(path):
        time.sleep(PAUSE_S)
    return f"{Path(path).name} is there"


@tool
async def quiet(seconds: float) -> str:
    """Say nothing for a while."""
    await asyncio.sleep(seconds)
    return "that was quiet"


@tool
def big(chars: int) -> list[str]:
    """Return JSON of so many characters."""
    return [f"{n:08d} {'x' * 86}" for n in range(chars // 100)]


@tool(sensitive=True)
def pay(to: str, amount: int) -> str:
    """Pay somebody; people are asked first."""
    return f"paid {amount} to {to}"


agent = Agent(
    name="waiting",
    model="openai:scripted",
    instructions="You are tested.",
    tools=[get_order, wait_for, stuck, quiet, big, pay],
)
