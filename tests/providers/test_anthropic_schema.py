"""Schemas as the messages API takes them."""

from __future__ import annotations

from datetime import date
from enum import Enum
from typing import Annotated, Any, Literal

import jsonschema
import pytest
from backscroll.providers.anthropic_schema import answer_schema, input_schema
from hypothesis import given
from hypothesis import strategies as st
from provider_rules_anthropic import check_answer
from pydantic import BaseModel, Field


class Kind(Enum):
    """One of two."""

    PAID = "paid"
    OPEN = "open"


class Line(BaseModel):
    """A line of an order."""

    item: Annotated[str, Field(max_length=20, description="What it is.")]
    count: Annotated[int, Field(ge=1, le=99)] = 1


class Order(BaseModel):
    """An order with everything that schemas of real models hold."""

    kind: Kind
    lines: Annotated[list[Line], Field(min_length=1, max_length=9)]
    due: date | None = None
    first: Line
    side: Literal["left", "right"]


class Node(BaseModel):
    """A tree."""

    children: list[Node] = []


def test_a_models_schema_is_said_in_full() -> None:
    """Closed objects, kept enums, references and formats, limits as words."""
    said = answer_schema(Order.model_json_schema())

    assert said is not None
    check_answer(said)
    assert said["additionalProperties"] is False and said["required"] == [
        "kind", "lines", "first", "side",
    ]  # fmt: skip
    line = said["$defs"]["Line"]
    assert line["properties"]["item"]["description"] == "What it is. (maxLength: 20)"
    assert line["properties"]["count"]["description"] == "(minimum: 1, maximum: 99)"
    assert said["properties"]["lines"]["minItems"] == 1
    assert said["properties"]["due"]["anyOf"][0] == {"type": "string", "format": "date"}
    assert said["properties"]["first"] == {"$ref": "#/$defs/Line"}


@pytest.mark.parametrize(
    "schema",
    [
        Node.model_json_schema(),
        {"type": "object", "additionalProperties": True},
        {"type": "object", "additionalProperties": {"type": "integer"}},
        {"type": "object", "patternProperties": {"a": {"type": "integer"}}},
        {"type": "array"},
        {"type": "array", "items": True},
        {"enum": [{"a": 1}]},
        {"$ref": "https://elsewhere/schema"},
        {"description": "anything"},
        {"anyOf": [{}]},
    ],
)
def test_what_cannot_be_said_is_none(schema: Any) -> None:
    """Circles, open objects, anything at all: better no form than a wrong or a refused one."""
    assert answer_schema(schema) is None


def test_choices_and_several_types_become_any_of() -> None:
    """`oneOf` and a list of types have one form here; a text or null keeps its limit as words."""
    said = answer_schema({"oneOf": [{"type": ["string", "null"], "minLength": 2}, {"const": 3}]})

    text = {"type": "string", "description": "(minLength: 2)"}
    null = {"type": "null", "description": "(minLength: 2)"}
    assert said == {"anyOf": [{"anyOf": [text, null]}, {"const": 3}]}


SCHEMAS = st.recursive(
    st.one_of(
        st.builds(lambda low: {"type": "integer", "minimum": low}, st.integers(-3, 3)),
        st.builds(lambda most: {"type": "string", "maxLength": most}, st.integers(0, 4)),
        st.sampled_from([{"type": "null"}, {"enum": [1, "a"]}, {"type": ["boolean", "null"]}]),
    ),
    lambda inner: st.one_of(
        st.builds(
            lambda s, n: {"type": "array", "items": s, "minItems": n}, inner, st.integers(0, 3)
        ),
        st.builds(
            lambda p: {"type": "object", "properties": p, "required": list(p)[:1]},
            st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
        ),
        st.builds(lambda all_of: {"oneOf": all_of}, st.lists(inner, min_size=1, max_size=2)),
    ),
    max_leaves=6,
)
VALUES = st.recursive(
    st.sampled_from([None, True, 0, 1, 5, "", "a", "long text"]),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.sampled_from("abc"), inner, max_size=3)
    ),
    max_leaves=6,
)


@given(SCHEMAS, st.lists(VALUES, max_size=12))
def test_no_right_answer_is_shut_out(schema: Any, values: list[Any]) -> None:
    """Property: it is accepted, and a value that the schema allows is allowed by what is sent."""
    said = answer_schema(schema)

    assert said is not None
    check_answer(said)
    for value in values:
        if _fits(value, schema) and _is_closed(value, schema):
            jsonschema.validate(value, said)


def _fits(value: Any, schema: Any) -> bool:
    return bool(jsonschema.Draft202012Validator(schema).is_valid(value))


def _is_closed(value: Any, schema: Any) -> bool:
    """Say whether a value has no member beside those its schema names."""
    if "oneOf" in schema:
        return any(_fits(value, s) and _is_closed(value, s) for s in schema["oneOf"])
    if isinstance(value, dict):
        known = schema.get("properties", {})
        return set(value) <= set(known) and all(_is_closed(v, known[k]) for k, v in value.items())
    if isinstance(value, list) and "items" in schema:
        return all(_is_closed(v, schema["items"]) for v in value)
    return True


def test_a_tools_input_has_no_choice_at_the_top() -> None:
    """The properties of all branches are offered; the tool checks its arguments itself."""
    branches = [{"properties": {"a": {"type": "string"}}, "required": ["a"]}, True]
    schema = {"type": "object", "properties": {"b": {"type": "integer"}}, "anyOf": branches}

    properties = {"a": {"type": "string"}, "b": {"type": "integer"}}
    assert input_schema(schema) == {"type": "object", "properties": properties}
    assert input_schema({}) == {"type": "object", "properties": {}}
    assert schema["anyOf"] == branches
