"""What a client may say on a socket besides requests: control frames."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from backscroll.agui.cursor import Cursor, parse_cursor
from backscroll.agui.ids import id_problem
from backscroll.agui.input import ResumeEntry
from backscroll.agui.refusal import Problem, RequestRefused


@dataclass(frozen=True, slots=True)
class Abort:
    """The wish that a run stops."""

    run_id: str


@dataclass(frozen=True, slots=True)
class Watch:
    """The wish to be sent a thread, from a cursor on or from the join prelude."""

    thread_id: str
    offset: Cursor | None = None


@dataclass(frozen=True, slots=True)
class Unwatch:
    """The end of a watch."""

    thread_id: str


@dataclass(frozen=True, slots=True)
class Ping:
    """The question whether the server is there."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The decision of one question, and the id of the run that is to go on, if one is wished."""

    thread_id: str
    entry: ResumeEntry
    run_id: str | None = None


Control = Abort | Answer | Watch | Unwatch | Ping

CONTROL_TYPES = frozenset({"abort", "answer", "watch", "unwatch", "ping"})


def is_control(frame: Mapping[str, Any]) -> bool:
    """Say whether a frame is a control frame; every other object is a request."""
    kind = frame.get("type")
    return isinstance(kind, str) and kind in CONTROL_TYPES


def parse_control(frame: Mapping[str, Any]) -> Control:
    """Read a control frame; raises `invalid_input` naming the bad member."""
    match frame["type"]:
        case "abort":
            return Abort(_id(frame, "runId"))
        case "answer":
            return parse_answer(frame)
        case "watch":
            offset = _text(frame, "offset") if frame.get("offset") is not None else None
            cursor = None if offset is None else parse_cursor(offset)
            return Watch(_id(frame, "threadId"), cursor)
        case "unwatch":
            return Unwatch(_id(frame, "threadId"))
        case _:
            return Ping()


def parse_answer(frame: Mapping[str, Any]) -> Answer:
    """Read the decision of one question; raises RequestRefused naming the bad member."""
    status = frame.get("status")
    if status not in ("resolved", "cancelled"):
        raise RequestRefused.of_problems([Problem("status", "must be resolved or cancelled")])
    entry = ResumeEntry(_id(frame, "interruptId"), status, frame.get("payload"))
    run_id = _id(frame, "runId") if frame.get("runId") is not None else None
    return Answer(_id(frame, "threadId"), entry, run_id)


def _id(frame: Mapping[str, Any], name: str) -> str:
    value = _text(frame, name)
    problem = id_problem(value)
    if problem is not None:
        raise RequestRefused.of_problems([Problem(name, problem)])
    return value


def _text(frame: Mapping[str, Any], name: str) -> str:
    value = frame.get(name)
    if not isinstance(value, str):
        wrong = "is missing" if value is None else "must be text"
        raise RequestRefused.of_problems([Problem(name, wrong)])
    return value
