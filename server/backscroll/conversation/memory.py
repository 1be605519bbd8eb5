"""Where histories are kept: what every memory does, and the one that lives in this process."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from backscroll.kernel.canon import clean_text
from backscroll.kernel.content import Content, TextPart
from backscroll.kernel.errors import MessageConflict
from backscroll.kernel.message import Message
from backscroll.kernel.ports import Ids, RandomIds


class ChatMemory(Protocol):
    """The history of every conversation, in order, complete."""

    async def get(self, conversation_id: str) -> list[Message]:
        """Return the live history in append order; nothing for an unknown conversation."""
        ...

    async def add(self, conversation_id: str, messages: Sequence[Message]) -> list[Message]:
        """Append all or nothing, as one contiguous run, and return the stored forms.

        A message whose id is stored already is not stored again; with other content it raises
        `message_conflict`. A first `model_content` for a stored message is added to it.
        """
        ...

    async def clear(self, conversation_id: str) -> None:
        """Remove one conversation and touch no other."""
        ...


@dataclass(frozen=True, slots=True)
class Addition:
    """What adding messages to a history amounts to.

    `added` are new, in order; `annotated` replace a stored message under the same id; `stored` has
    the stored form of every message that was given.
    """

    added: tuple[Message, ...]
    annotated: tuple[Message, ...]
    stored: tuple[Message, ...]


class InMemoryChatMemory:
    """A memory in this process, for library use and tests."""

    def __init__(self, ids: Ids | None = None) -> None:
        self._ids = ids or RandomIds()
        self._conversations: dict[str, _Conversation] = {}

    async def get(self, conversation_id: str) -> list[Message]:
        """Return the history in append order."""
        found = self._conversations.get(conversation_id)
        return [] if found is None else list(found.messages)

    async def add(self, conversation_id: str, messages: Sequence[Message]) -> list[Message]:
        """Append all or nothing and return the stored forms."""
        if not messages:
            return []
        conversation = self._conversations.get(conversation_id) or _Conversation()
        change = plan_addition(conversation.find, prepare(messages, self._ids))
        conversation.apply(change)
        self._conversations[conversation_id] = conversation
        return list(change.stored)

    async def clear(self, conversation_id: str) -> None:
        """Remove one conversation."""
        self._conversations.pop(conversation_id, None)

    async def replace(
        self,
        conversation_id: str,
        messages: Sequence[Message],
        *,
        expected: int,
        ids: Sequence[str] | None = None,
        archive: bool = False,
    ) -> bool:
        """Put messages in place of the first `expected` ones; later ones stay behind them.

        False, and nothing changed, when those are not the messages with these ids, or one that is
        to stay is not among them as it is. What is replaced is gone: nothing is archived here.
        """
        conversation = self._conversations.get(conversation_id) or _Conversation()
        present = conversation.messages
        replaced = {message.id: message for message in present[:expected]}
        after = {message.id for message in present[expected:]}
        fresh = prepare(messages, self._ids)
        known = [message for message in fresh if message.id in replaced]
        moved = any(message.id in after for message in fresh)
        if ids is not None and [message.id for message in present[:expected]] != [*ids]:
            return False
        if len(present) < expected or moved or any(replaced[m.id] != m for m in known):
            return False
        shorter = _Conversation()
        shorter.apply(Addition((*fresh, *present[expected:]), (), ()))
        self._conversations[conversation_id] = shorter
        return True


def prepare(messages: Iterable[Message], ids: Ids) -> tuple[Message, ...]:
    """Return messages in the form they are stored in: valid text, and an id on each."""
    return tuple(_prepare(message, ids) for message in messages)


def plan_addition(find: Callable[[str], Message | None], messages: Sequence[Message]) -> Addition:
    """Decide what adding prepared messages does; `find` returns what is stored under an id.

    Raises `message_conflict`.
    """
    known: dict[str, Message] = {}
    added: list[str] = []
    annotated: dict[str, Message] = {}
    for message in messages:
        key = message.id or ""
        present = known.get(key) or find(key)
        if present is None:
            known[key] = message
            added.append(key)
            continue
        known[key] = merge(present, message)
        if known[key] is not present and key not in added:
            annotated[key] = known[key]
    return Addition(
        tuple(known[key] for key in added),
        tuple(annotated.values()),
        tuple(known[message.id or ""] for message in messages),
    )


def merge(stored: Message, incoming: Message) -> Message:
    """Return what is stored when a message of a known id comes again.

    That is the stored one itself, or the stored one with the annotation it did not have; anything
    else raises `message_conflict`.
    """
    if _said(stored) != _said(incoming):
        raise MessageConflict(stored.id or "")
    if incoming.model_content is None or _annotation(stored) == _annotation(incoming):
        return stored
    if stored.model_content is not None:
        raise MessageConflict(stored.id or "")
    return stored.replace(model_content=incoming.model_content, rewritten_by=incoming.rewritten_by)


@dataclass(slots=True)
class _Conversation:
    messages: list[Message] = field(default_factory=list)
    positions: dict[str, int] = field(default_factory=dict)

    def find(self, message_id: str) -> Message | None:
        at = self.positions.get(message_id)
        return None if at is None else self.messages[at]

    def apply(self, change: Addition) -> None:
        for message in change.annotated:
            self.messages[self.positions[message.id or ""]] = message
        for message in change.added:
            self.positions[message.id or ""] = len(self.messages)
            self.messages.append(message)


def _prepare(message: Message, ids: Ids) -> Message:
    return message.replace(
        id=message.id or ids.new("msg"),
        content=_clean(message.content),
        model_content=_clean(message.model_content),
        reasoning=None if message.reasoning is None else clean_text(message.reasoning),
        writes=message.writes or None,
        blocks=message.blocks if message.blocks and message.blocks.data else None,
    )


def _clean(content: Content) -> Content:
    if content is None:
        return None
    if isinstance(content, str):
        return clean_text(content)
    return tuple(
        TextPart(clean_text(part.text)) if isinstance(part, TextPart) else part for part in content
    )


def _said(message: Message) -> dict[str, object]:
    return message.replace(model_content=None, rewritten_by=()).to_dict()


def _annotation(message: Message) -> tuple[Content, tuple[str, ...]]:
    return message.model_content, message.rewritten_by
