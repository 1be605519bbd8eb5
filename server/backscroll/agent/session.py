"""A session: a short way to go on with one conversation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol, Unpack

from backscroll.agent.answers import PauseAnswer
from backscroll.agent.inputs import Input, TurnOptions
from backscroll.agent.pause import PauseStore
from backscroll.compaction.filter import Compaction
from backscroll.conversation.memory import ChatMemory
from backscroll.conversation.windowed import full_memory
from backscroll.kernel.message import Message
from backscroll.kernel.turn import Pause, TurnResult


class SessionAgent(Protocol):
    """What a session needs of an agent."""

    @property
    def memory(self) -> ChatMemory:
        """Where its histories are kept."""
        ...

    @property
    def compaction(self) -> Compaction | None:
        """What compacts its views, if anything."""
        ...

    @property
    def pauses(self) -> PauseStore | None:
        """Where its pauses are kept, if anywhere."""
        ...

    async def invoke(self, input: Input, **options: Unpack[TurnOptions]) -> TurnResult:
        """Run one turn."""
        ...

    async def resume(
        self,
        answers: Mapping[str, PauseAnswer],
        *,
        pause: Pause | None = None,
        **options: Unpack[TurnOptions],
    ) -> TurnResult:
        """Go on with a paused turn."""
        ...


@dataclass(frozen=True, slots=True)
class Session:
    """One conversation of an agent."""

    agent: SessionAgent
    conversation_id: str

    async def invoke(self, input: Input, **options: Unpack[TurnOptions]) -> TurnResult:
        """Run one turn in this conversation."""
        options["conversation_id"] = self.conversation_id
        return await self.agent.invoke(input, **options)

    async def resume(
        self, answers: Mapping[str, PauseAnswer], **options: Unpack[TurnOptions]
    ) -> TurnResult:
        """Go on with the paused turn of this conversation."""
        options["conversation_id"] = self.conversation_id
        return await self.agent.resume(answers, **options)

    async def paused(self) -> Pause | None:
        """Return what the conversation waits for, if it does."""
        pauses = self.agent.pauses
        return None if pauses is None else await pauses.load(self.conversation_id)

    async def history(self) -> list[Message]:
        """Return all messages so far."""
        return await full_memory(self.agent.memory).get(self.conversation_id)

    async def reset(self) -> None:
        """Forget the conversation: its messages, its pause, and what compaction knows of it."""
        await self.agent.memory.clear(self.conversation_id)
        if self.agent.pauses is not None:
            await self.agent.pauses.clear(self.conversation_id)
        if self.agent.compaction is not None:
            await self.agent.compaction.clear(self.conversation_id)
