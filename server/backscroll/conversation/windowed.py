"""A window: a memory that shows only the last messages, and keeps all."""

from __future__ import annotations

from collections.abc import Sequence

from backscroll.conversation.history import segments
from backscroll.conversation.memory import ChatMemory
from backscroll.kernel.errors import AssemblyError
from backscroll.kernel.message import Message, Role


class WindowedChatMemory:
    """Shows the last `max_messages` of another memory; None shows all.

    Calls stay with their results, and the newest user message with all that follows it. The other
    memory keeps everything and is `full`.
    """

    def __init__(self, inner: ChatMemory, max_messages: int | None) -> None:
        is_number = isinstance(max_messages, int) and not isinstance(max_messages, bool)
        if max_messages is not None and not (is_number and max_messages > 0):
            message = f"max_messages: expected a whole number above 0, got {max_messages!r}"
            raise AssemblyError("invalid_option", message, "max_messages")
        self.full, self.max_messages = inner, max_messages

    def over(self, inner: ChatMemory) -> WindowedChatMemory:
        """Return the same window over another memory."""
        return WindowedChatMemory(inner, self.max_messages)

    def shown(self, history: Sequence[Message]) -> list[Message]:
        """Return what the window shows of a whole history."""
        return list(history) if self.max_messages is None else window(history, self.max_messages)

    async def get(self, conversation_id: str) -> list[Message]:
        """Return what the window shows."""
        return self.shown(await self.full.get(conversation_id))

    async def add(self, conversation_id: str, messages: Sequence[Message]) -> list[Message]:
        """Append to the whole history."""
        return await self.full.add(conversation_id, messages)

    async def clear(self, conversation_id: str) -> None:
        """Remove the whole conversation."""
        await self.full.clear(conversation_id)


def full_memory(memory: ChatMemory) -> ChatMemory:
    """Return the memory that keeps everything: the one behind a window, else itself."""
    return memory.full if isinstance(memory, WindowedChatMemory) else memory


def window(history: Sequence[Message], limit: int) -> list[Message]:
    """Return the last messages of a history, at most `limit` where that is possible.

    System messages come first and do not count. The newest user message and all after it are kept
    in any case; before them, whole segments as long as they fit; an assistant text does not begin.
    """
    users = [at for at, message in enumerate(history) if message.role is Role.USER]
    start = users[-1] if users else len(history)
    kept = {at for at in range(start, len(history)) if history[at].role is not Role.SYSTEM}
    older = [piece for piece in segments(history) if piece[0] < start]
    chosen: list[tuple[int, ...]] = []
    for piece in reversed(older):
        if history[piece[0]].role is Role.SYSTEM:
            continue
        if len(kept.union(piece)) > limit:
            break
        kept.update(piece)
        chosen.append(piece)
    while chosen and not _may_begin(history[chosen[-1][0]]):
        kept.difference_update(chosen.pop())
    systems = [message for message in history if message.role is Role.SYSTEM]
    return [*systems, *(history[at] for at in sorted(kept))]


def _may_begin(message: Message) -> bool:
    return message.role is Role.USER or bool(message.tool_calls)
