"""What a turn is given: its messages, and the options of this one turn."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypedDict

from backscroll.agent.events import EventSink
from backscroll.conversation.parts import media_type, refusal
from backscroll.kernel.errors import InputError, ModelError
from backscroll.kernel.message import Message, Role, user
from backscroll.kernel.model import ChatModel, ModelOptions, ToolChoice
from backscroll.kernel.ports import CancelToken, Ids
from backscroll.kernel.tool import Tool

OnPaused = Literal["discard", "refuse"]
"""What a new turn does about a pause of its conversation."""

Input = str | Message | Sequence[Message]


class TurnOptions(TypedDict, total=False):
    """What may be given for one turn; nothing of it outlives the turn.

    `conversation_id`: without one the conversation lasts as long as the turn. `context`: what
    tools and filters may read. `system`: texts after the agent's instructions. `tools`: offered
    besides the agent's own, of which `tags` and `exclude_tags` choose. `tool_choice`, `options`,
    `model`, `max_iterations`, `on_event`: in place of the agent's. `cancel`: stops the turn.
    `run_id`: the name of the run that the turn belongs to. `on_paused`: whether a new turn discards
    a pause of its conversation or is refused.
    """

    conversation_id: str | None
    context: Mapping[str, Any] | None
    system: str | Sequence[str]
    tools: Iterable[Tool]
    tags: Iterable[str] | None
    exclude_tags: Iterable[str] | None
    tool_choice: ToolChoice | None
    options: ModelOptions | None
    model: ChatModel | str | None
    max_iterations: int | None
    cancel: CancelToken | None
    run_id: str | None
    on_event: EventSink | None
    on_paused: OnPaused


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """The options of one turn, with what was left out filled in; an unknown one is a TypeError."""

    conversation_id: str | None = None
    context: Mapping[str, Any] | None = None
    system: str | Sequence[str] = ()
    tools: Iterable[Tool] = ()
    tags: Iterable[str] | None = None
    exclude_tags: Iterable[str] | None = None
    tool_choice: ToolChoice | None = None
    options: ModelOptions | None = None
    model: ChatModel | str | None = None
    max_iterations: int | None = None
    cancel: CancelToken | None = None
    run_id: str | None = None
    on_event: EventSink | None = None
    on_paused: OnPaused = "discard"


def input_messages(input: Input, model: ChatModel, ids: Ids) -> tuple[Message, ...]:
    """Return what a turn is asked as messages with ids.

    Raises `invalid_message` for anything else, and `unsupported_content` for a part that the model
    cannot be sent.
    """
    items: Sequence[Any]
    if isinstance(input, str):
        items = [user(input)]
    else:
        items = [input] if isinstance(input, Message) else list(input)
    for at, message in enumerate(items):
        if not isinstance(message, Message) or not isinstance(message.role, Role):
            found = type(message).__name__
            raise InputError("invalid_message", f"expected a message, got {found}", f"[{at}]")
        _check_parts(at, message, model)
    return tuple(m if m.id else m.replace(id=ids.new("msg")) for m in items)


def _check_parts(at: int, message: Message, model: ChatModel) -> None:
    content = message.for_model()
    if content is None or isinstance(content, str):
        return
    for place, part in enumerate(content):
        reason = refusal(part, message.role, model)
        if reason is not None:
            raise ModelError(
                "unsupported_content",
                f"messages[{at}].content[{place}] ({media_type(part)}): {reason}",
                provider=model.provider,
            )
