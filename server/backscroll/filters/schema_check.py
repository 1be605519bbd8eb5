"""Answers as JSON: reading them, checking them against a schema, and naming one problem."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from jsonschema.exceptions import ValidationError, best_match
from pydantic import TypeAdapter
from pydantic import ValidationError as PydanticError
from pydantic.errors import PydanticUserError

from backscroll.kernel.canon import parse_json
from backscroll.kernel.errors import AssemblyError
from backscroll.kernel.json_schema import schema_validator
from backscroll.kernel.tool_schema import json_path

_FENCE = re.compile(r"\A```[\w-]*[ \t]*\n(.*?)\n?[ \t]*```\Z", re.DOTALL)

_KINDS: dict[type, str] = {
    dict: "object",
    list: "array",
    str: "string",
    bool: "boolean",
    int: "integer",
    float: "number",
    type(None): "null",
}


@dataclass(frozen=True, slots=True)
class Judgement:
    """What came of checking an answer: a problem, or the value it holds."""

    problem: str | None = None
    value: Any = None


class SchemaCheck:
    """Checks answers against a JSON Schema, or against a pydantic type, whose instances it makes.

    Raises `invalid_schema` when it is made with something else, or a schema with a fault.
    """

    def __init__(self, schema: Any) -> None:
        self._adapter: TypeAdapter[Any] | None = None
        if not isinstance(schema, Mapping):
            self._adapter, schema = _adapter(schema)
        self.schema: dict[str, Any] = dict(schema)
        self._validator = schema_validator(self.schema, "schema")

    def judge(self, text: str) -> Judgement:
        """Return the value an answer holds, or the first problem."""
        text = unfenced(text)
        if not text:
            return Judgement("the answer is empty")
        try:
            value = parse_json(text)
        except (ValueError, RecursionError) as error:
            return Judgement(f"the answer is not JSON: {str(error) or type(error).__name__}")
        problem = first_problem(self._validator.iter_errors(value))
        if problem is not None or self._adapter is None:
            return Judgement(problem, None if problem else value)
        try:
            return Judgement(None, self._adapter.validate_json(text))
        except PydanticError as error:
            first = error.errors(include_url=False, include_context=False)[0]
            return Judgement(f"{json_path(first['loc']) or '(root)'}: {first['msg']}")


def unfenced(text: str) -> str:
    """Return a text without the blanks and the one Markdown fence around it."""
    text = text.strip()
    found = _FENCE.match(text)
    return found[1].strip() if found else text


def first_problem(errors: Iterable[ValidationError]) -> str | None:
    """Return the problem whose path comes first, shorter paths before longer ones."""
    found = [_deepest(error) for error in errors]
    if not found:
        return None
    return _words(min(found, key=lambda error: (len(error.absolute_path), _path(error))))


def _deepest(error: ValidationError) -> ValidationError:
    """Return the problem of the branch that fits best, where several would have done."""
    if error.validator in ("anyOf", "oneOf") and error.context:
        return best_match([error]) or error
    return error


def _path(error: ValidationError) -> str:
    return json_path(tuple(error.absolute_path))


def _words(error: ValidationError) -> str:
    place = _path(error) or "(root)"
    expected: Any = error.validator_value  # Any: whatever the keyword holds
    match error.validator:
        case "type":
            names = expected if isinstance(expected, str) else " or ".join(expected)
            found = _KINDS.get(type(error.instance), "something else")
            return f"{place}: expected {names}, got {found}"
        case "required":
            return f"{place}: missing required field {_missing(expected, error.instance)!r}"
        case "enum":
            allowed = ", ".join(json.dumps(v, ensure_ascii=False) for v in expected)
            return f"{place}: expected one of {allowed}, got {_short(error.instance)}"
        case "pattern":
            return f"{place}: {_short(error.instance)} does not match {expected!r}"
    return f"{place}: {error.message}"


def _missing(required: Iterable[str], instance: Any) -> str:
    return next(name for name in required if name not in instance)


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 80 else text[:79] + "…"


def _adapter(kind: Any) -> tuple[TypeAdapter[Any], dict[str, Any]]:
    try:
        adapter: TypeAdapter[Any] = TypeAdapter(kind)
        return adapter, adapter.json_schema()
    except (PydanticUserError, TypeError, ValueError, NameError) as error:
        first = str(error).splitlines()[0]
        message = f"schema: expected a JSON Schema or a pydantic type, got {kind!r}: {first}"
        raise AssemblyError("invalid_schema", message, "schema") from error
