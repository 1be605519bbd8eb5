"""JSON Schemas as the messages API takes them: of a tool's input, and of an answer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_COMBINING = ("allOf", "anyOf", "oneOf")
_PLAIN = ("title", "description", "default", "type")
_FORMATS = (
    "date-time", "time", "date", "duration", "email", "hostname", "uri", "ipv4", "ipv6", "uuid",
)  # fmt: skip
_LIMITS = (
    "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minLength",
    "maxLength", "pattern", "minItems", "maxItems", "uniqueItems", "format",
)  # fmt: skip


def input_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return the schema of a tool's input; this API takes no choice between schemas at the top."""
    out = dict(schema) if "type" in schema else {"type": "object", "properties": {}, **schema}
    branches = [branch for name in _COMBINING for branch in out.pop(name, ())]
    if not branches:
        return out
    properties: dict[str, Any] = {}
    for branch in (*branches, out):
        properties |= branch.get("properties", {}) if isinstance(branch, Mapping) else {}
    return {**out, "properties": properties}


def answer_schema(schema: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the schema of an answer with what this API enforces, None if it cannot be said.

    Objects are closed, and limits of numbers, texts and lists become words of the description;
    whoever asked for the answer still checks it by the schema itself.
    """
    try:
        _no_circles(schema)
        return _said(schema)
    except _Inexpressible:
        return None


class _Inexpressible(Exception):
    """This API has no form for a part of a schema."""


def _said(schema: Any) -> dict[str, Any]:
    if not isinstance(schema, Mapping):
        raise _Inexpressible
    if isinstance(schema.get("$ref"), str):
        return {"$ref": schema["$ref"]}
    if isinstance(schema.get("type"), list):
        return _said({"anyOf": [{**schema, "type": kind} for kind in schema["type"]]})
    out = {name: schema[name] for name in _PLAIN if name in schema}
    for name in ("$defs", "definitions"):
        if name in schema:
            out[name] = {key: _said(inner) for key, inner in schema[name].items()}
    for name in ("enum", "const"):
        if name in schema:
            out[name] = _primitive(schema[name])
    for name in _COMBINING:
        if name in schema:
            out["allOf" if name == "allOf" else "anyOf"] = [_said(s) for s in schema[name]]
    if schema.get("type") == "object":
        out |= _object(schema)
    if schema.get("type") == "array":
        out["items"] = _said(schema.get("items"))
    if not out.keys() & {"type", "enum", "const", "anyOf", "allOf"}:
        raise _Inexpressible
    return _with_limits(out, schema)


def _object(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Close an object; one that is open on purpose cannot be said."""
    if schema.get("additionalProperties", False) is not False or "patternProperties" in schema:
        raise _Inexpressible
    properties = schema.get("properties", {})
    out: dict[str, Any] = {"properties": {key: _said(inner) for key, inner in properties.items()}}
    if "required" in schema:
        out["required"] = list(schema["required"])
    return {**out, "additionalProperties": False}


def _primitive(value: Any) -> Any:
    for item in value if isinstance(value, list) else [value]:
        if isinstance(item, Mapping | list):
            raise _Inexpressible
    return value


def _with_limits(out: dict[str, Any], schema: Mapping[str, Any]) -> dict[str, Any]:
    """Keep the limits that are enforced, and write the others into the description."""
    words = []
    for name in (name for name in _LIMITS if name in schema):
        value = schema[name]
        if (name == "format" and value in _FORMATS) or (name == "minItems" and value in (0, 1)):
            out[name] = value
        else:
            words.append(f"{name}: {value}")
    if words:
        said = [str(out["description"])] if out.get("description") else []
        out["description"] = " ".join([*said, f"({', '.join(words)})"])
    return out


def _no_circles(schema: Mapping[str, Any]) -> None:
    """Raise where a schema leads back into itself, or out of itself."""
    defs = {f"#/{place}/{key}": inner for place in ("$defs", "definitions")
            for key, inner in schema.get(place, {}).items()}  # fmt: skip
    done: set[str] = set()

    def visit(value: Any, path: tuple[str, ...]) -> None:
        if isinstance(value, Mapping):
            ref = value.get("$ref")
            if isinstance(ref, str) and ref not in done:
                if ref in path or ref not in defs:
                    raise _Inexpressible
                visit(defs[ref], (*path, ref))
                done.add(ref)
            value = list(value.values())
        if isinstance(value, list):
            for inner in value:
                visit(inner, path)

    for inner in (schema, *defs.values()):
        visit(inner, ())
