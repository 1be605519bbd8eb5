"""The agent that `backscroll serve` starts with: a small shop, offline, to try everything on."""

from __future__ import annotations

import asyncio
import json
from typing import Annotated

from backscroll.agent.agent import Agent
from backscroll.compaction.extractive import ExtractiveSummariser
from backscroll.compaction.filter import Compaction
from backscroll.kernel.tool import tool
from backscroll.providers.demo import DemoModel

ORDERS = {
    "A-1042": {"status": "paid", "total": 189.5, "item": "touring saddle", "city": "Basel"},
    "A-1093": {"status": "shipped", "total": 64.0, "item": "bottle cage", "city": "Lyon"},
}


@tool(tags={"orders"}, idempotent=True)
def get_order(number: Annotated[str, "Order number, like A-1042"]) -> dict[str, object]:
    """Look up one order of the shop."""
    found = ORDERS.get(number.upper())
    if found is None:
        known = ", ".join(ORDERS)
        return {"error": f"there is no order {number}; known are {known}"}
    return {"number": number.upper(), **found}


@tool(tags={"stock"}, timeout_s=30, idempotent=True)
async def check_stock(
    item: Annotated[str, "What to look for"], seconds: Annotated[float, "How long it takes"] = 3
) -> str:
    """Ask the warehouse, which takes its time."""
    await asyncio.sleep(max(0.0, min(seconds, 20)))
    return f"{item}: 7 in stock, 2 reserved"


@tool(tags={"reports"}, idempotent=True)
def sales_report(days: Annotated[int, "How many days back"] = 30) -> str:
    """Return every sale of the last days, which is a lot."""
    days = max(1, min(days, 365))
    rows = [
        {
            "day": day,
            "order": f"A-{2000 + day * 7}",
            "item": ("saddle", "pedal", "chain", "lamp")[day % 4],
            "quantity": day % 5 + 1,
            "total": round(19.9 * (day % 5 + 1), 2),
        }
        for day in range(days * 4)
    ]
    return json.dumps(rows, ensure_ascii=False)


@tool(tags={"orders"}, sensitive=True)
def refund(
    number: Annotated[str, "Order number, like A-1042"], amount: Annotated[float, "How much"]
) -> str:
    """Pay money back for an order; people are asked first."""
    return f"{amount:.2f} are on their way back for {number.upper()}"


agent = Agent(
    name="demo",
    model=DemoModel(),
    instructions="You help the customers and the staff of a small bicycle shop.",
    tools=[get_order, check_stock, sales_report, refund],
    compaction=Compaction(summariser=ExtractiveSummariser()),
)
