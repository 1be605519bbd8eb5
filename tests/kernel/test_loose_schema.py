"""What a page's schema costs to check is bounded, and nothing good is refused."""

from __future__ import annotations

import time
from typing import Any

import pytest
from backscroll.kernel.loose_schema import loose_schema
from backscroll.kernel.tool import client_tool
from backscroll.kernel.tool_schema import Problem

ANY = {"type": "object"}


def doubling(steps: int) -> dict[str, Any]:
    """Return a schema whose references double the work at each step."""
    again = {f"s{n}": {"allOf": [{"$ref": f"#/$defs/s{n + 1}"}] * 2} for n in range(steps)}
    return {**ANY, "$ref": "#/$defs/s0", "$defs": {**again, f"s{steps}": {}}}


@pytest.mark.parametrize(
    ("schema", "args"),
    [
        ({**ANY, "properties": {"a": {"pattern": "^(a+)+$"}}}, {"a": "a" * 28 + "!"}),
        ({**ANY, "patternProperties": {"^(a+)+$": {}}}, {"a" * 28 + "!": 1}),
        (doubling(18), {}),
        ({"$ref": "#"}, {}),
        ({"$ref": "#/$defs/missing"}, {}),
    ],
    ids=["pattern", "pattern of names", "doubling", "circle", "nowhere"],
)
def test_no_schema_of_a_page_holds_up_the_server(
    schema: dict[str, Any], args: dict[str, Any]
) -> None:
    """Patterns that backtrack and references that multiply are left to the page."""
    pick = client_tool("pick", "Pick.", schema)
    began = time.process_time()

    assert pick.check(args) == args
    assert time.process_time() - began < 1
    assert pick.info.schema == schema


@pytest.mark.parametrize(
    "args", [{}, {"not": "red", "n": 1}, {"not": "x"}, {"n": {}, "not": "red"}]
)
def test_the_rest_is_checked(args: dict[str, Any]) -> None:
    """Missing members, wrong types and enums are problems; members may have any name."""
    members = {"not": {"enum": ["red"]}, "n": {"anyOf": [{"type": "string"}, {"type": "null"}]}}
    schema = {**ANY, "properties": members, "required": ["not"]}
    pick = client_tool("pick", "Pick.", schema)

    assert isinstance(pick.check(args), Problem)
    assert pick.check({"not": "red", "n": None}) == {"not": "red", "n": None}


def test_what_builds_on_a_part_left_out_is_left_out() -> None:
    """A schema without its references refuses nothing that the whole one accepts."""
    other = {"$ref": "#/$defs/x"}
    schema = {
        "oneOf": [other, other],
        "not": other,
        "if": other,
        "then": False,
        "unevaluatedProperties": False,
        "patternProperties": {"^x": other},
        "additionalProperties": False,
        "properties": {"a": {"items": [other, {"const": {"pattern": "x"}}], "default": other}},
    }

    kept = {"items": [{}, {"const": {"pattern": "x"}}], "default": other}
    assert loose_schema(schema) == {"properties": {"a": kept}}
