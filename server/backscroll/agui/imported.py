"""A list that begins a thread: what of it becomes the history."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from backscroll.agui.messages import is_reasoning
from backscroll.conversation.history import pair
from backscroll.kernel.message import Message, Role, ToolCall, tool_result
from backscroll.kernel.ports import Ids


@dataclass(frozen=True, slots=True)
class Imported:
    """The history a list becomes; `settled` are the results among it that we made up."""

    messages: tuple[Message, ...] = ()
    settled: tuple[Message, ...] = ()
    pending: tuple[ToolCall, ...] = ()


def import_messages(
    sent: Sequence[Message], offered: frozenset[str], ids: Ids, no_result: str
) -> Imported:
    """Return the history of a new thread.

    Reasoning goes to the reply behind it, a result without its call is left out, and a call that
    others messages follow without a result gets one that says so. Calls of the last message stay
    pending where the client offers the tools.
    """
    listed = _with_reasoning(sent)
    pairing = pair(listed)
    last = len(listed) - 1
    while last >= 0 and listed[last].role is Role.TOOL:
        last -= 1
    messages: list[Message] = []
    settled: list[Message] = []
    pending: list[ToolCall] = []
    moved = {at for row in pairing.answers.values() for at in row if at is not None}
    for at, message in enumerate(listed):
        if at in moved or message.role is Role.TOOL:
            continue
        messages.append(message)
        for call, answer in zip(message.tool_calls, pairing.answers.get(at, ()), strict=False):
            if answer is not None:
                messages.append(listed[answer].replace(name=call.name))
            elif at == last and call.name in offered:
                pending.append(call)
            else:
                made = tool_result(
                    call.id, call.name, no_result, id=ids.new("msg"), outcome="unknown"
                )
                messages.append(made)
                settled.append(made)
    return Imported(tuple(messages), tuple(settled), tuple(pending))


def _with_reasoning(sent: Sequence[Message]) -> list[Message]:
    """Return the messages with each stretch of reasoning on the reply that follows it."""
    out: list[Message] = []
    thoughts: list[str] = []
    for message in sent:
        if is_reasoning(message):
            thoughts.append(message.reasoning or "")
            continue
        if message.role is Role.ASSISTANT and thoughts:
            message = message.replace(reasoning="\n".join(thoughts))
        thoughts = []
        out.append(message)
    return out
