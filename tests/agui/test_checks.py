"""Checks beyond the shape of a request."""

from __future__ import annotations

from typing import Any

import pytest
from ag_ui import core as ag
from backscroll.agui.checks import InputLimits, cleaned, model_problems, tree_problems


def found(**members: Any) -> list[str]:
    """Return what is wrong with a request whose shape is right."""
    value = {"threadId": "t", "runId": "r", "messages": [], **members}
    model = ag.RunAgentInput.model_validate(value)
    return [f"{p.code}: {p}" for p in model_problems(model, {}, InputLimits())]


def test_a_good_request_has_no_problems() -> None:
    """Ids, tools and versions as they should be."""
    tool = {"name": "pick_date-2", "description": "", "parameters": {}}

    assert found(tools=[tool], protocolVersion="1.0", parentRunId="r0") == []


@pytest.mark.parametrize(
    ("value", "wrong"),
    [
        ("", "is empty"),
        ("x" * 257, "is longer than 256 characters"),
        ("a\nb", "has control characters"),
    ],
)
def test_ids_of_the_client(value: str, wrong: str) -> None:
    """Every id a client chooses is checked where it stands."""
    call = {"id": value, "type": "function", "function": {"name": "f", "arguments": ""}}
    answer = {"id": "t1", "role": "tool", "toolCallId": value, "content": ""}
    messages = [{"id": value, "role": "assistant", "toolCalls": [call]}, answer]

    told = found(threadId=value, messages=messages, resume=[_entry(value)])

    assert told == [
        f"invalid_input: threadId {wrong}",
        f"invalid_input: messages[0].id {wrong}",
        f"invalid_input: messages[0].toolCalls[0].id {wrong}",
        f"invalid_input: messages[1].toolCallId {wrong}",
        f"invalid_input: resume[0].interruptId {wrong}",
    ]


def _entry(name: str) -> dict[str, Any]:
    return {"interruptId": name, "status": "resolved"}


def test_tools_of_the_client() -> None:
    """Names match, are unique, and schemas are objects."""
    tools = [
        {"name": "a b", "description": ""},
        {"name": "a", "description": ""},
        {"name": "a", "description": "", "parameters": True},
    ]

    assert found(tools=tools) == [
        "invalid_input: tools[0].name must match [A-Za-z0-9_-]{1,64}",
        "duplicate_tool: tools[2].name a is named twice",
        "invalid_input: tools[2].parameters must be an object",
    ]


def test_limits_are_named() -> None:
    """Too many tools, schemas, messages, context bytes."""
    tools = [{"name": f"t{n}", "description": "", "parameters": {}} for n in range(129)]
    large = [{"name": "a", "description": "", "parameters": {"x": "y" * 300_000}}]
    messages = [{"id": f"u{n}", "role": "user", "content": ""} for n in range(10_001)]

    assert found(tools=tools) == ["too_large: tools has 129 items, allowed are 128"]
    assert found(tools=large)[0].startswith("too_large: tools holds 300,0")
    assert found(messages=messages)[0].startswith("too_large: messages has 10,001 items")
    assert found(context=[{"description": "", "value": "x" * 70_000}])[0].startswith("too_large")


def test_other_majors_are_not_supported() -> None:
    """Whoever speaks another major would not understand us."""
    assert found(protocolVersion="1.4") == found(protocolVersion="1") == []
    assert found(protocolVersion="0.9")[0].startswith("unsupported_version: protocolVersion '0.9'")


def test_depth_and_numbers_are_found_by_member() -> None:
    """A tree is looked at without recursion."""
    deep: Any = 1
    for _ in range(5000):
        deep = [deep]
    limits = InputLimits(depth=3)

    assert [str(p) for p in tree_problems({"a": [[1]], "b": {"c": {"d": []}}}, limits)] == [
        "b is nested deeper than 3 levels"
    ]
    assert [p.path for p in tree_problems({"a": deep, "b": [float("inf")]}, limits)] == ["a", "b"]


def test_only_text_with_half_characters_is_cleaned() -> None:
    """Without an escape of half a character nothing needs to be looked at."""
    value = {"a": ["x"]}

    assert cleaned(value, '{"a":["x"]}') is value
    assert cleaned({"a": "\ud800", "b": 1}, '{"a":"\\uD800","b":1}') == {"a": "\ufffd", "b": 1}
