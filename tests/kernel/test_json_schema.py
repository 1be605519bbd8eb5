"""Values are checked by their schema's own draft, and nothing is fetched."""

from __future__ import annotations

import time
from typing import Any

import pytest
from backscroll.kernel.errors import AssemblyError
from backscroll.kernel.json_schema import check_schema, schema_validator
from backscroll.kernel.tool_schema import Problem


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "nonsense"},
        {"$ref": "https://example.com/x.json"},
        {"items": [{"$ref": "x"}]},
        {"$schema": 3},
        {"pattern": "(" * 5000},
    ],
)
def test_broken_schemas_are_refused(schema: dict[str, Any]) -> None:
    """A schema with a fault, or one that would need the network, is refused at once."""
    with pytest.raises(AssemblyError) as caught:
        schema_validator(schema, "f")
    assert caught.value.kind == "invalid_schema"
    with pytest.raises(AssemblyError):
        schema_validator("x", "f")  # type: ignore[arg-type]


def test_local_references_are_fine() -> None:
    """A reference inside the schema is followed."""
    schema = {"$defs": {"n": {"type": "integer"}}, "properties": {"a": {"$ref": "#/$defs/n"}}}

    assert not schema_validator(schema, "f").is_valid({"a": "x"})


def test_defaults_of_members_are_applied() -> None:
    """TOOL3: what is left out gets the default of its member, what is given stays."""
    schema = {"properties": {"n": {"default": 3}, "m": {"default": 4}, "any": True}}

    assert check_schema(schema_validator(schema, "f"), {"m": 1}) == {"n": 3, "m": 1}


@pytest.mark.parametrize(
    ("args", "field"),
    [({"items": [{}, {}, {"count": "x"}]}, "items[2].count"), ({"nummer": 1}, "arguments")],
)
def test_the_first_problem_has_its_path(args: dict[str, Any], field: str) -> None:
    """TOOL4: the field is named by its path, the whole by a word."""
    count = {"type": "object", "properties": {"count": {"type": "integer"}}}
    items = {"type": "array", "items": count}
    closed = {"properties": {"items": items}, "additionalProperties": False}

    found = check_schema(schema_validator(closed, "f"), args)

    assert isinstance(found, Problem) and found.field == field
    assert field != "arguments" or "nummer" in found.problem


@pytest.mark.parametrize("schema", [{"$ref": "#"}, {"$ref": "#/$defs/missing"}])
def test_a_schema_that_cannot_be_followed(schema: dict[str, Any]) -> None:
    """A fault that shows only when something is checked is a problem, not an exception."""
    found = check_schema(schema_validator(schema, "f"), {"a": "x"})

    assert isinstance(found, Problem) and "the schema has a fault" in found.problem


def test_a_schema_seen_before_is_not_checked_again() -> None:
    """A page offers its tools with every request: checking them is paid for once."""
    members = {f"member{n}": {"type": "string", "minLength": 1} for n in range(500)}
    spent = []
    for _ in range(2):
        began = time.process_time()
        schema_validator({"properties": members}, "f")
        spent.append(time.process_time() - began)

    assert spent[1] < spent[0] / 4
    with pytest.raises(AssemblyError, match="of which kind"):
        schema_validator({"properties": {"a": {"enum": "of which kind"}}}, "f")
