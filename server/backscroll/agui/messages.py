"""Messages between our shape and AG-UI's: what clients send, and what they are shown."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from ag_ui import core as ag

from backscroll.agui.ids import reasoning_id
from backscroll.agui.parts import cut_content, from_wire, to_wire
from backscroll.kernel.canon import clean_text
from backscroll.kernel.message import Message, Role, ToolCall, parse_call

WireMessage = (
    ag.DeveloperMessage
    | ag.SystemMessage
    | ag.AssistantMessage
    | ag.UserMessage
    | ag.ToolMessage
    | ag.ActivityMessage
    | ag.ReasoningMessage
)


@dataclass(frozen=True, slots=True)
class Shown:
    """How much of a history clients are shown."""

    reasoning: bool = True
    result_chars: int = 200_000


def to_wire_messages(message: Message, shown: Shown) -> list[WireMessage]:
    """Return a message as AG-UI has it, an assistant message's reasoning before it."""
    if message.role is not Role.ASSISTANT:
        return [_to_wire(message, shown)]
    out: list[WireMessage] = []
    if shown.reasoning and message.reasoning and message.reasoning.strip():
        out.append(ag.ReasoningMessage(id=reasoning_id(_id(message)), content=message.reasoning))
    if is_visible(message):
        out.append(_assistant(message))
    return out


def is_visible(message: Message) -> bool:
    """Say whether a message shows anything but reasoning: a blank reply was never sent either."""
    if message.role is not Role.ASSISTANT:
        return True
    return bool(message.tool_calls or message.text.strip())


def result_content(message: Message, shown: Shown) -> Any:
    """Return the content of a tool result as clients get it: text or parts, cut where too long.

    (Any: AG-UI's union of text and parts, which its models spell without a name.)
    """
    return to_wire(cut_content(message.content, shown.result_chars))


def from_wire_message(message: WireMessage) -> Message:
    """Return what a client sent in our shape; reasoning is an assistant message of nothing else."""
    if isinstance(message, ag.UserMessage):
        return Message(Role.USER, from_wire(message.content), message.id)
    if isinstance(message, ag.ToolMessage):
        return Message(
            Role.TOOL,
            from_wire(message.content),
            message.id,
            tool_call_id=message.tool_call_id,
            outcome="error" if message.error else "ok",
        )
    if isinstance(message, ag.AssistantMessage):
        content = from_wire(message.content) if message.content else None
        calls = tuple(_from_call(call) for call in message.tool_calls or ())
        return Message(Role.ASSISTANT, content, message.id, tool_calls=calls)
    if isinstance(message, ag.ReasoningMessage):
        return Message(Role.ASSISTANT, None, message.id, reasoning=clean_text(message.content))
    return Message(Role.SYSTEM, clean_text(str(message.content)), message.id)


def is_reasoning(message: Message) -> bool:
    """Say whether a client's message is of the role reasoning."""
    return message.role is Role.ASSISTANT and message.reasoning is not None


def echo(thread_id: str, run_id: str, messages: Iterable[Message]) -> ag.RunAgentInput | None:
    """Return the echo that RUN_STARTED carries, None when the run added nothing."""
    shown = Shown()
    wire = [item for message in messages for item in to_wire_messages(message, shown)]
    if not wire:
        return None
    return ag.RunAgentInput(thread_id=thread_id, run_id=run_id, messages=wire, tools=[], context=[])


def _to_wire(message: Message, shown: Shown) -> WireMessage:
    if message.role is Role.USER:
        return ag.UserMessage(id=_id(message), content=to_wire(message.content))
    if message.role is Role.SYSTEM:
        return ag.SystemMessage(id=_id(message), content=message.text)
    return ag.ToolMessage(
        id=_id(message),
        content=result_content(message, shown),
        tool_call_id=message.tool_call_id or "",
        error=message.outcome if message.failed else None,
    )


def _assistant(message: Message) -> WireMessage:
    return ag.AssistantMessage(
        id=_id(message),
        content=message.text if message.text.strip() else None,
        tool_calls=[_to_call(call) for call in message.tool_calls] or None,
        metadata={"backscroll": {"incomplete": True}} if message.incomplete else None,
    )


def _to_call(call: ToolCall) -> ag.ToolCall:
    function = ag.FunctionCall(name=call.name, arguments=call.args_text)
    return ag.ToolCall(id=call.id, function=function)


def _from_call(call: ag.ToolCall) -> ToolCall:
    return parse_call(call.id, call.function.name, call.function.arguments)


def _id(message: Message) -> str:
    return message.id or ""
