"""Events as clients before 1.0 accept them, made from those of 1.0."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ag_ui import core as ag

from backscroll.agui.messages import WireMessage
from backscroll.agui.parts import from_wire, from_wire_part, placeholder, plain_text
from backscroll.agui.wire import event_json, read_event

_FINISHED = '{"type":"RUN_FINISHED"'
_WITH_CONTENT = tuple(
    f'{{"type":"{name}"' for name in ("TOOL_CALL_RESULT", "MESSAGES_SNAPSHOT", "RUN_STARTED")
)


def older_json(text: str) -> str:
    """Return an event for an older peer; most events are the same for both."""
    is_finished = text.startswith(_FINISHED)
    # Only a list of parts can hold what they do not know; text is the same for both.
    if not is_finished and not (text.startswith(_WITH_CONTENT) and '"content":[' in text):
        return text
    event = read_event(text)
    if isinstance(event, ag.RunFinishedEvent):
        _older_outcome(event)
    elif isinstance(event, ag.ToolCallResultEvent):
        event.content = plain_text(from_wire(event.content))
    elif isinstance(event, ag.MessagesSnapshotEvent):
        event.messages = _older_messages(event.messages)
    elif isinstance(event, ag.RunStartedEvent) and event.input is not None:
        event.input.messages = _older_messages(event.input.messages)
    return event_json(event, event.timestamp or 0)


def _older_outcome(event: ag.RunFinishedEvent) -> None:
    if isinstance(event.outcome, ag.RunFinishedCancelledOutcome):
        event.result = {"status": "cancelled"}
    if not isinstance(event.outcome, ag.RunFinishedInterruptOutcome):
        event.outcome = None


def _older_messages(messages: Iterable[WireMessage]) -> list[WireMessage]:
    return [_older_message(message) for message in messages]


def _older_message(message: WireMessage) -> WireMessage:
    if isinstance(message, ag.ToolMessage):
        return message.model_copy(update={"content": plain_text(from_wire(message.content))})
    if isinstance(message, ag.UserMessage) and isinstance(message.content, list):
        parts = [_older_part(part) for part in message.content]
        return message.model_copy(update={"content": parts})
    return message


def _older_part(part: Any) -> Any:  # Any: AG-UI's union of parts
    if isinstance(part, ag.TextPart) or not isinstance(part.source, ag.FileSource):
        return part
    return ag.TextPart(text=placeholder(from_wire_part(part)))
