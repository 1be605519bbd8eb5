"""What an agent has in common with the changed agents made from it."""

from __future__ import annotations

from dataclasses import dataclass, field

from backscroll.agent.assembly import check_model
from backscroll.agent.locks import ConversationLocks
from backscroll.agent.pause_desk import PauseMemory
from backscroll.conversation.memory import InMemoryChatMemory
from backscroll.filters.memory import MemoryFilter
from backscroll.kernel.model import ChatModel


@dataclass(slots=True)
class Shared:
    """Locks and caches of this process; they keep no conversation alive."""

    locks: ConversationLocks = field(default_factory=ConversationLocks)
    memory_filter: MemoryFilter = field(default_factory=lambda: MemoryFilter(InMemoryChatMemory()))
    models: dict[str, ChatModel] = field(default_factory=dict)
    pauses: PauseMemory = field(default_factory=PauseMemory)

    def resolved(self, model: ChatModel | str) -> ChatModel:
        """Return the model, or the one a name stands for, the same one each time."""
        if not isinstance(model, str):
            return check_model(model)
        if model not in self.models:
            self.models[model] = check_model(model)
        return self.models[model]
