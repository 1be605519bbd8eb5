"""Connections that heed a cancellation while they write."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from backscroll.store.connection import RedisClients, connect
from backscroll.store.prompt import PromptConnection, PromptSSLConnection, PromptUnixConnection
from redis.exceptions import TimeoutError as RedisTimeoutError


@pytest.mark.parametrize(
    ("url", "kind"),
    [
        ("redis://localhost:1", PromptConnection),
        ("rediss://localhost:1", PromptSSLConnection),
        ("unix:///x", PromptUnixConnection),
    ],
)
def test_every_kind_of_connection_is_prompt(url: str, kind: type) -> None:
    """Whatever the address, writes are bounded by our timeout."""
    for client in (connect(url).write, connect(url).read, connect(url).dedicated()):
        assert client.connection_pool.connection_class is kind


async def test_no_cancellation_is_lost(clients: RedisClients, prefix: str) -> None:
    """A task that is cancelled at any step of a command ends cancelled, and nothing else does."""

    async def work() -> None:
        while True:
            await clients.write.set(prefix, "x")

    for steps in range(40):
        task = asyncio.ensure_future(work())
        for _ in range(steps):
            await asyncio.sleep(0)
        task.cancel()
        done, _ = await asyncio.wait([task], timeout=5)

        assert done and task.cancelled()


async def test_a_command_makes_no_task(clients: RedisClients) -> None:
    """What is written at once needs nobody to wait for it."""
    await clients.write.ping()
    made: list[Any] = []
    loop = asyncio.get_running_loop()
    before = loop.get_task_factory()
    loop.set_task_factory(lambda loop, coro, **rest: made.append(coro) or asyncio.Task(coro))  # type: ignore[func-returns-value,arg-type]

    await clients.write.ping()
    loop.set_task_factory(before)

    assert made == []


async def test_a_peer_that_does_not_read_is_given_up(tmp_path: Path) -> None:
    """A write that does not end is an error of redis-py, and the connection is closed."""
    accepted: list[asyncio.StreamWriter] = []

    async def greet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        accepted.append(writer)
        while len(data := await reader.read(4096)) < 4096:
            writer.write(b"+OK\r\n" * data.count(b"*"))
        writer.transport.pause_reading()  # type: ignore[attr-defined]

    server = await asyncio.start_unix_server(greet, str(tmp_path / "s"))
    connection = PromptUnixConnection(path=str(tmp_path / "s"), socket_timeout=0.5, protocol=2)
    await connection.connect()
    with pytest.raises(RedisTimeoutError):
        await connection.send_packed_command(b"x" * 50_000_000, check_health=False)

    assert connection.socket_timeout == 0.5 and not connection.is_connected
    server.close()
    for writer in accepted:
        writer.close()
        await writer.wait_closed()
