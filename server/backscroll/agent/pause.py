"""Pauses: what a turn waits for, and where a waiting turn is kept."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Protocol

from backscroll.agent.answers import TAKES
from backscroll.kernel.message import ToolCall
from backscroll.kernel.pause_codec import read_pause, write_pause
from backscroll.kernel.texts import Texts
from backscroll.kernel.turn import Pause, PauseItem, ToolRecord


class PauseStore(Protocol):
    """Where waiting turns are kept, one per conversation."""

    async def save(self, pause: Pause) -> None:
        """Keep a pause in place of any other of its conversation."""
        ...

    async def load(self, conversation_id: str) -> Pause | None:
        """Return the pause of a conversation; raises `pause_unreadable`, never guesses."""
        ...

    async def take(self, conversation_id: str, pause_id: str) -> Pause | None:
        """Remove and return that pause, in one step: of several takers one gets it."""
        ...

    async def clear(self, conversation_id: str) -> None:
        """Remove the pause of a conversation, if there is one."""
        ...


class InMemoryPauseStore:
    """Pauses in this process, in the form they have everywhere: as JSON."""

    def __init__(self) -> None:
        self._pauses: dict[str, str] = {}

    async def save(self, pause: Pause) -> None:
        """Keep a pause."""
        self._pauses[pause.conversation_id] = write_pause(pause)

    async def load(self, conversation_id: str) -> Pause | None:
        """Return the pause of a conversation."""
        text = self._pauses.get(conversation_id)
        return None if text is None else read_pause(text)

    async def take(self, conversation_id: str, pause_id: str) -> Pause | None:
        """Remove and return that pause."""
        found = await self.load(conversation_id)
        if found is None or found.id != pause_id:
            return None
        del self._pauses[conversation_id]
        return found

    async def clear(self, conversation_id: str) -> None:
        """Remove the pause of a conversation."""
        self._pauses.pop(conversation_id, None)


def approval_items(questions: Mapping[str, str], calls: Iterable[ToolCall]) -> list[PauseItem]:
    """Return an item for each call somebody is asked about, with the reason."""
    return [_item("approval", call, questions[call.id]) for call in calls if call.id in questions]


def client_items(calls: Iterable[ToolCall]) -> list[PauseItem]:
    """Return an item for each call that runs in the client."""
    return [_item("client", call, "") for call in calls]


def environment_items(
    held: Iterable[ToolRecord], calls: Mapping[str, ToolCall], texts: Texts
) -> list[PauseItem]:
    """Return an item for each call that failed because of its environment."""
    items = []
    for record in held:
        message = record.failure.message if record.failure is not None else ""
        reason = texts.environment_problem.format(name=record.name, message=message)
        items.append(_item("environment", calls[record.call_id], reason))
    return items


def _item(kind: str, call: ToolCall, reason: str) -> PauseItem:
    answers = TAKES[kind]
    return PauseItem(call.id, kind, call.name, call.args or {}, reason, answers)  # type: ignore[arg-type]
