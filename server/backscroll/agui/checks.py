"""What a request must satisfy beyond its shape: depth, numbers, ids, tools, sizes, version."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any

from ag_ui import core as ag

from backscroll.agui.ids import id_problem
from backscroll.agui.problems import path_of
from backscroll.agui.refusal import Problem
from backscroll.agui.strip import Place
from backscroll.kernel.canon import canonical_json, clean_text
from backscroll.kernel.tool import NAME

# The escape of half a character; only where one stands can JSON text hold a lone surrogate.
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")


@dataclass(frozen=True, slots=True)
class InputLimits:
    """How much a request may bring."""

    input_bytes: int = 8 * 1024 * 1024
    messages: int = 10_000
    depth: int = 64
    tools: int = 128
    schema_bytes: int = 256 * 1024
    context_bytes: int = 64 * 1024
    problems: int = 20


def cleaned(value: dict[str, Any], text: str) -> dict[str, Any]:
    """Return JSON values that were read from a text, in valid Unicode."""
    if _SURROGATE.search(text) is None:
        return value
    return {clean_text(name): _clean(member) for name, member in value.items()}


def tree_problems(value: Mapping[str, Any], limits: InputLimits) -> list[Problem]:
    """Return the members that are nested too deep, or hold a number that JSON cannot carry."""
    found: dict[str, Problem] = {}
    for name, member in value.items():
        waiting = [(member, 2)]
        while waiting:
            item, depth = waiting.pop()
            if isinstance(item, float) and not isfinite(item):
                found[name] = Problem(name, "holds a number that is too large")
            elif isinstance(item, dict | list):
                if depth > limits.depth:
                    message = f"is nested deeper than {limits.depth} levels"
                    found[name] = Problem(name, message)
                    break
                inner = item.values() if isinstance(item, dict) else item
                waiting += ((each, depth + 1) for each in inner)
    return list(found.values())


def model_problems(
    model: ag.RunAgentInput, origins: Mapping[Place, Sequence[int]], limits: InputLimits
) -> list[Problem]:
    """Return what is wrong with a request whose shape is right."""
    found = [*_version_problems(model.protocol_version)]
    for name, value in (("threadId", model.thread_id), ("runId", model.run_id)):
        found += _id_problems((name,), value)
    found += _id_problems(("parentRunId",), model.parent_run_id)
    if len(model.messages) > limits.messages:
        message = f"has {len(model.messages):,} items, allowed are {limits.messages:,}"
        found.append(Problem("messages", message, "too_large"))
    found += _message_problems(model.messages, origins)
    found += _tool_problems(model.tools or [], limits)
    for at, entry in enumerate(model.resume or ()):
        found += _id_problems(("resume", at, "interruptId"), entry.interrupt_id)
    size = sum(len(e.description.encode()) + len(e.value.encode()) for e in model.context or ())
    if size > limits.context_bytes:
        message = f"holds {size:,} bytes, allowed are {limits.context_bytes:,}"
        found.append(Problem("context", message, "too_large"))
    return found


def _message_problems(
    messages: Sequence[Any], origins: Mapping[Place, Sequence[int]]
) -> Iterator[Problem]:  # Any: AG-UI's union of messages
    for at, message in enumerate(messages):
        yield from _id_problems(("messages", at, "id"), message.id, origins)
        if isinstance(message, ag.ToolMessage):
            place = ("messages", at, "toolCallId")
            yield from _id_problems(place, message.tool_call_id, origins)
        for n, call in enumerate(getattr(message, "tool_calls", None) or ()):
            yield from _id_problems(("messages", at, "toolCalls", n, "id"), call.id, origins)


def _tool_problems(tools: Sequence[ag.Tool], limits: InputLimits) -> Iterator[Problem]:
    seen: set[str] = set()
    size = 0
    for at, tool in enumerate(tools):
        path = f"tools[{at}]"
        if NAME.fullmatch(tool.name) is None:
            yield Problem(f"{path}.name", f"must match {NAME.pattern}")
        elif tool.name in seen:
            yield Problem(f"{path}.name", f"{tool.name} is named twice", "duplicate_tool")
        seen.add(tool.name)
        if tool.parameters is not None and not isinstance(tool.parameters, dict):
            yield Problem(f"{path}.parameters", "must be an object")
        size += len(canonical_json(tool.parameters).encode())
    if len(tools) > limits.tools:
        message = f"has {len(tools)} items, allowed are {limits.tools}"
        yield Problem("tools", message, "too_large")
    if size > limits.schema_bytes:
        message = f"holds {size:,} bytes of schemas, allowed are {limits.schema_bytes:,}"
        yield Problem("tools", message, "too_large")


def _version_problems(version: str | None) -> Iterator[Problem]:
    if version is not None and version.split(".", 1)[0] != "1":
        message = f"{version!r} is not supported, expected 1.0"
        yield Problem("protocolVersion", message, "unsupported_version")


def _id_problems(
    place: Place, value: str | None, origins: Mapping[Place, Sequence[int]] | None = None
) -> Iterator[Problem]:
    wrong = None if value is None else id_problem(value)
    if wrong is not None:
        yield Problem(path_of(place, origins), wrong)


def _clean(value: Any) -> Any:  # Any: JSON values
    if isinstance(value, str):
        return clean_text(value)
    if isinstance(value, dict):
        return {clean_text(key): _clean(item) for key, item in value.items()}
    return [_clean(item) for item in value] if isinstance(value, list) else value
