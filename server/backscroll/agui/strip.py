"""What a newer or sloppier peer may send without harm, taken out before a request is checked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from ag_ui import core as ag
from pydantic import BaseModel

from backscroll.agui.parts import media_kind
from backscroll.agui.refusal import Problem
from backscroll.kernel.request import Note

Place = tuple[str | int, ...]

_ROLES: Mapping[str, type[BaseModel]] = {
    "developer": ag.DeveloperMessage,
    "system": ag.SystemMessage,
    "assistant": ag.AssistantMessage,
    "user": ag.UserMessage,
    "tool": ag.ToolMessage,
    "reasoning": ag.ReasoningMessage,
}
_PARTS: Mapping[str, type[BaseModel]] = {
    "text": ag.TextPart,
    "image": ag.ImagePart,
    "audio": ag.AudioPart,
    "video": ag.VideoPart,
    "document": ag.DocumentPart,
}
_SOURCES: Mapping[str, type[BaseModel]] = {
    "data": ag.DataSource,
    "url": ag.UrlSource,
    "file": ag.FileSource,
}
_IGNORED = frozenset({"subagentRunId", "encryptedValue"})


@dataclass(slots=True)
class Stripped:
    """A request without what was taken out.

    `origins` says, for a list from which items were removed, where the remaining ones stood.
    """

    value: dict[str, Any] = field(default_factory=dict)
    origins: dict[Place, list[int]] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)

    def notes(self) -> tuple[Note, ...]:
        """Return what operators should know of it."""
        if not self.left_out:
            return ()
        text = f"left out of the request, not understood: {', '.join(self.left_out[:20])}"
        return (Note("stripped", text, data={"paths": list(self.left_out)}),)


def strip_request(value: Mapping[str, Any]) -> Stripped:
    """Return a request without unknown members, roles and parts, and without empty nulls."""
    out = Stripped()
    out.value = _members(ag.RunAgentInput, value)
    _strip_messages(out)
    for name, model in (("tools", ag.Tool), ("context", ag.Context), ("resume", ag.ResumeEntry)):
        _strip_list(out.value, name, model)
    return out


def _strip_messages(out: Stripped) -> None:
    messages = out.value.get("messages")
    if not isinstance(messages, list):
        return
    said = [at for at, message in enumerate(messages) if _role(message) != "activity"]
    kept: list[Any] = []
    origin: list[int] = []
    for at in said:
        stripped = _strip_message(out, messages[at], at, len(kept))
        if isinstance(stripped, Problem):
            if at == said[-1]:
                out.problems.append(stripped)
            else:
                out.left_out.append(stripped.path)
            continue
        kept.append(stripped)
        origin.append(at)
    out.value["messages"] = kept
    out.origins[("messages",)] = origin


def _strip_message(out: Stripped, message: Any, at: int, new_at: int) -> Any:
    """Return what is left of a message, or the problem that it would be as the last one."""
    role = _role(message)
    if role is None:
        return message
    if role not in _ROLES:
        return Problem(f"messages[{at}].role", "is not a known role")
    stripped = _members(_ROLES[role], message)
    _strip_list(stripped, "toolCalls", ag.ToolCall)
    for call in stripped.get("toolCalls", ()) if role == "assistant" else ():
        if isinstance(call, dict) and isinstance(call.get("function"), dict):
            call["function"] = _members(ag.FunctionCall, call["function"])
    parts = stripped.get("content")
    if isinstance(parts, list):
        stripped["content"] = _strip_parts(out, parts, at, new_at)
        if role == "user" and parts and not stripped["content"]:
            return Problem(f"messages[{at}].content", "has no part of a known type")
    return stripped


def _strip_parts(out: Stripped, parts: list[Any], at: int, new_at: int) -> list[Any]:
    kept: list[Any] = []
    origin: list[int] = []
    for place, part in enumerate(parts):
        stripped = _strip_part(part)
        if stripped is None:
            out.left_out.append(f"messages[{at}].content[{place}]")
            continue
        kept.append(stripped)
        origin.append(place)
    out.origins["messages", new_at, "content"] = origin
    return kept


def _strip_part(part: Any) -> Any:
    """Return what is left of a part, or None when it cannot be understood."""
    if not isinstance(part, dict) or not isinstance(part.get("type"), str):
        return part
    if part["type"] == "binary":
        part = _from_binary(part)
    if part["type"] not in _PARTS:
        return None
    stripped = _members(_PARTS[part["type"]], part)
    source = stripped.get("source")
    if isinstance(source, dict) and isinstance(source.get("type"), str):
        if source["type"] not in _SOURCES:
            return None
        stripped["source"] = _members(_SOURCES[source["type"]], source)
    return stripped


def _from_binary(part: Mapping[str, Any]) -> dict[str, Any]:
    """Return a part of the kind that AG-UI had before 1.0 as one of today's."""
    kind = next((name for name in ("data", "url") if part.get(name)), "")
    source = {"type": kind, "value": part.get(kind), "mimeType": part.get("mimeType")}
    out: dict[str, Any] = {"type": media_kind(str(part.get("mimeType"))), "source": source}
    if isinstance(part.get("filename"), str):
        out["metadata"] = {"filename": part["filename"]}
    return out


def _strip_list(value: dict[str, Any], name: str, model: type[BaseModel]) -> None:
    items = value.get(name)
    if isinstance(items, list):
        value[name] = [_members(model, item) if isinstance(item, dict) else item for item in items]


def _role(message: Any) -> str | None:
    role = message.get("role") if isinstance(message, dict) else None
    return role if isinstance(role, str) else None


def _members(model: type[BaseModel], value: Mapping[str, Any]) -> dict[str, Any]:
    """Return the members a model knows; an optional one that is null counts as absent."""
    known = _known(model)
    return {
        name: item
        for name, item in value.items()
        if name in known and not (item is None and known[name])
    }


@cache
def _known(model: type[BaseModel]) -> Mapping[str, bool]:
    """Return the members of a model by their names on the wire, and whether each is optional."""
    fields = model.model_fields.items()
    known = {field.alias or name: not field.is_required() for name, field in fields}
    return {name: optional for name, optional in known.items() if name not in _IGNORED}
