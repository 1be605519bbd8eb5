"""One problem of an answer, with its path and in words."""

from __future__ import annotations

from typing import Any

import pytest
from backscroll.filters.schema_check import Judgement, SchemaCheck, unfenced
from backscroll.kernel.errors import AssemblyError
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, field_validator

FILM = {
    "type": "object",
    "properties": {
        "user": {
            "type": "object",
            "required": ["name"],
            "properties": {"name": {"type": "string"}},
        },
        "films": {"type": "array", "items": {"type": "string"}},
        "kind": {"enum": ["long", "短"]},
        "code": {"type": "string", "pattern": "^[A-Z]+$"},
        "count": {"type": "integer"},
        "size": {"type": "number"},
        "part": {"$ref": "#/$defs/part"},
        "any": {
            "anyOf": [
                {"type": "object", "required": ["a"], "properties": {"a": {"type": "string"}}},
                {"type": "integer"},
            ]
        },
    },
    "$defs": {"part": {"type": "object", "required": ["id"]}},
}
CHECK = SchemaCheck(FILM)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('{"user": {}}', "user: missing required field 'name'"),
        ('{"films": ["a", 1]}', "films[1]: expected string, got integer"),
        ('{"kind": "mid"}', 'kind: expected one of "long", "短", got "mid"'),
        ('{"code": "ab"}', "code: \"ab\" does not match '^[A-Z]+$'"),
        ('{"part": {}}', "part: missing required field 'id'"),
        ('{"any": {"a": 1}}', "any.a: expected string, got integer"),
        ('{"count": true}', "count: expected integer, got boolean"),
        ('{"size": true}', "size: expected number, got boolean"),
        ('{"count": 1.5}', "count: expected integer, got number"),
        ("[]", "(root): expected object, got array"),
        ("", "the answer is empty"),
        ("```json\n```", "the answer is empty"),
        ('{"films": [1], "count": "x"}', "count: expected integer, got string"),
        ('{"code": "' + "a" * 90 + '"}', 'code: "' + "a" * 78 + "… does not match '^[A-Z]+$'"),
    ],
)
def test_problems(text: str, problem: str) -> None:
    """SO1: one message with path and problem, shorter paths first."""
    assert CHECK.judge(text) == Judgement(problem)


@pytest.mark.parametrize("text", ["{", "NaN", '{"a": Infinity}', "[" * 100_000])
def test_what_is_no_json(text: str) -> None:
    """The parser's words are told."""
    assert (CHECK.judge(text).problem or "").startswith("the answer is not JSON: ")


@pytest.mark.parametrize("text", ['{"count": 1.0}', '```json\n{"count": 2}\n```', " {} \n"])
def test_what_fits(text: str) -> None:
    """SO1: fenced JSON passes, and 1.0 is an integer."""
    assert CHECK.judge(text).problem is None


def test_only_one_fence_around_everything_is_taken_off() -> None:
    """Fences inside an answer belong to it."""
    assert unfenced("```\na\n```") == "a"
    assert unfenced("```json\n{}\n```") == "{}"
    assert unfenced("```\na\n``` and ```\nb\n```") == "a\n``` and ```\nb"
    assert unfenced("see ```x```") == "see ```x```"


class Film(BaseModel):
    """A film."""

    title: str
    year: int = 2000

    @field_validator("year")
    @classmethod
    def _sound(cls, year: int) -> int:
        if year < 1927:
            raise ValueError("before sound film")
        return year


def test_pydantic_types() -> None:
    """SO2: an instance is made; what only the type itself knows is told as well."""
    check = SchemaCheck(Film)

    assert check.judge('{"title": "M", "year": 1931}').value == Film(title="M", year=1931)
    assert check.judge('{"year": 1931}').problem == "(root): missing required field 'title'"
    assert check.judge('{"title": "x", "year": 1900}').problem == (
        "year: Value error, before sound film"
    )
    assert SchemaCheck(list[int]).judge("[1, 2]").value == [1, 2]


@pytest.mark.parametrize(
    "schema",
    [{"type": "nonsense"}, {"$ref": "https://example.com/x.json"}, 7, object()],
)
def test_broken_schemas(schema: Any) -> None:
    """SO6: a fault, a reference to the network, and what is no schema are refused at once."""
    with pytest.raises(AssemblyError) as caught:
        SchemaCheck(schema)

    assert caught.value.kind == "invalid_schema"


@given(st.text())
def test_any_text_is_judged(text: str) -> None:
    """No text makes the check fail; there is a problem or a value."""
    judgement = CHECK.judge(text)

    assert judgement.problem is None or judgement.value is None
