"""A signature becomes a closed schema, the same every time."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import AsyncIterator
from datetime import date
from decimal import Decimal
from enum import Enum
from typing import Annotated, Any

import pytest
from backscroll.kernel.errors import AssemblyError
from backscroll.kernel.tool import ToolContext
from backscroll.kernel.tool_schema import Problem, json_path, read_docstring, read_signature
from pydantic import BaseModel, Field


class Colour(Enum):
    """An enum parameter."""

    RED = "red"


class Item(BaseModel):
    """A nested parameter."""

    title: str
    count: int


def order(
    number: Annotated[str, "Order number"],
    ctx: ToolContext,
    lines: int = 20,
    when: date | None = None,
    price: Decimal = Decimal("1"),
    colour: Colour = Colour.RED,
    items: list[Item] | None = None,
    note: Annotated[str, Field(description="A note")] = "",
) -> str:
    """Look up one order.

    More words.

    Args:
        number: not used, the annotation wins.
        lines: How many lines at most.
    """
    return number


def test_the_schema_says_what_the_signature_says() -> None:
    """TOOL3: descriptions, defaults and required are there, titles and the context are not."""
    signature = read_signature(order, "order", ToolContext)
    schema = signature.schema()

    assert signature.context == "ctx"
    assert signature.description == "Look up one order."
    assert schema["required"] == ["number"]
    assert schema["additionalProperties"] is False
    assert schema["properties"]["number"] == {"description": "Order number", "type": "string"}
    assert schema["properties"]["lines"]["description"] == "How many lines at most."
    assert schema["properties"]["note"]["description"] == "A note"
    assert "ctx" not in schema["properties"]
    assert list(schema["properties"])[:3] == ["number", "lines", "when"]
    assert schema["$defs"]["Item"]["properties"]["title"] == {"type": "string"}


def test_values_have_their_types() -> None:
    """TOOL5: dates, decimals, enums, models and lists of them arrive as such; defaults too."""
    signature = read_signature(order, "order", ToolContext)

    values = signature.values(
        {
            "number": "A",
            "lines": "4",
            "when": "2026-01-02",
            "price": "2.50",
            "colour": "red",
            "items": [{"title": "t", "count": 1}],
        }
    )

    assert isinstance(values, dict)
    assert (values["lines"], values["when"]) == (4, date(2026, 1, 2))
    assert (values["price"], values["colour"]) == (Decimal("2.50"), Colour.RED)
    assert values["items"] == [Item(title="t", count=1)]
    assert values["note"] == ""


@pytest.mark.parametrize(
    ("args", "field"),
    [
        ({}, "number"),
        ({"number": "A", "nummer": 1}, "nummer"),
        ({"number": "A", "lines": "x"}, "lines"),
        ({"number": "A", "items": [{"title": "t", "count": 1}, {"title": "t"}]}, "items[1].count"),
    ],
)
def test_the_first_problem_is_named(args: dict[str, Any], field: str) -> None:
    """TOOL4: a missing, misspelt or wrongly typed argument is named with its path."""
    found = read_signature(order, "order", ToolContext).values(args)

    assert isinstance(found, Problem)
    assert found.field == field


def no_annotation(a) -> None:  # type: ignore[no-untyped-def]
    """Text."""


def star(*args: int) -> None:
    """Text."""


def odd(a: ToolContext | int) -> None:
    """Text."""


def unknown(a: Nowhere) -> None:  # type: ignore[name-defined]  # noqa: F821
    """Text."""


def by_position(a: int, /) -> None:
    """Text."""


def two_contexts(a: ToolContext, b: ToolContext) -> None:
    """Text."""


async def generator() -> AsyncIterator[int]:
    """Text."""
    yield 1


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (no_annotation, "parameter 'a' has no annotation"),
        (star, r"\*args"),
        (odd, "cannot be described"),
        (unknown, "annotations cannot be read"),
        (generator, "generator"),
        (by_position, "parameter 'a': arguments are passed by name"),
        (two_contexts, "'a' and 'b' both take the context"),
        (threading.Lock, "cannot be read: no signature found"),
    ],
)
def test_what_cannot_be_a_tool_says_why(function: Any, words: str) -> None:
    """The error names the tool and what is wrong."""
    with pytest.raises(AssemblyError, match=words) as caught:
        read_signature(function, "the_tool", ToolContext)
    assert (caught.value.kind, caught.value.where) == ("invalid_tool", "the_tool")


@pytest.mark.filterwarnings("error")
def test_a_parameter_may_have_any_name() -> None:
    """TOOL3: names that a pydantic model keeps to itself are arguments like any others."""

    def body(_a: int, model_config: str, copy: Annotated[int, "Copies"] = 1) -> None:
        """Text."""

    signature = read_signature(body, "it", ToolContext)
    schema = signature.schema()

    assert list(schema["properties"]) == ["_a", "model_config", "copy"]
    assert schema["required"] == ["_a", "model_config"]
    assert schema["properties"]["copy"]["description"] == "Copies"
    values = {"_a": 1, "model_config": "x", "copy": 1}
    assert signature.values({"_a": 1, "model_config": "x"}) == values
    problem = signature.values({"_a": "?", "model_config": "x"})
    assert isinstance(problem, Problem) and problem.field == "_a"


def test_both_docstring_styles_describe_parameters() -> None:
    """An Args section and :param lines are read; other sections are not."""
    google = "Do.\n\nArgs:\n    a: First.\n    b (int): Second.\nReturns:\n    c: no."
    sphinx = "Do\nit.\n\n:param a: First.\n:param int b: Second."

    assert read_docstring(google) == ("Do.", {"a": "First.", "b": "Second."})
    assert read_docstring(sphinx) == ("Do it.", {"a": "First.", "b": "Second."})


def test_paths_read_like_code() -> None:
    """A path is written with dots and brackets."""
    assert json_path(("items", 2, "count")) == "items[2].count"
    assert json_path(()) == ""


def test_the_schema_is_the_same_in_two_processes() -> None:
    """TOOL6: whatever the hash seed, the bytes are equal."""
    code = (
        "import json, typing\n"
        "from backscroll.kernel.tool import tool\n"
        "@tool(tags={'a','b'})\n"
        "def f(x: int, y: typing.Literal['p','q'] = 'p', z: dict[str, int] | None = None) -> int:\n"
        "    'Do.'\n"
        "print(json.dumps(f.info.schema))"
    )
    outputs = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={"PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
            timeout=20,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(outputs) == 1
