"""The one subscription of a worker: it hears what is appended to the threads it watches.

Pub/sub keeps nothing: what is published while the connection is down is gone. So every time a
channel is confirmed, the first time and after each reconnect, `on_ready` is called for its thread,
and whoever listens compares with the head of the log.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any

from redis.asyncio.client import PubSub

from backscroll.kernel.errors import StoreError
from backscroll.store.connection import RedisClients, store_errors
from backscroll.store.entry import Bell, unpack_bell
from backscroll.store.keys import Keys, ThreadKey

logger = logging.getLogger(__name__)

POLL_S = 1.0
RETRY_S = (0.1, 0.2, 0.5, 1.0, 2.0)
CONFIRM_S = 5.0


class Bells:
    """Hears the bells of any number of threads over one connection, which `run` keeps up."""

    def __init__(
        self,
        clients: RedisClients,
        keys: Keys,
        on_bell: Callable[[ThreadKey, Bell], None],
        on_ready: Callable[[ThreadKey], None],
    ) -> None:
        self._clients, self._keys = clients, keys
        self._on_bell, self._on_ready = on_bell, on_ready
        self._wanted: dict[str, ThreadKey] = {}
        self._ready: dict[str, asyncio.Event] = {}
        self._pubsub: PubSub | None = None
        self._up = asyncio.Event()
        self._idle_channel = f"{keys.prefix}:hub"
        # Subscribing and unsubscribing one channel must reach the server in the order decided here.
        self._order = asyncio.Lock()

    @property
    def connected(self) -> bool:
        """Say whether the subscription is up."""
        return self._up.is_set()

    async def wait_connected(self) -> None:
        """Return once the subscription is up."""
        await self._up.wait()

    async def run(self) -> None:
        """Listen until cancelled; a lost connection is made again, with growing pauses."""
        failures = 0
        while True:
            try:
                await self._session()
            except StoreError as error:
                pause = RETRY_S[min(failures, len(RETRY_S) - 1)]
                failures += 1
                logger.warning("the subscription is down, next try in %s s: %s", pause, error)
                await asyncio.sleep(pause)
            else:
                failures = 0

    async def subscribe(self, thread: ThreadKey) -> None:
        """Return once the thread's bell is heard; raises StoreError when that takes too long."""
        channel = self._keys.bell(thread)
        self._wanted[channel] = thread
        ready = self._ready.setdefault(channel, asyncio.Event())
        try:
            async with asyncio.timeout(CONFIRM_S):
                await self._up.wait()
                async with self._order:
                    if not ready.is_set() and self._pubsub is not None:
                        with store_errors("subscribe"):
                            await self._pubsub.subscribe(channel)
                await ready.wait()
        except TimeoutError as error:
            raise StoreError("Redis did not confirm a subscription in time") from error

    async def unsubscribe(self, thread: ThreadKey) -> None:
        """Stop hearing a thread's bell."""
        channel = self._keys.bell(thread)
        self._wanted.pop(channel, None)
        self._ready.pop(channel, None)
        async with self._order:
            if self._pubsub is None or channel in self._wanted:
                return
            try:
                with store_errors("unsubscribe"):
                    await self._pubsub.unsubscribe(channel)
            except StoreError as error:
                logger.debug("%s", error)

    async def _session(self) -> None:
        """Listen on one connection until it is lost."""
        client = self._clients.dedicated()
        pubsub = client.pubsub()
        try:
            with store_errors("subscribe"):
                await pubsub.subscribe(self._idle_channel, *self._wanted)
                self._pubsub = pubsub
                while True:
                    message = await pubsub.get_message(timeout=POLL_S)
                    if message is not None:
                        self._take(message)
        finally:
            self._pubsub = None
            self._up.clear()
            for ready in self._ready.values():
                ready.clear()
            await pubsub.aclose()
            await client.aclose()

    def _take(self, message: dict[str, Any]) -> None:
        channel = message["channel"].decode()
        if message["type"] == "subscribe":
            if channel == self._idle_channel:
                self._up.set()
            elif channel in self._wanted:
                self._ready.setdefault(channel, asyncio.Event()).set()
                self._on_ready(self._wanted[channel])
        elif message["type"] == "message" and channel in self._wanted:
            self._on_bell(self._wanted[channel], unpack_bell(message["data"]))
