"""Arguments that do not fit never reach a body, whatever kind of tool it is."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from decimal import Decimal
from enum import Enum
from typing import Any

import pytest
from agent.agents import agent_of
from backscroll.kernel.tool import Tool, tool
from played_model import call, calls
from pydantic import BaseModel

ran: list[Any] = []


class Item(BaseModel):
    """One item of an order."""

    count: int


class Colour(Enum):
    """A colour."""

    RED = "red"


def of_function() -> Tool:
    """Return a tool made from a function."""

    @tool
    async def order(number: str, items: list[Item] | None = None, lines: int = 3) -> str:
        """Order."""
        ran.append((number, lines))
        return "ok"

    return order


def of_schema() -> Tool:
    """Return the same tool made from a closed schema."""
    count = {"type": "object", "properties": {"count": {"type": "integer"}}}
    members = {
        "number": {"type": "string"},
        "items": {"type": "array", "items": count},
        "lines": {"type": "integer", "default": 3},
    }
    schema = {
        "type": "object",
        "properties": members,
        "required": ["number"],
        "additionalProperties": False,
    }

    def body(args: Any, ctx: Any) -> str:
        ran.append((args["number"], args["lines"]))
        return "ok"

    return Tool.from_schema("order", "Order.", schema, body)


@pytest.mark.parametrize("is_inline", [False, True])
@pytest.mark.parametrize("make", [of_function, of_schema])
async def test_arguments_that_do_not_fit(make: Callable[[], Tool], is_inline: bool) -> None:
    """TOOL3, TOOL4: the result names the field, the body does not run; a default is filled in."""
    ran.clear()
    bad_items = [{"count": 1}, {"count": 2}, {"count": "many"}]
    args: list[Any] = [
        {},
        {"number": "A", "nummer": "B"},
        {"number": "A", "items": bad_items},
        {"number": "A"},
    ]
    script = [*(calls(call("order", given)) for given in args), "ok"]
    agent = agent_of(*script, tools=[] if is_inline else [make()])

    result = await agent.invoke("hi", tools=[make()] if is_inline else [])

    told = [str(record.content) for record in result.records]
    for text, field in zip(told, ("number", "nummer", "items[2].count"), strict=False):
        assert text.startswith("error: invalid arguments for order: ") and field in text
    assert [record.outcome for record in result.records] == ["error"] * 3 + ["ok"]
    assert ran == [("A", 3)]


async def test_a_body_gets_its_types() -> None:
    """TOOL5: dates, decimals, enums, models and lists of them arrive as those types."""
    got: list[Any] = []

    @tool
    async def order(on: date, price: Decimal, colour: Colour, one: Item, more: list[Item]) -> str:
        """Order."""
        got.extend((on, price, colour, one, more))
        return "ok"

    args = {
        "on": "2026-01-02",
        "price": "2.50",
        "colour": "red",
        "one": {"count": 1},
        "more": [{"count": "2"}],
    }
    result = await agent_of(calls(call("order", args)), "ok", tools=[order]).invoke("hi")

    two = [Item(count=2)]
    assert got == [date(2026, 1, 2), Decimal("2.50"), Colour.RED, Item(count=1), two]
    assert isinstance(got[1], Decimal) and result.records[0].args == args
