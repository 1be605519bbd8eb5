"""Tools: how they are declared, checked and offered."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Literal, overload

from backscroll.kernel.errors import AssemblyError
from backscroll.kernel.json_schema import check_schema, schema_validator
from backscroll.kernel.loose_schema import loose_schema
from backscroll.kernel.ports import CancelToken
from backscroll.kernel.tool_schema import Problem, invalid, read_signature

NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """What a model is told about a tool."""

    name: str
    description: str
    schema: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ToolRetry:
    """How often a transient failure is tried again, and after how long; promises idempotence."""

    max_retries: int = 2
    initial_delay_s: float = 0.2


@dataclass(frozen=True, slots=True)
class ToolResult:
    """A tool's answer with writes to state slots; `is_error` makes it a semantic failure."""

    content: Any
    writes: Mapping[str, Any] | None = None
    is_error: bool = False


@dataclass(frozen=True, slots=True)
class Slot:
    """One named piece of turn state: how it starts, and how a write is folded in."""

    init: Callable[[], Any]
    reduce: Callable[[Any, Any], Any]


class ToolContext(Mapping[str, Any]):
    """The turn's context as a tool may read it, with the ids of its own call."""

    def __init__(
        self,
        values: Mapping[str, Any],
        *,
        call_id: str = "",
        message_id: str = "",
        cancel: CancelToken | None = None,
    ) -> None:
        self._values = MappingProxyType(dict(values))
        self.call_id, self.message_id = call_id, message_id
        self.cancel = cancel or CancelToken()

    @property
    def conversation_id(self) -> str | None:
        """The conversation this call belongs to, if it has one."""
        found: str | None = self._values.get("conversation_id")
        return found

    def __getitem__(self, key: str) -> Any:
        """Return one value of the context."""
        return self._values[key]

    def __iter__(self) -> Iterator[str]:
        """Go through the names."""
        return iter(self._values)

    def __len__(self) -> int:
        """Count the names."""
        return len(self._values)


@dataclass(frozen=True, slots=True)
class ToolInfo:
    """A tool as filters and gates see it: everything but its body."""

    name: str
    description: str
    schema: Mapping[str, Any]
    tags: frozenset[str] = frozenset()
    category: str = "general"
    sensitive: bool = False
    serial: bool = False
    return_direct: bool = False
    timeout_s: float | None = None
    retry: ToolRetry | None = None
    idempotent: bool = False
    runs_in: Literal["server", "client"] = "server"

    def spec(self) -> ToolSpec:
        """Return what a model is told."""
        return ToolSpec(self.name, self.description, self.schema)


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool: what is known of it, how its arguments are checked, and its body."""

    info: ToolInfo
    check: Callable[[Mapping[str, Any]], dict[str, Any] | Problem]
    body: Callable[[dict[str, Any], ToolContext], Any] | None = None
    is_async: bool = False

    @property
    def name(self) -> str:
        """The name the model calls."""
        return self.info.name

    def spec(self) -> ToolSpec:
        """Return what a model is told."""
        return self.info.spec()

    @classmethod
    def from_schema(
        cls,
        name: str,
        description: str,
        schema: Mapping[str, Any],
        handler: Callable[[dict[str, Any], ToolContext], Any] | None,
        **options: Any,  # Any: the options of `tool`
    ) -> Tool:
        """Make a tool from a JSON Schema; `handler(args, context)` is its body."""
        validator = schema_validator(schema, name)
        info = _info(name, description, dict(schema), **options)
        if info.runs_in == "client":
            validator = type(validator)(loose_schema(schema))
        is_async = inspect.iscoroutinefunction(handler)
        return cls(info, lambda args: check_schema(validator, args), handler, is_async)


@overload
def tool(function: Callable[..., Any], /) -> Tool: ...
@overload
def tool(**options: Any) -> Callable[[Callable[..., Any]], Tool]: ...
def tool(function: Callable[..., Any] | None = None, /, **options: Any) -> Any:
    """Make a tool of a function; its signature gives the schema, its docstring the description.

    Options: name, description, tags, category, sensitive, serial, return_direct, timeout_s,
    retry (True or ToolRetry), idempotent. Raises `invalid_tool` naming tool and parameter.
    """
    if function is None:
        return lambda inner: _from_function(inner, **options)
    return _from_function(function, **options)


def client_tool(
    name: str, description: str, schema: Mapping[str, Any] | None = None, **options: Any
) -> Tool:
    """Declare a tool that runs in the client: it is offered to the model, never executed here."""
    schema = schema or {"type": "object", "properties": {}}
    return Tool.from_schema(name, description, schema, None, runs_in="client", **options)


class ToolSet(Sequence[Tool]):
    """Tools with unique names, in order; raises `duplicate_tool` naming the second one."""

    def __init__(self, tools: Iterable[Tool] = ()) -> None:
        self._tools: dict[str, Tool] = {}
        for item in tools:
            if not isinstance(item, Tool):
                found = getattr(item, "__name__", None) or type(item).__name__
                message = f"expected a tool, got {found!r}; decorate the function with @tool"
                raise AssemblyError("invalid_tool", message, str(found))
            if item.name in self._tools:
                message = f"two tools are named {item.name!r}"
                raise AssemblyError("duplicate_tool", message, item.name)
            self._tools[item.name] = item
        self._order = tuple(self._tools.values())

    @overload
    def __getitem__(self, index: int) -> Tool: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Tool]: ...
    def __getitem__(self, index: int | slice) -> Tool | Sequence[Tool]:
        """Return by position."""
        return self._order[index]

    def __len__(self) -> int:
        """Count the tools."""
        return len(self._order)

    def get(self, name: str) -> Tool | None:
        """Return the tool of that name, if there is one."""
        return self._tools.get(name)

    def names(self) -> tuple[str, ...]:
        """Return the names in order."""
        return tuple(self._tools)

    def specs(self) -> tuple[ToolSpec, ...]:
        """Return what a model is told of each."""
        return tuple(item.spec() for item in self._order)

    def plus(self, tools: Iterable[Tool]) -> ToolSet:
        """Return a set with more tools; names stay unique."""
        return ToolSet((*self._order, *tools))

    def select(
        self, tags: Iterable[str] | None = None, exclude_tags: Iterable[str] | None = None
    ) -> ToolSet:
        """Return the tools with any of the tags and none of the excluded ones."""
        wanted = None if tags is None else set(tags)
        unwanted = set(exclude_tags or ())
        return ToolSet(
            item
            for item in self._order
            if (wanted is None or wanted & item.info.tags) and not unwanted & item.info.tags
        )


def _from_function(function: Callable[..., Any], **options: Any) -> Tool:
    name = options.pop("name", None) or getattr(function, "__name__", type(function).__name__)
    signature = read_signature(function, name, ToolContext)
    description = options.pop("description", None) or signature.description
    info = _info(name, description, signature.schema(), **options)

    def body(values: dict[str, Any], context: ToolContext) -> Any:
        extra = {signature.context: context} if signature.context else {}
        return function(**values, **extra)

    return Tool(info, signature.values, body, inspect.iscoroutinefunction(function))


def _info(
    name: str,
    description: str,
    schema: dict[str, Any],
    *,
    tags: Iterable[str] = (),
    retry: bool | ToolRetry | None = None,
    timeout_s: float | None = None,
    idempotent: bool | None = None,
    **rest: Any,
) -> ToolInfo:
    if not isinstance(name, str) or not NAME.fullmatch(name):
        raise invalid(str(name), "a name is 1 to 64 letters, digits, _ or -")
    if not isinstance(description, str) or not description.strip():
        raise invalid(name, "it needs a description (a docstring)")
    if timeout_s is not None and not _positive(timeout_s):
        raise invalid(name, f"timeout_s: expected a positive number, got {timeout_s!r}")
    policy = ToolRetry() if retry is True else retry or None
    if policy is not None and not _valid_retry(policy):
        raise AssemblyError("invalid_retry", f"tool {name!r}: expected True or a ToolRetry", name)
    safe = policy is not None if idempotent is None else idempotent
    try:
        return ToolInfo(
            name,
            description.strip(),
            schema,
            frozenset(tags),
            timeout_s=timeout_s,
            retry=policy,
            idempotent=safe,
            **rest,
        )
    except TypeError as error:
        raise invalid(name, str(error)) from error


def _valid_retry(policy: object) -> bool:
    return (
        isinstance(policy, ToolRetry)
        and isinstance(policy.max_retries, int)
        and policy.max_retries >= 0
        and isinstance(policy.initial_delay_s, int | float)
        and policy.initial_delay_s >= 0
    )


def _positive(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and value > 0
