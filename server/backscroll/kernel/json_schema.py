"""Checking values by a JSON Schema, without the network."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

import jsonschema
from jsonschema.exceptions import SchemaError, best_match
from jsonschema.protocols import Validator
from jsonschema.validators import validator_for
from referencing.exceptions import Unresolvable

from backscroll.kernel.errors import AssemblyError
from backscroll.kernel.tool_schema import Problem, json_path


def schema_validator(schema: Mapping[str, Any], where: str) -> Validator:
    """Return a validator of the schema's own draft; raises `invalid_schema` when it has a fault."""
    if not isinstance(schema, Mapping):
        raise AssemblyError("invalid_schema", f"{where}: a schema is an object", where)
    if not isinstance(schema.get("$schema", ""), str):
        raise AssemblyError("invalid_schema", f"{where}: $schema is no text", where)
    draft = validator_for(dict(schema), default=jsonschema.Draft202012Validator)
    fault = _fault(draft, dict(schema))
    if fault is not None:
        raise AssemblyError("invalid_schema", f"{where}: {fault}", where)
    for ref in _references(schema):
        if not ref.startswith("#"):
            message = f"{where}: reference {ref!r} would need the network"
            raise AssemblyError("invalid_schema", message, where)
    return draft(dict(schema))


def check_schema(validator: Validator, args: Mapping[str, Any]) -> dict[str, Any] | Problem:
    """Return the arguments with the schema's defaults, or the first problem."""
    value = dict(args)
    try:
        error = best_match(validator.iter_errors(value))
    except (RecursionError, Unresolvable) as fault:
        return Problem("arguments", f"cannot be checked, the schema has a fault: {fault}")
    if error is not None:
        return Problem(json_path(tuple(error.absolute_path)) or "arguments", error.message)
    schema = validator.schema if isinstance(validator.schema, Mapping) else {}
    for name, member in schema.get("properties", {}).items():
        if isinstance(member, Mapping) and "default" in member:
            value.setdefault(name, member["default"])
    return value


def _fault(draft: type[Validator], schema: dict[str, Any]) -> str | None:
    try:
        text = json.dumps(schema)
    except (TypeError, ValueError, RecursionError):
        return _fault_of(draft, schema)
    return _fault_of_text(draft, text)


@lru_cache(maxsize=256)
def _fault_of_text(draft: type[Validator], text: str) -> str | None:
    """Remember what was found: pages offer the same schemas with every request."""
    return _fault_of(draft, json.loads(text))


def _fault_of(draft: type[Validator], schema: dict[str, Any]) -> str | None:
    try:
        draft.check_schema(schema)
    except SchemaError as error:
        return str(error.message)
    except RecursionError:
        return "a part is nested too deep"
    return None


def _references(value: Any) -> Iterator[str]:
    if isinstance(value, Mapping):
        for key, item in value.items():
            if key in ("$ref", "$dynamicRef") and isinstance(item, str):
                yield item
            else:
                yield from _references(item)
    elif isinstance(value, list):
        for item in value:
            yield from _references(item)
