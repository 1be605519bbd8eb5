"""Connections: what they speak, how they fail, and what they never do by themselves."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from backscroll.kernel.errors import StoreError
from backscroll.store.connection import RedisClients, connect, socket_url, store_errors
from redis.asyncio.connection import UnixDomainSocketConnection
from redis.exceptions import ResponseError


async def test_answers_are_bytes_in_the_older_shapes(clients: RedisClients, prefix: str) -> None:
    """Bodies are bytes, and every server speaks protocol 2."""
    await clients.write.hset(prefix, mapping={"a": "ü"})

    assert await clients.read.hgetall(prefix) == {b"a": "ü".encode()}
    assert clients.write.connection_pool.connection_kwargs["protocol"] == 2


async def test_the_hiredis_parser_is_used(clients: RedisClients) -> None:
    """Redis-py picks it by itself when it is installed, and it must be."""
    await clients.ping()

    (connection,) = clients.read.connection_pool._available_connections
    assert type(connection._parser).__name__ == "_AsyncHiredisParser"


@pytest.mark.parametrize("kind", ["write", "dedicated"])
async def test_repeats_nothing_by_itself(clients: RedisClients, kind: str) -> None:
    """What a lost answer means is decided by our code, for writes and subscriptions."""
    client = clients.dedicated() if kind == "dedicated" else clients.write

    assert client.connection_pool.connection_kwargs["retry"].get_retries() == 0
    await client.aclose()


async def test_a_dedicated_client_has_one_connection(clients: RedisClients) -> None:
    """A dead peer is noticed by its health check."""
    client = clients.dedicated()

    assert client.connection_pool.max_connections == 1
    assert client.connection_pool.connection_kwargs["health_check_interval"] > 0
    await client.aclose()


@pytest.mark.parametrize("client", ["write", "read"])
def test_every_wait_has_a_timeout(client: str) -> None:
    """Connecting, answers and waiting for a free connection are bounded."""
    pool = getattr(connect("redis://localhost:1"), client).connection_pool

    assert pool.timeout > 0
    assert pool.connection_kwargs["socket_timeout"] > 0
    assert pool.connection_kwargs["socket_connect_timeout"] > 0


@pytest.mark.parametrize("name", ["a b.sock", "会话.sock", "a%20b?c#d.sock"])
async def test_a_socket_is_named_by_its_path_or_url(
    name: str, tmp_path: Path, clients: RedisClients
) -> None:
    """Any character may be in the path."""
    for address in (str(tmp_path / name), socket_url(str(tmp_path / name))):
        pool = connect(address).read.connection_pool

        assert issubclass(pool.connection_class, UnixDomainSocketConnection)
        assert pool.connection_kwargs["path"] == str(tmp_path / name)


async def test_says_when_nobody_answers(tmp_path: Path) -> None:
    """A missing server is a StoreError with a sentence."""
    clients = connect(str(tmp_path / "none"))

    with pytest.raises(StoreError, match="Redis could not ping: .*none"):
        await clients.ping()


@pytest.mark.parametrize("url", ["http://localhost", "redis://localhost?db=x", "redis://h:port"])
def test_refuses_what_is_no_address(url: str) -> None:
    """A wrong URL is refused at once, not at the first command."""
    with pytest.raises(StoreError, match="no address of a Redis"):
        connect(url)


@pytest.mark.parametrize("error", [ResponseError("WRONGTYPE"), TimeoutError(), OSError("gone")])
def test_translates_what_redis_raises(error: Exception) -> None:
    """Callers see StoreError, with what was wanted and what went wrong."""
    with pytest.raises(StoreError, match="Redis could not read it: (WRONGTYPE|TimeoutError|gone)"):
        with store_errors("read it"):
            raise error


def test_translates_nothing_else() -> None:
    """Our own errors and cancellation pass as they are."""
    for error in (ValueError("x"), asyncio.CancelledError()):
        with pytest.raises(type(error)), store_errors("read it"):
            raise error
