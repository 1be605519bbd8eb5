"""The neutral message: the only shape that is stored or passed between layers."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, StrEnum
from typing import Any, Literal, cast, get_args

from pydantic_core import to_json

from backscroll.kernel.canon import canonical_json, clean_text, parse_json
from backscroll.kernel.content import (
    Content,
    content_from_json,
    content_to_json,
    is_parts,
    text_of,
)
from backscroll.kernel.errors import InputError

Outcome = Literal["ok", "error", "refused", "replied", "cancelled", "skipped", "unknown"]
_OUTCOMES = get_args(Outcome)


class Role(StrEnum):
    """Who a message is from."""

    SYSTEM = "system"
    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call the model asked for; `args` is None when its text is not a JSON object."""

    id: str
    name: str
    args: Mapping[str, Any] | None = field(default_factory=dict)
    raw: str | None = None

    @property
    def args_text(self) -> str:
        """The argument text as the model wrote it."""
        return self.raw if self.raw is not None else canonical_json(self.args or {})


@dataclass(frozen=True, slots=True)
class Blocks:
    """A provider's own content list, kept so that it can be sent back unchanged."""

    format: str
    data: tuple[Any, ...]  # Any: the provider's JSON, which nothing here interprets
    source: str


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a conversation; constructors never raise, `from_dict` checks."""

    role: Role
    content: Content = None
    id: str | None = None
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str | None = None
    name: str | None = None
    outcome: Outcome | None = None
    writes: Mapping[str, Any] | None = None
    reasoning: str | None = None
    blocks: Blocks | None = None
    model_content: Content = None
    rewritten_by: tuple[str, ...] = ()
    incomplete: bool = False
    origin: str | None = None

    def for_model(self) -> Content:
        """Return what a view sends: `model_content` where a filter wrote one, else `content`."""
        return self.content if self.model_content is None else self.model_content

    @property
    def text(self) -> str:
        """The text of the content, as people see it."""
        return text_of(self.content)

    @property
    def failed(self) -> bool:
        """Say whether a tool result counts as failed on a wire."""
        return self.outcome not in (None, "ok", "replied")

    def replace(self, **changes: Any) -> Message:
        """Return a copy with some fields changed."""
        return dataclasses.replace(self, **changes)

    def to_dict(self) -> dict[str, Any]:
        """Return the message as JSON values, only the fields that are set, in a fixed order."""
        out: dict[str, Any] = {"role": self.role.value}
        if self.id is not None:
            out["id"] = self.id
        if self.content is not None:
            out["content"] = content_to_json(self.content)
        if self.tool_calls:
            out["tool_calls"] = [call_to_dict(call) for call in self.tool_calls]
        for name in ("tool_call_id", "name", "outcome", "reasoning", "origin"):
            if getattr(self, name) is not None:
                out[name] = getattr(self, name)
        if self.writes:
            out["writes"] = dict(self.writes)
        if self.blocks is not None and self.blocks.data:
            out["blocks"] = {
                "format": self.blocks.format,
                "data": list(self.blocks.data),
                "source": self.blocks.source,
            }
        if self.model_content is not None:
            out["model_content"] = content_to_json(self.model_content)
            out["rewritten_by"] = list(self.rewritten_by)
        if self.incomplete:
            out["incomplete"] = True
        return out

    @classmethod
    def from_dict(cls, value: Mapping[str, Any], path: str = "message") -> Message:
        """Read a neutral or OpenAI-shaped message; raises `invalid_message` with a path."""
        role = _role(value.get("role"), f"{path}.role")
        call_id = _text(value, "tool_call_id", path)
        if role is Role.TOOL and not call_id:
            raise InputError("invalid_message", "a tool message needs one", f"{path}.tool_call_id")
        return cls(
            role=role,
            content=content_from_json(value.get("content"), f"{path}.content"),
            id=_text(value, "id", path),
            tool_calls=_calls(value.get("tool_calls"), f"{path}.tool_calls"),
            tool_call_id=call_id,
            name=_text(value, "name", path),
            outcome=_outcome(value, f"{path}.outcome"),
            writes=value.get("writes") or None,
            reasoning=_text(value, "reasoning", path),
            blocks=_blocks(value.get("blocks"), f"{path}.blocks"),
            model_content=content_from_json(value.get("model_content"), f"{path}.model_content"),
            rewritten_by=tuple(value.get("rewritten_by") or ()),
            incomplete=bool(value.get("incomplete", False)),
            origin=_text(value, "origin", path),
        )


def system(text: str, id: str | None = None) -> Message:
    """Make a system message."""
    return Message(Role.SYSTEM, text, id)


def user(content: Content, id: str | None = None) -> Message:
    """Make a user message of text or parts."""
    return Message(Role.USER, content, id)


def assistant(
    content: Content = None, calls: Sequence[ToolCall] = (), id: str | None = None
) -> Message:
    """Make an assistant message of text, calls, or both."""
    return Message(Role.ASSISTANT, content, id, tool_calls=tuple(calls))


def tool_call(id: str, name: str | Enum, args: Mapping[str, Any] | None = None) -> ToolCall:
    """Make a call; a string enum gives its value as name, None gives no arguments."""
    return ToolCall(id, str(name.value if isinstance(name, Enum) else name), dict(args or {}))


def tool_result(
    call_id: str,
    name: str,
    value: Any,
    *,
    id: str | None = None,
    outcome: Outcome = "ok",
    writes: Mapping[str, Any] | None = None,
) -> Message:
    """Make the result of a call, its value written as text."""
    content = value if is_parts(value) else result_text(value)
    return Message(
        Role.TOOL,
        content,
        id,
        tool_call_id=call_id,
        name=name,
        outcome=outcome,
        writes=writes or None,
    )


def result_text(value: Any) -> str:
    """Write what a tool returned: text as it is, None as nothing, the rest as JSON.

    Raises ValueError or TypeError, with the reason, for a value that cannot be written.
    """
    if value is None:
        return ""
    if isinstance(value, str):
        return clean_text(value)
    if isinstance(value, bytes | bytearray | memoryview | BaseException):
        raise TypeError(f"expected text or JSON values, got {type(value).__name__}")
    return clean_text(canonical_json(parse_json(to_json(value, inf_nan_mode="constants"))))


def parse_call(id: str, name: str, text: Any) -> ToolCall:
    """Read a call's argument text: blank is `{}`, anything but a JSON object is kept raw."""
    if isinstance(text, Mapping):
        return ToolCall(id, name, dict(text))
    if text is None or (isinstance(text, str) and not text.strip()):
        return ToolCall(id, name, {})
    raw = clean_text(str(text))
    try:
        value = parse_json(raw)
    except (ValueError, RecursionError):
        return ToolCall(id, name, None, raw)
    if value is None:
        return ToolCall(id, name, {})
    if not isinstance(value, dict):
        return ToolCall(id, name, None, raw)
    return ToolCall(id, name, value, None if canonical_json(value) == raw else raw)


def call_to_dict(call: ToolCall) -> dict[str, Any]:
    """Return a call as JSON values."""
    out: dict[str, Any] = {"id": call.id, "name": call.name}
    if call.args is not None:
        out["args"] = dict(call.args)
    if call.raw is not None:
        out["raw"] = call.raw
    return out


def _role(value: Any, path: str) -> Role:
    name = value.value if isinstance(value, Role) else value
    name = name.lower() if isinstance(name, str) else name
    if name == "developer":
        return Role.SYSTEM
    if name not in {role.value for role in Role}:
        raise InputError("invalid_message", f"expected a role, got {value!r}", path)
    return Role(name)


def _text(value: Mapping[str, Any], name: str, path: str) -> str | None:
    found = value.get(name)
    if found is not None and not isinstance(found, str):
        raise InputError("invalid_message", "expected text", f"{path}.{name}")
    return found


def _outcome(value: Mapping[str, Any], path: str) -> Outcome | None:
    found = value.get("outcome")
    if found is not None and found not in _OUTCOMES:
        raise InputError("invalid_message", f"expected one of {', '.join(_OUTCOMES)}", path)
    return cast("Outcome | None", found)


def _calls(value: Any, path: str) -> tuple[ToolCall, ...]:
    if value is None:
        return ()
    if not isinstance(value, list | tuple):
        raise InputError("invalid_message", "expected a list", path)
    return tuple(_call(item, f"{path}[{n}]") for n, item in enumerate(value))


def _call(value: Any, path: str) -> ToolCall:
    if not isinstance(value, Mapping):
        raise InputError("invalid_message", "expected an object", path)
    inner = value.get("function")
    source = inner if isinstance(inner, Mapping) else value
    name, call_id = source.get("name"), value.get("id")
    if not isinstance(name, str):
        raise InputError("invalid_message", "expected text", f"{path}.name")
    if not isinstance(call_id, str):
        raise InputError("invalid_message", "expected text", f"{path}.id")
    if "arguments" in source:
        return parse_call(call_id, name, source["arguments"])
    raw = source.get("raw")
    args = source.get("args", None if raw is not None else {})
    if args is not None and not isinstance(args, Mapping):
        return parse_call(call_id, name, args)
    return ToolCall(call_id, name, None if args is None else dict(args), raw)


def _blocks(value: Any, path: str) -> Blocks | None:
    if value is None:
        return None
    if not isinstance(value, Mapping) or not isinstance(value.get("data"), list | tuple):
        raise InputError("invalid_message", "expected format, data and source", path)
    return Blocks(str(value.get("format")), tuple(value["data"]), str(value.get("source")))
