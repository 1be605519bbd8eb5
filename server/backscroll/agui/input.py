"""A request as it came in: stripped of what does no harm, checked, or refused with reasons."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from backscroll.agui.options import AgentRules, Options
from backscroll.kernel.message import Message
from backscroll.kernel.request import Note
from backscroll.kernel.tool import ToolSpec


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


def read_request(data: bytes | str, limits: InputLimits | None = None) -> RunInput:
    """Read a request; raises RequestRefused naming every problem, and the ids where known."""
    raise NotImplementedError


def fingerprint(agent: str, request: RunInput) -> str:
    """Return what tells a repeated request from another one under the same run id."""
    raise NotImplementedError


def check_for_agent(request: RunInput, rules: AgentRules) -> None:
    """Raise RequestRefused when the request asks for what this agent does not allow."""
    raise NotImplementedError
