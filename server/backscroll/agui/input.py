"""A request as it came in: stripped of what does no harm, checked, or refused with reasons."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from ag_ui import core as ag
from pydantic import ValidationError

from backscroll.agui.checks import InputLimits, cleaned, model_problems, tree_problems
from backscroll.agui.ids import is_minted
from backscroll.agui.messages import from_wire_message
from backscroll.agui.options import AgentRules, Options, option_problems, read_options
from backscroll.agui.problems import problems_of
from backscroll.agui.refusal import Problem, RequestRefused
from backscroll.agui.strip import Stripped, strip_request
from backscroll.kernel.canon import canonical_json, parse_json
from backscroll.kernel.content import content_to_json
from backscroll.kernel.errors import AssemblyError
from backscroll.kernel.json_schema import schema_validator
from backscroll.kernel.message import Message, Role
from backscroll.kernel.request import Note
from backscroll.kernel.tool import ToolSpec

_NO_ARGUMENTS: Mapping[str, Any] = {"type": "object", "properties": {}}
_VERSION = re.compile(r"1\.\d+")


@dataclass(frozen=True, slots=True)
class ResumeEntry:
    """An answer to one question."""

    interrupt_id: str
    status: Literal["resolved", "cancelled"]
    payload: Any = None  # Any: the answer's own JSON


@dataclass(frozen=True, slots=True)
class ContextEntry:
    """A text that the page adds to this run's prompt, and what it is."""

    description: str
    value: str


@dataclass(frozen=True, slots=True)
class RunInput:
    """One request, checked; `messages` holds reasoning as assistant messages of nothing else."""

    thread_id: str
    run_id: str
    messages: tuple[Message, ...] = ()
    parent_run_id: str | None = None
    protocol_version: str | None = None
    tools: tuple[ToolSpec, ...] = ()
    context: tuple[ContextEntry, ...] = ()
    state: Any = None  # Any: the page's state, whatever JSON it is; None when absent
    props: Mapping[str, Any] = field(default_factory=dict)
    resume: tuple[ResumeEntry, ...] = ()
    options: Options = field(default_factory=Options)
    notes: tuple[Note, ...] = ()

    @property
    def is_older_peer(self) -> bool:
        """Say whether the request comes from a client that does not speak 1.0."""
        return is_older(self.protocol_version)


def is_older(version: str | None) -> bool:
    """Say whether a peer that declares this version, or none, is an older one."""
    return version is None or _VERSION.fullmatch(version) is None


def parse_object(data: bytes | str, limits: InputLimits | None = None) -> dict[str, Any]:
    """Read a body or frame as a JSON object; raises `too_large` or `not_json`.

    What is returned is valid Unicode throughout.
    """
    limits = limits or InputLimits()
    size = len(data if isinstance(data, bytes) else data.encode("utf-8", "surrogatepass"))
    if size > limits.input_bytes:
        message = f"the request has {size:,} bytes, allowed are {limits.input_bytes:,}"
        raise RequestRefused("too_large", message, {"limit": limits.input_bytes})
    try:
        text = data.decode() if isinstance(data, bytes) else data
        value = parse_json(text)
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        raise RequestRefused("not_json", f"not JSON: {error.msg} at {where}") from error
    except RecursionError as error:
        message = f"nested deeper than {limits.depth} levels"
        raise RequestRefused("invalid_input", message) from error
    except UnicodeDecodeError as error:
        raise RequestRefused("not_json", f"not UTF-8 at byte {error.start}") from error
    except ValueError as error:
        raise RequestRefused("not_json", f"not JSON: {error}") from error
    if not isinstance(value, dict):
        raise RequestRefused("not_json", f"not a JSON object but {_sort_of(value)}")
    if problems := tree_problems(value, limits):
        raise _refused(problems, value, limits)
    return cleaned(value, text)


def read_request(data: bytes | str, limits: InputLimits | None = None) -> RunInput:
    """Read a request; raises RequestRefused naming every problem, and the ids where known."""
    return read_input(parse_object(data, limits), limits)


def read_input(value: Mapping[str, Any], limits: InputLimits | None = None) -> RunInput:
    """Check a request that is JSON already; raises RequestRefused as `read_request` does."""
    limits = limits or InputLimits()
    stripped = strip_request(value)
    try:
        model = ag.RunAgentInput.model_validate(stripped.value)
    except ValidationError as error:
        found = problems_of(error, stripped.value, stripped.origins)
        raise _refused([*stripped.problems, *found], value, limits) from error
    return _checked(model, stripped, limits)


def fingerprint(agent: str, request: RunInput) -> str:
    """Return what tells a repeated request from another one under the same run id.

    It leaves out what grows while a client waits: the replies, and the results that we made.
    """
    asked = next((m for m in reversed(request.messages) if m.role is Role.USER), None)
    answers = [
        [m.id, m.tool_call_id, content_to_json(m.content)]
        for m in request.messages
        if m.role is Role.TOOL and not is_minted(m.id or "")
    ]
    told = {
        "agent": agent,
        "threadId": request.thread_id,
        "asked": [asked.id, content_to_json(asked.content)] if asked else None,
        "answers": answers,
        "resume": [[r.interrupt_id, r.status, r.payload] for r in request.resume],
    }
    return hashlib.sha256(canonical_json(told).encode()).hexdigest()


def check_for_agent(request: RunInput, rules: AgentRules) -> None:
    """Raise RequestRefused when the request asks for what this agent does not allow."""
    problems = option_problems(request.options, rules)
    problems += (
        Problem(f"tools[{at}].name", f"{tool.name} is a tool of the server", "duplicate_tool")
        for at, tool in enumerate(request.tools)
        if tool.name in rules.tool_names
    )
    problems += (
        Problem(f"tools[{at}].parameters", wrong)
        for at, tool in enumerate(request.tools)
        if (wrong := _schema_problem(tool)) is not None
    )
    if problems:
        raise RequestRefused.of_problems(problems, threadId=request.thread_id, runId=request.run_id)


def _checked(model: ag.RunAgentInput, stripped: Stripped, limits: InputLimits) -> RunInput:
    props = model.forwarded_props
    read = read_options(props if isinstance(props, dict) else {})
    problems = [*stripped.problems, *model_problems(model, stripped.origins, limits)]
    problems += read.problems
    if props is not None and not isinstance(props, dict):
        problems.append(Problem("forwardedProps", "must be an object"))
    if problems:
        raise _refused(problems, stripped.value, limits)
    return RunInput(
        thread_id=model.thread_id,
        run_id=model.run_id,
        messages=tuple(from_wire_message(message) for message in model.messages),
        parent_run_id=model.parent_run_id,
        protocol_version=model.protocol_version,
        tools=tuple(
            ToolSpec(tool.name, tool.description, tool.parameters or _NO_ARGUMENTS)
            for tool in model.tools or ()
        ),
        context=tuple(
            ContextEntry(entry.description, entry.value)
            for entry in model.context or ()
            if entry.value.strip()
        ),
        state=model.state,
        props=read.rest,
        resume=tuple(
            ResumeEntry(entry.interrupt_id, entry.status, entry.payload)
            for entry in model.resume or ()
        ),
        options=read.options,
        notes=(*stripped.notes(), *read.notes),
    )


def _schema_problem(tool: ToolSpec) -> str | None:
    """Return why arguments could not be checked by a tool's schema."""
    try:
        schema_validator(tool.schema, tool.name)
    except AssemblyError as error:
        return f"is no JSON Schema: {error}"
    return None


def _refused(
    problems: list[Problem], value: Mapping[str, Any], limits: InputLimits
) -> RequestRefused:
    refusal = RequestRefused.of_problems(problems[: limits.problems])
    known = {name: value.get(name) for name in ("threadId", "runId")}
    return refusal.about(**{n: v for n, v in known.items() if isinstance(v, str)})


def _sort_of(value: Any) -> str:
    names = {list: "a list", str: "text", bool: "a truth value", type(None): "null"}
    return names.get(type(value), "a number")
