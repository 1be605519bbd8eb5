"""A session: a short way to go on with one conversation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, Unpack

from backscroll.agent.inputs import Input, TurnOptions
from backscroll.compaction.filter import Compaction
from backscroll.conversation.memory import ChatMemory
from backscroll.kernel.message import Message
from backscroll.kernel.turn import TurnResult


class Invokes(Protocol):
    """What a session needs of an agent."""

    @property
    def memory(self) -> ChatMemory:
        """Where its histories are kept."""
        ...

    @property
    def compaction(self) -> Compaction | None:
        """What compacts its views, if anything."""
        ...

    async def invoke(self, input: Input, **options: Unpack[TurnOptions]) -> TurnResult:
        """Run one turn."""
        ...


@dataclass(frozen=True, slots=True)
class Session:
    """One conversation of an agent."""

    agent: Invokes
    conversation_id: str

    async def invoke(self, input: Input, **options: Unpack[TurnOptions]) -> TurnResult:
        """Run one turn in this conversation."""
        options["conversation_id"] = self.conversation_id
        return await self.agent.invoke(input, **options)

    async def history(self) -> list[Message]:
        """Return all messages so far."""
        return await self.agent.memory.get(self.conversation_id)

    async def reset(self) -> None:
        """Forget the conversation, and what compaction knows of it."""
        await self.agent.memory.clear(self.conversation_id)
        if self.agent.compaction is not None:
            await self.agent.compaction.forget(self.conversation_id)
