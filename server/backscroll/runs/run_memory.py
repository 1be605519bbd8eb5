"""The memory of one run: it remembers the history as it was last read, with its store positions."""

from __future__ import annotations

from collections.abc import Sequence

from backscroll.kernel.message import Message
from backscroll.store.chat_memory import RedisChatMemory


class RunMemory:
    """A ChatMemory bound to a run's lease; call records are made from what it read last.

    `rewrites` is how often that history had been rewritten.
    """

    def __init__(self, memory: RedisChatMemory) -> None:
        self._memory = memory
        self.last_read: tuple[tuple[int, Message], ...] = ()
        self.rewrites = 0

    async def get(self, conversation_id: str) -> list[Message]:
        """Return the live history, and remember it."""
        messages = await self._memory.get(conversation_id)
        positions = self._memory.positions(conversation_id)
        self.last_read = tuple(zip(positions, messages, strict=True))
        self.rewrites = self._memory.rewrites
        return messages

    async def add(self, conversation_id: str, messages: Sequence[Message]) -> list[Message]:
        """Append messages; raises LeaseLost once another worker owns the run."""
        return await self._memory.add(conversation_id, messages)

    async def replace(
        self,
        conversation_id: str,
        messages: Sequence[Message],
        *,
        expected: int,
        ids: Sequence[str],
        archive: bool,
    ) -> bool:
        """Put a shorter history in place of the first messages, if they are still those."""
        return await self._memory.replace(
            conversation_id, messages, expected=expected, ids=ids, archive=archive
        )

    async def clear(self, conversation_id: str) -> None:
        """Remove the conversation's messages."""
        await self._memory.clear(conversation_id)
