"""How Redis is doing."""

from __future__ import annotations

from pathlib import Path

import pytest
from backscroll.kernel.errors import StoreError
from backscroll.store.connection import RedisClients, connect
from backscroll.store.health import redis_health
from backscroll.store.valkey_process import binary
from redis_server import running_server


async def test_says_how_redis_is_doing(clients: RedisClients) -> None:
    """Round trip, memory, and that the embedded Valkey keeps an append-only file."""
    health = await redis_health(clients)

    assert 0 < health["ping_ms"] < 5000
    assert health["bytes"] > 100_000
    assert health["persistence"] == "append-only file"


async def test_a_redis_without_an_append_only_file() -> None:
    """It is told apart, since an operator wants to know."""
    with running_server(str(binary())) as url:
        clients = connect(url)

        assert (await redis_health(clients))["persistence"] == "snapshots or none"
        await clients.close()


async def test_says_when_redis_is_away(tmp_path: Path) -> None:
    """It is a StoreError."""
    with pytest.raises(StoreError, match="say how it is doing"):
        await redis_health(connect(str(tmp_path / "none")))
