"""The desk where an agent leaves pauses and fetches them, with a store or without."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field

from backscroll.agent.pause import PauseStore
from backscroll.kernel.turn import Pause

REMEMBERED = 1_000
"""How many pauses are remembered that went on already, or that no store holds."""


@dataclass(slots=True)
class PauseMemory:
    """Which pauses of this process went on already, and which no store would take."""

    gone: OrderedDict[str, None] = field(default_factory=OrderedDict)
    unsaved: OrderedDict[str, None] = field(default_factory=OrderedDict)


@dataclass(frozen=True, slots=True)
class PauseDesk:
    """Keeps pauses and hands each out once; without a store the caller keeps them."""

    store: PauseStore | None = None
    memory: PauseMemory = field(default_factory=PauseMemory)

    async def load(self, conversation_id: str) -> Pause | None:
        """Return the stored pause of a conversation."""
        return None if self.store is None else await self.store.load(conversation_id)

    async def keep(self, pause: Pause) -> None:
        """Keep a pause, perhaps again; if the store fails, the caller's copy counts from now on."""
        self.memory.gone.pop(pause.id, None)
        if self.store is None:
            return
        _remember(self.memory.unsaved, pause.id)
        await self.store.save(pause)
        self.memory.unsaved.pop(pause.id, None)

    async def take(self, pause: Pause) -> bool:
        """Take a pause out; false when somebody else has taken it."""
        if pause.id in self.memory.gone:
            return False
        is_stored = self.store is not None and pause.id not in self.memory.unsaved
        if is_stored and self.store is not None:
            taken = await self.store.take(pause.conversation_id, pause.id)
            if taken is None:
                return False
        self.memory.unsaved.pop(pause.id, None)
        _remember(self.memory.gone, pause.id)
        return True

    async def discard(self, conversation_id: str) -> None:
        """Forget the stored pause of a conversation."""
        if self.store is not None:
            await self.store.clear(conversation_id)


def _remember(memory: OrderedDict[str, None], pause_id: str) -> None:
    memory[pause_id] = None
    memory.move_to_end(pause_id)
    if len(memory) > REMEMBERED:
        memory.popitem(last=False)
