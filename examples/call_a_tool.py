"""An agent with a tool, driven from Python, offline: the demo model does what it is told."""

from __future__ import annotations

import asyncio
from typing import Annotated

from backscroll import Agent, InMemoryChatMemory, tool


@tool
def price(item: Annotated[str, "What is for sale"]) -> float:
    """Say what one piece costs."""
    return {"saddle": 80.0, "bell": 12.5}[item]


async def main() -> None:
    """Ask once, then show the answer, the tool that ran, and what is remembered."""
    memory = InMemoryChatMemory()
    agent = Agent(model="demo", tools=[price], memory=memory)

    result = await agent.invoke('use price {"item": "saddle"}', conversation_id="shop-1")

    print(result.text)
    for record in result.records:
        print(f"  ran {record.name}: {record.outcome}")
    for message in await memory.get("shop-1"):
        print(f"  kept {message.role}: {message.text}")


asyncio.run(main())
