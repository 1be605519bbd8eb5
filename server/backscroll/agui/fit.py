"""Events made small enough for a reader: media as a line, long texts as head and tail."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ag_ui import core as ag

from backscroll.agui.messages import WireMessage
from backscroll.agui.parts import cut_text, from_wire_part, placeholder
from backscroll.agui.wire import event_json, read_event

TEXT_CHARS = 65_536
"""How much of one text a reader with a small frame gets."""

MEDIA_CHARS = 16_384
"""How large inline data may be for a reader with a small frame."""

LIMITS = (TEXT_CHARS, 16_384, 4_096, 1_024, 256)
"""How long each text may be where a whole message does not fit, tried one after another."""

ENVELOPE_BYTES = 2048
"""Room for what a dialect puts around an event: cursor and thread id."""


def fits(text: str, max_frame: int | None) -> bool:
    """Say whether an event is small enough for a reader, its frame included."""
    if max_frame is None or 4 * len(text) + ENVELOPE_BYTES <= max_frame:
        return True
    return len(text.encode()) + ENVELOPE_BYTES <= max_frame


def fit_event(text: str, max_frame: int) -> str | None:
    """Return an event within the limit, shortened where it must be, or None if it cannot be.

    Snapshots, echoes and results can be shortened.
    """
    if fits(text, max_frame):
        return text
    event = read_event(text)
    if isinstance(event, ag.ToolCallResultEvent):
        return _fit_result(event, max_frame)
    if isinstance(event, ag.MessagesSnapshotEvent):
        event.messages = fit_messages(event.messages)
    elif isinstance(event, ag.RunStartedEvent) and event.input is not None:
        event.input.messages = fit_messages(event.input.messages)
    shortened = event_json(event, event.timestamp or 0)
    return shortened if fits(shortened, max_frame) else None


def fit_messages(messages: Iterable[WireMessage]) -> list[WireMessage]:
    """Return messages with large media and long texts shortened."""
    return [_shorten(message, TEXT_CHARS) for message in messages]


def fit_message(message: WireMessage, room: int) -> WireMessage:
    """Return a message of at most `room` bytes, its texts as long as that allows.

    Arguments of calls are cut last. What has too many parts or calls stays larger.
    """
    short = _shorten(message, TEXT_CHARS)
    for limit in LIMITS:
        if message_bytes(short) <= room:
            break
        short = _cut_arguments(_shorten(message, limit), limit)
    return short


def message_bytes(message: WireMessage) -> int:
    """Return how many bytes a message takes in an event."""
    return len(message.model_dump_json(by_alias=True, exclude_none=True).encode()) + 1


def _fit_result(event: ag.ToolCallResultEvent, max_frame: int) -> str | None:
    whole = event.content
    for limit in LIMITS:
        event.content = fit_content(whole, limit)
        text = event_json(event, event.timestamp or 0)
        if fits(text, max_frame):
            return text
    return None


def _shorten(message: WireMessage, limit: int) -> WireMessage:
    if isinstance(message, ag.ActivityMessage) or message.content is None:
        return message
    return message.model_copy(update={"content": fit_content(message.content, limit)})


def _cut_arguments(message: WireMessage, limit: int) -> WireMessage:
    if not isinstance(message, ag.AssistantMessage) or not message.tool_calls:
        return message
    calls = []
    for call in message.tool_calls:
        cut = {"arguments": cut_text(call.function.arguments, limit)}
        calls.append(call.model_copy(update={"function": call.function.model_copy(update=cut)}))
    return message.model_copy(update={"tool_calls": calls})


def fit_content(content: Any, limit: int) -> Any:  # Any: AG-UI's union of text and parts
    """Return content with large media and long texts shortened."""
    if isinstance(content, str):
        return cut_text(content, limit)
    return [_fit_part(part, limit) for part in content]


def _fit_part(part: Any, limit: int) -> Any:  # Any: AG-UI's union of parts
    if isinstance(part, ag.TextPart):
        return part.model_copy(update={"text": cut_text(part.text, limit)})
    allowed = min(MEDIA_CHARS, limit)
    if isinstance(part.source, ag.DataSource) and len(part.source.value) > allowed:
        return ag.TextPart(text=placeholder(from_wire_part(part)))
    return part
