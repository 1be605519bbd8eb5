"""Connections to Redis, each kind with the patience that fits its use."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from redis.asyncio import BlockingConnectionPool, Redis
from redis.asyncio.retry import Retry
from redis.backoff import ExponentialBackoff, NoBackoff
from redis.exceptions import RedisError

from backscroll.kernel.errors import StoreError
from backscroll.store.prompt import make_prompt

Client = Any
"""A redis-py client (Any: its annotations cover all its modes at once; ours answers bytes)."""

TIMEOUT_S = 5.0
POOL_WAIT_S = 5.0
POOL_SIZE = 64
HEALTH_CHECK_S = 5


@dataclass(frozen=True, slots=True)
class RedisClients:
    """The clients of one process: `write` never repeats a command by itself, `read` may."""

    url: str
    write: Client
    read: Client

    def dedicated(self) -> Client:
        """Return a client with one connection of its own that is never repaired in silence.

        For subscriptions: who loses it must know, since what was published meanwhile is gone.
        """
        return _client(self.url, Retry(NoBackoff(), 0), 1, health_check_interval=HEALTH_CHECK_S)

    async def ping(self) -> None:
        """Return when Redis answers; raises StoreError when it does not."""
        with store_errors("ping"):
            await self.read.ping()

    async def close(self) -> None:
        """Close every connection."""
        await self.write.aclose()
        await self.read.aclose()


def connect(url_or_socket: str) -> RedisClients:
    """Return the clients for a `redis://`, `rediss://` or `unix://` URL, or the path of a socket.

    Nothing is sent yet. Raises StoreError for any other URL.
    """
    url = url_or_socket
    if "://" not in url:
        url = socket_url(url)
    read_again = Retry(ExponentialBackoff(cap=0.5, base=0.05), 3)
    return RedisClients(
        url=url,
        write=_client(url, Retry(NoBackoff(), 0), POOL_SIZE),
        read=_client(url, read_again, POOL_SIZE),
    )


def socket_url(path: str) -> str:
    """Return the URL of a Unix socket, whatever characters its path has."""
    return "unix://" + quote(path)


@contextmanager
def store_errors(what: str) -> Iterator[None]:
    """Translate what Redis and its connection raise into StoreError."""
    try:
        yield
    except (RedisError, OSError) as error:  # TimeoutError is an OSError
        detail = str(error) or type(error).__name__
        raise StoreError(f"Redis could not {what}: {detail}") from error


def _client(url: str, retry: Retry, size: int, **options: int) -> Client:
    try:
        pool = BlockingConnectionPool.from_url(
            url,
            max_connections=size,
            timeout=POOL_WAIT_S,
            protocol=2,
            decode_responses=False,
            socket_timeout=TIMEOUT_S,
            socket_connect_timeout=TIMEOUT_S,
            retry=retry,
            **options,
        )
    except ValueError as error:
        raise StoreError(f"this is no address of a Redis: {error}") from error
    return Redis.from_pool(make_prompt(pool))
