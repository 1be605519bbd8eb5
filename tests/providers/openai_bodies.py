"""Bodies of requests on the chat completions wire, and their messages."""

from __future__ import annotations

from typing import Any

from backscroll.kernel.message import Message
from backscroll.kernel.model import ModelProfile, ModelRequest
from backscroll.kernel.tool import ToolSpec
from backscroll.providers.openai_request import build_request
from backscroll.providers.wire import WireConfig

CLOSED = {
    "type": "object",
    "properties": {"a": {"type": "integer"}},
    "required": ["a"],
    "additionalProperties": False,
}
ADD = ToolSpec("add", "Add numbers.", CLOSED)
CONFIG = WireConfig("m", "openai")


def build(*messages: Message, profile: ModelProfile | None = None, **more: Any) -> dict[str, Any]:
    """Build the body of a request of these messages."""
    return build_request(ModelRequest(messages, **more), profile or ModelProfile(), CONFIG)


def sent(*messages: Message, **profile: Any) -> list[dict[str, Any]]:
    """Return the messages of a body under a profile."""
    found: list[dict[str, Any]] = build(*messages, profile=ModelProfile(**profile))["messages"]
    return found
