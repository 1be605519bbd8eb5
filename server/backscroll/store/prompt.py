"""Connections that heed a cancellation while they write.

redis-py bounds a write by `asyncio.wait_for`. On Python 3.11 that loses a cancellation which comes
while the write is just done, so the task would go on for ever; and it makes a task per command.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from redis.asyncio import BlockingConnectionPool, Connection, SSLConnection
from redis.asyncio.connection import AbstractConnection, UnixDomainSocketConnection
from redis.exceptions import TimeoutError as RedisTimeoutError


class _Prompt(AbstractConnection):
    """A connection whose writes are bounded by a timeout that loses no cancellation."""

    async def send_packed_command(
        self, command: bytes | str | Iterable[bytes], check_health: bool = True
    ) -> None:
        """Write a command; raises redis-py's TimeoutError when that takes too long."""
        patience, self.socket_timeout = self.socket_timeout, None
        try:
            async with asyncio.timeout(patience):
                await super().send_packed_command(command, check_health)
        except TimeoutError as error:
            await self.disconnect(nowait=True)
            raise RedisTimeoutError("Timeout writing to socket") from error
        finally:
            self.socket_timeout = patience


class PromptConnection(_Prompt, Connection):
    """Over TCP."""


class PromptSSLConnection(_Prompt, SSLConnection):
    """Over TLS."""


class PromptUnixConnection(_Prompt, UnixDomainSocketConnection):
    """Over a Unix socket."""


_PROMPT: dict[type[AbstractConnection], type[AbstractConnection]] = {
    Connection: PromptConnection,
    SSLConnection: PromptSSLConnection,
    UnixDomainSocketConnection: PromptUnixConnection,
}


def make_prompt(pool: BlockingConnectionPool) -> BlockingConnectionPool:
    """Return the pool, which has made no connection yet, with prompt connections."""
    pool.connection_class = _PROMPT[pool.connection_class]
    return pool
