"""Calls that cannot run, and what the model is told about them."""

from __future__ import annotations

import pytest
from backscroll.agent.unrunnable import NAMES_SHOWN, args_problem, unrunnable
from backscroll.kernel.message import parse_call
from backscroll.kernel.texts import Texts
from backscroll.kernel.tool import Tool, ToolSet, tool

TEXTS = Texts()


@tool
async def delete_items(ids: list[int]) -> str:
    """Delete items."""
    return "gone"


TOOLS = ToolSet([delete_items])


@pytest.mark.parametrize(
    ("raw", "problem"),
    [
        ('{"ids":[1,2', "Expecting ',' delimiter at character 12"),
        ("[1]", "expected an object, got an array"),
        ('"x"', "expected an object, got a string"),
        ("7", "expected an object, got a number"),
        ("1.5", "expected an object, got a number"),
        ("true", "expected an object, got a boolean"),
        ("null", "expected an object, got null"),
        ("NaN", "NaN is not JSON"),
        ("[" * 100_000, "maximum recursion depth exceeded"),
    ],
)
def test_what_is_wrong_with_arguments(raw: str, problem: str) -> None:
    """RUN9: the text says what the arguments are instead of an object."""
    assert args_problem(raw).startswith(problem)


def test_broken_arguments() -> None:
    """RUN9, MSG7: the call is refused with the problem, and its raw text stays on it."""
    call = parse_call("c1", "delete_items", '{"ids":[1,2')

    answer = unrunnable(call, TOOLS, TEXTS)

    assert answer is not None and answer.error is not None
    assert (answer.outcome, answer.error.kind) == ("error", "semantic")
    assert "not a JSON object (Expecting ',' delimiter at character 12)" in answer.content
    assert call.raw == '{"ids":[1,2'


def test_arguments_cut_by_the_length_limit() -> None:
    """A reply that reached its limit inside the arguments is told so."""
    answer = unrunnable(parse_call("c1", "delete_items", '{"ids":'), TOOLS, TEXTS, is_cut=True)

    assert answer is not None
    assert answer.content.startswith("error: the reply reached its length limit")


def test_arguments_that_do_not_fit() -> None:
    """TOOL4: the field and the problem are named."""
    answer = unrunnable(parse_call("c1", "delete_items", {"ids": [1, "x"]}), TOOLS, TEXTS)

    assert answer is not None
    assert answer.content.startswith("error: invalid arguments for delete_items: ids[1]: ")


def test_an_unknown_tool() -> None:
    """RUN10: the name is told with at most fifty of those there are."""
    many = ToolSet(
        Tool.from_schema(f"t{n}", "One of many.", {"type": "object"}, None) for n in range(60)
    )

    answer = unrunnable(parse_call("c1", "t99", {}), many, TEXTS)
    none = unrunnable(parse_call("c1", "t99", {}), ToolSet(), TEXTS)

    assert answer is not None and none is not None
    assert f"t{NAMES_SHOWN - 1}." in answer.content and f"t{NAMES_SHOWN}" not in answer.content
    assert none.content.endswith("Available tools: none.")


def test_a_call_that_can_run() -> None:
    """Nothing is wrong with a call that fits."""
    assert unrunnable(parse_call("c1", "delete_items", {"ids": [1]}), TOOLS, TEXTS) is None
