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
    if isinstance(event, ag.MessagesSnapshotEvent):
        event.messages = fit_messages(event.messages)
    elif isinstance(event, ag.RunStartedEvent) and event.input is not None:
        event.input.messages = fit_messages(event.input.messages)
    elif isinstance(event, ag.ToolCallResultEvent):
        event.content = fit_content(event.content)
    shortened = event_json(event, event.timestamp or 0)
    return shortened if fits(shortened, max_frame) else None


def fit_messages(messages: Iterable[WireMessage]) -> list[WireMessage]:
    """Return messages with large media and long texts shortened."""
    return [
        message
        if isinstance(message, ag.ActivityMessage) or message.content is None
        else message.model_copy(update={"content": fit_content(message.content)})
        for message in messages
    ]


def fit_content(content: Any) -> Any:  # Any: AG-UI's union of text and parts
    """Return content with large media and long texts shortened."""
    if isinstance(content, str):
        return cut_text(content, TEXT_CHARS)
    return [_fit_part(part) for part in content]


def _fit_part(part: Any) -> Any:  # Any: AG-UI's union of parts
    if isinstance(part, ag.TextPart):
        return part.model_copy(update={"text": cut_text(part.text, TEXT_CHARS)})
    if isinstance(part.source, ag.DataSource) and len(part.source.value) > MEDIA_CHARS:
        return ag.TextPart(text=placeholder(from_wire_part(part)))
    return part
