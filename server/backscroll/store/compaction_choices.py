"""What operators chose for the compaction of a conversation: pins, and settings of its own."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from backscroll.kernel.canon import canonical_json
from backscroll.store.connection import RedisClients, store_errors
from backscroll.store.keys import LOCAL_OWNER, Keys, ThreadKey
from backscroll.store.scripts import resend

_PIN = "pin:"


class RedisCompactionChoices:
    """Pins and settings of one owner's conversations; they are fields beside the entry.

    Each change is one command that may be sent again, and summaries that are stored meanwhile
    leave them alone.
    """

    def __init__(self, clients: RedisClients, keys: Keys, owner: str = LOCAL_OWNER) -> None:
        self._clients, self._keys, self._owner = clients, keys, owner

    async def pins(self, conversation_id: str) -> frozenset[str]:
        """Return the ids of the pinned messages."""
        with store_errors("read pins"):
            names = await self._clients.read.hkeys(self._name(conversation_id))
        texts = (name.decode("utf-8", "surrogatepass") for name in names)
        return frozenset(text.removeprefix(_PIN) for text in texts if text.startswith(_PIN))

    async def pin(self, conversation_id: str, message_id: str) -> None:
        """Pin a message."""
        name, field = self._name(conversation_id), _field(message_id)
        with store_errors("pin a message"):
            await resend(lambda _: self._clients.write.hset(name, field, "1"))

    async def unpin(self, conversation_id: str, message_id: str) -> None:
        """Take a pin off."""
        name, field = self._name(conversation_id), _field(message_id)
        with store_errors("unpin a message"):
            await resend(lambda _: self._clients.write.hdel(name, field))

    async def overrides(self, conversation_id: str) -> Mapping[str, Any]:
        """Return what was set for the conversation; nothing where it cannot be read."""
        with store_errors("read compaction settings"):
            data = await self._clients.read.hget(self._name(conversation_id), "overrides")
        try:
            found = json.loads(data) if data else {}
        except ValueError:
            return {}
        return found if isinstance(found, dict) else {}

    async def override(self, conversation_id: str, overrides: Mapping[str, Any]) -> None:
        """Replace what was set."""
        name, data = self._name(conversation_id), canonical_json(dict(overrides))
        with store_errors("write compaction settings"):
            await resend(lambda _: self._clients.write.hset(name, "overrides", data))

    def _name(self, conversation_id: str) -> str:
        return self._keys.compaction(ThreadKey(self._owner, conversation_id))


def _field(message_id: str) -> bytes:
    return f"{_PIN}{message_id}".encode("utf-8", "surrogatepass")
