"""The part of a schema that is checked in a time bounded by its length and the arguments'."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_NAMED = frozenset({"properties", "$defs", "definitions", "dependentSchemas", "dependencies"})
_DATA = frozenset({"enum", "const", "default", "examples", "required", "dependentRequired"})

# A pattern can backtrack for ever, and references can double the work at each step.
_COSTLY = frozenset({"pattern", "patternProperties", "$ref", "$dynamicRef", "$recursiveRef"})
# These would refuse more, not less, once something they build on is left out.
_INVERTED = frozenset(
    {"not", "oneOf", "if", "then", "else", "contains", "minContains", "maxContains"}
    | {"unevaluatedItems", "unevaluatedProperties"}
)


def loose_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return a schema that accepts all that the given one accepts, and is cheap to check."""
    out: dict[str, Any] = {}
    for key, value in schema.items():
        if key in _COSTLY or key in _INVERTED:
            continue
        if key == "additionalProperties" and "patternProperties" in schema:
            continue
        if key in _NAMED and isinstance(value, Mapping):
            out[key] = {name: _loose(item) for name, item in value.items()}
        else:
            out[key] = value if key in _DATA else _loose(value)
    return out


def _loose(value: Any) -> Any:
    if isinstance(value, Mapping):
        return loose_schema(value)
    return [_loose(item) for item in value] if isinstance(value, list) else value
