"""Questions as filters rewrite them: for the model only, and once."""

from __future__ import annotations

from backscroll.kernel.message import Message, Role


def is_question(message: Message, by: str) -> bool:
    """Say whether a message is a user's text that this filter has not rewritten yet."""
    content = message.content
    is_text = isinstance(content, str) and bool(content.strip())
    return message.role is Role.USER and is_text and by not in message.rewritten_by


def rewritten(message: Message, by: str, text: str) -> Message:
    """Return a message with another text for the model; what was said stays."""
    return message.replace(model_content=text, rewritten_by=(*message.rewritten_by, by))
