"""Checking values by a JSON Schema, without the network."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
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
    try:
        draft.check_schema(dict(schema))
    except SchemaError as error:
        raise AssemblyError("invalid_schema", f"{where}: {error.message}", where) from error
    except RecursionError as error:
        raise AssemblyError(
            "invalid_schema", f"{where}: a part is nested too deep", where
        ) from error
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
