"""AG-UI events as JSON text, and as entries of a log that has not numbered them yet."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ag_ui import core as ag
from pydantic import BaseModel, TypeAdapter
from pydantic_core import PydanticSerializationError

from backscroll.agui.parts import from_wire, plain_text
from backscroll.kernel.canon import canonical_json, clean_text
from backscroll.store.entry import PREVIEW_CHARS, STAMP, NewEntry

_EVENT: TypeAdapter[ag.Event] = TypeAdapter(ag.Event)
_BEFORE_STAMP = '"timestamp":'
_ANY_TIME = 10**12
_REFS = ("tool_call_id", "message_id", "step_name", "name", "run_id")


def event_json(event: ag.BaseEvent, time: int) -> str:
    """Return an event as JSON text; the event gets that time, in milliseconds."""
    event.timestamp = time
    return _dump(event)


def event_entry(event: ag.BaseEvent, run: str) -> NewEntry:
    """Return an event of a run as an entry whose timestamp the log fills in."""
    body = event_json(event, _ANY_TIME).encode()
    at = body.index(_BEFORE_STAMP.encode()) + len(_BEFORE_STAMP)
    body = body[:at] + STAMP + body[at + len(STAMP) :]
    ref = next((found for name in _REFS if (found := getattr(event, name, None))), "")
    if isinstance(event, ag.RunErrorEvent):
        ref = run
    return NewEntry("event", event.type.value, body, "client", run, ref, preview(event), at + 1)


def read_event(body: bytes | str) -> ag.Event:
    """Return the model of an event that was logged as JSON."""
    return _EVENT.validate_json(body)


def preview(event: ag.BaseEvent) -> str:
    """Return a line for operators that says what an event holds, not longer than they are shown."""
    write = _PREVIEWS.get(event.type)
    return write(event)[: 8 * PREVIEW_CHARS] if write else ""


# Any: each writer knows the one event it is given.
_PREVIEWS: Mapping[ag.EventType, Callable[[Any], str]] = {
    ag.EventType.RUN_STARTED: lambda e: _last_text(e.input),
    ag.EventType.RUN_FINISHED: lambda e: e.outcome.type if e.outcome else "success",
    ag.EventType.RUN_ERROR: lambda e: e.message,
    ag.EventType.STEP_STARTED: lambda e: e.step_name,
    ag.EventType.STEP_FINISHED: lambda e: e.step_name,
    ag.EventType.TEXT_MESSAGE_START: lambda e: e.role or "assistant",
    ag.EventType.TEXT_MESSAGE_CONTENT: lambda e: e.delta,
    ag.EventType.REASONING_MESSAGE_CONTENT: lambda e: e.delta,
    ag.EventType.TOOL_CALL_START: lambda e: e.tool_call_name,
    ag.EventType.TOOL_CALL_ARGS: lambda e: e.delta,
    ag.EventType.TOOL_CALL_RESULT: lambda e: plain_text(from_wire(e.content)),
    ag.EventType.MESSAGES_SNAPSHOT: lambda e: f"{len(e.messages)} messages",
    ag.EventType.STATE_SNAPSHOT: lambda e: canonical_json(e.snapshot),
    ag.EventType.ACTIVITY_SNAPSHOT: lambda e: f"{e.activity_type} {e.content.get('status', '')}",
    ag.EventType.CUSTOM: lambda e: e.name,
}


def _last_text(echo: ag.RunAgentInput | None) -> str:
    last = echo.messages[-1] if echo is not None and echo.messages else None
    if isinstance(last, ag.UserMessage | ag.ToolMessage):
        return plain_text(from_wire(last.content))
    return ""


def _dump(event: BaseModel) -> str:
    try:
        return event.model_dump_json(by_alias=True)
    except PydanticSerializationError:
        # A lone surrogate: rare enough that only then every text is looked at.
        clean = type(event).model_validate(_cleaned(event.model_dump(by_alias=True)))
        return clean.model_dump_json(by_alias=True)


def _cleaned(value: Any) -> Any:  # Any: JSON values
    if isinstance(value, str):
        return clean_text(value)
    if isinstance(value, dict):
        return {_cleaned(key): _cleaned(item) for key, item in value.items()}
    return [_cleaned(item) for item in value] if isinstance(value, list) else value
