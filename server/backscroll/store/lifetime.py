"""How long a thread is kept: every write of it lets all of its keys live on for a while."""

from __future__ import annotations

import logging

from backscroll.kernel.errors import StoreError
from backscroll.store.connection import RedisClients, store_errors
from backscroll.store.keys import Keys, ThreadKey
from backscroll.store.scripts import Script

logger = logging.getLogger(__name__)

_EXPIRE = Script("expire")


class Lifetime:
    """Keeps threads for `ttl_s` after their last write; 0 keeps them for ever."""

    def __init__(self, clients: RedisClients, keys: Keys, ttl_s: float = 0.0) -> None:
        self._clients, self._keys = clients, keys
        self.ttl_ms = round(ttl_s * 1000)

    async def slide(self, thread: ThreadKey) -> None:
        """Let a thread live on, all its keys together.

        What it follows has happened, so a failure is only logged: the next write makes up for it.
        """
        if not self.ttl_ms:
            return
        # The claim on a summary ends by itself, and sooner.
        lease = self._keys.compaction_lease(thread)
        names = [name for name in self._keys.of_thread(thread) if name != lease]
        try:
            with store_errors("keep a thread"):
                await _EXPIRE.run(self._clients.write, names, [self.ttl_ms])
        except StoreError as error:
            logger.warning("%s", error)

    async def ends_at(self, thread: ThreadKey) -> int | None:
        """Return when a thread will be gone, in milliseconds; None if it is kept for ever."""
        with store_errors("read how long a thread is kept"):
            found = int(await self._clients.read.pexpiretime(self._keys.meta(thread)))
        return found if found > 0 else None
