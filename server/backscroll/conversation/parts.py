"""Which parts a model can be sent, and what a view says in place of the others."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from backscroll.kernel.content import FilePart, Part, TextPart, VendorPart
from backscroll.kernel.message import Message
from backscroll.kernel.model import ChatModel


def refusal(part: Part, role: str, model: ChatModel) -> str | None:
    """Return why a model cannot be sent a part in a message of a role, or None if it can.

    A model that knows its wire has a method `refuses(part, role)`, which is asked; of others the
    profile decides.
    """
    if isinstance(part, TextPart):
        return None
    refuses: Callable[[Part, str], str | None] | None = getattr(model, "refuses", None)
    if refuses is not None:
        return refuses(part, role)
    if isinstance(part, VendorPart):
        owner: str | None = part.vendor
    else:
        owner = part.provider if part.handle is not None else None
    if owner is not None and owner != model.provider:
        return f"it belongs to {owner!r}, and this model is of {model.provider!r}"
    return model.profile.accepts(part.media_type, role) if isinstance(part, FilePart) else None


def media_type(part: Part) -> str:
    """Return what to call a part that is not shown."""
    return part.media_type if isinstance(part, FilePart) else "part"


def fit(
    messages: Sequence[Message], model: ChatModel, not_shown: str
) -> tuple[Sequence[Message], tuple[int, ...]]:
    """Return a view without the parts that a model cannot be sent, and where it differs.

    `not_shown` stands in place of each such part; nothing to change gives the list itself.
    """
    changed: dict[int, Message] = {}
    for at, message in enumerate(messages):
        fitted = _fit(message, model, not_shown)
        if fitted is not message:
            changed[at] = fitted
    if not changed:
        return messages, ()
    return tuple(changed.get(at, m) for at, m in enumerate(messages)), tuple(changed)


def _fit(message: Message, model: ChatModel, not_shown: str) -> Message:
    content = message.for_model()
    if content is None or isinstance(content, str):
        return message
    parts = tuple(
        part
        if refusal(part, message.role, model) is None
        else TextPart(not_shown.format(media_type=media_type(part)))
        for part in content
    )
    if parts == content:
        return message
    if message.model_content is None:
        return message.replace(content=parts)
    return message.replace(model_content=parts)
