"""A tool's JSON Schema, made from its function's signature."""

from __future__ import annotations

import inspect
import re
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, get_args, get_origin

from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model
from pydantic.errors import PydanticUserError
from pydantic.fields import FieldInfo

from backscroll.kernel.errors import AssemblyError

_ARG_LINE = re.compile(r"^\s*(?::param\s+(?:\S+\s+)?)?\*{0,2}(\w+)(?:\s*\([^)]*\))?\s*:\s*(.+)$")


@dataclass(frozen=True, slots=True)
class Problem:
    """What is wrong with a call's arguments: where, and what."""

    field: str
    problem: str


@dataclass(frozen=True, slots=True)
class Signature:
    """What a function's signature says: its arguments as a model, and who takes the context.

    `names` gives the parameter of each field of the model that is named differently.
    """

    model: type[BaseModel]
    context: str | None
    description: str
    names: Mapping[str, str]

    def schema(self) -> dict[str, Any]:
        """Return the JSON Schema: closed, without titles, keys in signature order."""
        raw = self.model.model_json_schema()
        out = {"type": "object", "properties": raw.get("properties", {})}
        if raw.get("required"):
            out["required"] = raw["required"]
        out["additionalProperties"] = False
        if raw.get("$defs"):
            out["$defs"] = raw["$defs"]
        return typing.cast("dict[str, Any]", _without_titles(out))

    def values(self, args: Mapping[str, Any]) -> dict[str, Any] | Problem:
        """Return the typed values for the body, defaults filled in, or the first problem."""
        try:
            model = self.model.model_validate(dict(args))
        except ValidationError as error:
            first = error.errors(include_url=False, include_context=False)[0]
            return Problem(json_path(first["loc"]) or "arguments", _words(first))
        fields = type(model).model_fields
        return {self.names.get(name, name): getattr(model, name) for name in fields}


def read_signature(function: Callable[..., Any], name: str, context_type: type) -> Signature:
    """Read a function; raises `invalid_tool` naming tool and parameter when it cannot serve."""
    if inspect.isasyncgenfunction(function) or inspect.isgeneratorfunction(function):
        raise invalid(name, "a generator cannot be a tool; return the value instead")
    summary, described = read_docstring(inspect.getdoc(function) or "")
    try:
        hints = typing.get_type_hints(function, include_extras=True)
        parameters = inspect.signature(function).parameters.values()
    except (NameError, TypeError, ValueError) as error:
        raise invalid(name, f"its annotations cannot be read: {error}") from error
    fields: dict[str, Any] = {}
    names: dict[str, str] = {}
    context = None
    for parameter in parameters:
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            raise invalid(name, f"parameter {parameter.name!r}: *args and **kwargs have no schema")
        if parameter.kind is parameter.POSITIONAL_ONLY:
            raise invalid(name, f"parameter {parameter.name!r}: arguments are passed by name only")
        if parameter.name not in hints:
            raise invalid(name, f"parameter {parameter.name!r} has no annotation")
        if hints[parameter.name] is context_type:
            if context is not None:
                raise invalid(name, f"{context!r} and {parameter.name!r} both take the context")
            context = parameter.name
            continue
        hint, default = _field(parameter, hints[parameter.name], described)
        field = parameter.name
        if field.startswith("_") or hasattr(BaseModel, field):
            # A model keeps such names to itself; the schema shows the parameter's all the same.
            field = f"argument_{len(fields)}"
            hint = Annotated[hint, Field(alias=parameter.name)]
            names[field] = parameter.name
        fields[field] = hint, default
    return Signature(_model(name, fields), context, summary, names)


def read_docstring(text: str) -> tuple[str, dict[str, str]]:
    """Return a docstring's first paragraph and what it says of each parameter."""
    summary = " ".join(text.split("\n\n", 1)[0].split())
    described: dict[str, str] = {}
    in_args = False
    for line in text.splitlines():
        if line.strip() in ("Args:", "Arguments:", "Parameters:"):
            in_args = True
        elif in_args and line.strip() and not line.startswith((" ", "\t")):
            in_args = False
        elif (in_args or line.lstrip().startswith(":param")) and (found := _ARG_LINE.match(line)):
            described.setdefault(found[1], found[2].strip())
    return summary, described


def invalid(name: str, message: str) -> AssemblyError:
    """Make the error for a tool that cannot be one."""
    return AssemblyError("invalid_tool", f"tool {name!r}: {message}", name)


def json_path(parts: tuple[int | str, ...]) -> str:
    """Write a path the way people do: `items[2].count`."""
    out = ""
    for part in parts:
        out += f"[{part}]" if isinstance(part, int) else f".{part}" if out else str(part)
    return out


def _field(parameter: inspect.Parameter, hint: Any, described: dict[str, str]) -> tuple[Any, Any]:
    default = ... if parameter.default is parameter.empty else parameter.default
    note = next((m for m in _metadata(hint) if isinstance(m, str)), None)
    told = any(isinstance(m, FieldInfo) and m.description for m in _metadata(hint))
    if isinstance(default, FieldInfo):
        return hint, default
    text = note or (None if told else described.get(parameter.name))
    return (Annotated[hint, Field(description=text)] if text else hint), default


def _metadata(hint: Any) -> tuple[Any, ...]:
    return get_args(hint)[1:] if get_origin(hint) is Annotated else ()


def _model(name: str, fields: dict[str, Any]) -> type[BaseModel]:
    config = ConfigDict(extra="forbid", arbitrary_types_allowed=False, protected_namespaces=())
    try:
        model: type[BaseModel] = create_model(f"{name}_arguments", __config__=config, **fields)
        model.model_json_schema()
    except (PydanticUserError, NameError, TypeError, ValueError) as error:
        first = str(error).splitlines()[0]
        raise invalid(name, f"a parameter's type cannot be described: {first}") from error
    return model


def _words(error: Any) -> str:  # Any: pydantic's ErrorDetails
    if error["type"] == "missing":
        return "is missing"
    if error["type"] == "extra_forbidden":
        return "is not an argument of this tool"
    message: str = error["msg"]
    return message[0].lower() + message[1:]


def _without_titles(value: Any, named: bool = False) -> Any:
    """Drop schema titles; `named` is set inside `properties`, where a title is a real name."""
    if isinstance(value, dict):
        return {
            key: _without_titles(item, key in ("properties", "$defs") and not named)
            for key, item in value.items()
            if named or key != "title" or not isinstance(item, str)
        }
    if isinstance(value, list):
        return [_without_titles(item) for item in value]
    return value
