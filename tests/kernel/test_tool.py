"""Tools are declared in one way, checked at once, and selected by tags."""

from __future__ import annotations

from typing import Any

import pytest
from backscroll.kernel.errors import AssemblyError
from backscroll.kernel.tool import (
    Tool,
    ToolContext,
    ToolRetry,
    ToolSet,
    client_tool,
    tool,
)
from backscroll.kernel.tool_schema import Problem

CLOSED = {
    "type": "object",
    "properties": {"n": {"type": "integer", "default": 3}, "items": {"type": "array"}},
    "additionalProperties": False,
}


@tool
def add(a: int, b: int = 2) -> int:
    """Add two numbers."""
    return a + b


@tool(name="renamed", description="Says so.", tags={"a"}, sensitive=True, serial=True, retry=True)
async def other() -> str:
    """Not used."""
    return "x"


def test_options_are_kept() -> None:
    """What the decorator was told is in the tool's info."""
    info = other.info

    assert (info.name, info.description, info.tags) == ("renamed", "Says so.", frozenset({"a"}))
    assert info.sensitive and info.serial and info.idempotent
    assert info.retry == ToolRetry()
    assert other.is_async and not add.is_async
    assert add.spec().name == "add" and not add.info.idempotent


def test_names_are_unique_in_any_mix() -> None:
    """TOOL1: two tools of one name, declared, by schema or of the client, are refused."""
    for twin in (
        add,
        Tool.from_schema("add", "Add.", CLOSED, lambda args, ctx: 1),
        client_tool("add", "Add."),
    ):
        with pytest.raises(AssemblyError, match="'add'") as caught:
            ToolSet([add]).plus([twin])
        assert caught.value.kind == "duplicate_tool"


@pytest.mark.parametrize(
    ("options", "kind"),
    [
        ({"timeout_s": "5"}, "invalid_tool"),
        ({"timeout_s": 0}, "invalid_tool"),
        ({"timeout_s": -1}, "invalid_tool"),
        ({"retry": ToolRetry(max_retries="3")}, "invalid_retry"),  # type: ignore[arg-type]
        ({"retry": "yes"}, "invalid_retry"),
        ({"name": "not a name"}, "invalid_tool"),
        ({"description": " "}, "invalid_tool"),
        ({"colour": "red"}, "invalid_tool"),
    ],
)
def test_bad_options_are_refused(options: dict[str, Any], kind: str) -> None:
    """TOOL2: a wrong option is an assembly error that names the tool."""

    def plain() -> int:
        """Do."""
        return 1

    with pytest.raises(AssemblyError) as caught:
        tool(**options)(plain)
    assert caught.value.kind == kind
    assert caught.value.where in ("plain", "not a name")


def test_a_tool_needs_a_description() -> None:
    """A function without a docstring is refused."""

    def silent() -> int:
        return 1

    with pytest.raises(AssemblyError, match="description"):
        tool(silent)


def test_schema_tools_check_their_arguments() -> None:
    """TOOL4: unknown names in a closed schema and wrong types are named; defaults are applied."""
    found = Tool.from_schema("f", "Do.", CLOSED, lambda args, ctx: args)

    assert found.check({}) == {"n": 3}
    assert isinstance(found.check({"m": 1}), Problem)
    problem = found.check({"n": "x"})
    assert isinstance(problem, Problem) and problem.field == "n"


def test_tags_select() -> None:
    """TOOL7: any wanted tag and no unwanted one; without tags all are offered."""
    tools = ToolSet([add, other])

    assert tools.select().names() == ("add", "renamed")
    assert tools.select(tags={"a"}).names() == ("renamed",)
    assert tools.select(exclude_tags={"a"}).names() == ("add",)
    assert tools.get("add") is add and tools.get("nope") is None
    assert [spec.name for spec in tools.specs()] == ["add", "renamed"]
    assert (tools[0], tools[0:1], len(tools)) == (add, (add,), 2)


def test_a_plain_function_is_no_tool() -> None:
    """A tool set says how to make a tool of what it was given."""
    with pytest.raises(AssemblyError, match="decorate the function"):
        ToolSet([len])  # type: ignore[list-item]


def test_the_context_is_read_only() -> None:
    """CTX5: a tool can read the context and cannot assign to it."""
    values = {"conversation_id": "t", "budget": 1}
    context = ToolContext(values, call_id="c", message_id="m")
    values["budget"] = 2

    assert (context["budget"], context.conversation_id, len(context)) == (1, "t", 2)
    assert sorted(context) == ["budget", "conversation_id"]
    with pytest.raises(TypeError):
        context["budget"] = 3  # type: ignore[index]


def test_a_client_tool_has_no_body() -> None:
    """A tool of the client is offered and never run here."""
    pick = client_tool("pick", "Pick one.")

    assert pick.body is None
    assert pick.info.runs_in == "client"
