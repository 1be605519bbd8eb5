"""The beginning of an AG-UI WebSocket."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
import websockets
from cutting_proxy import cutting_proxy
from deadlines import scaled
from served import served, until
from working import agent_of


async def read(socket: Any) -> Any:
    """Return the next frame."""
    async with asyncio.timeout(scaled(10)):
        return json.loads(await socket.recv())


async def closed(socket: Any) -> tuple[int, str]:
    """Read until the socket closes, and return why."""
    with pytest.raises(websockets.ConnectionClosed) as end:
        while True:
            await read(socket)
    assert end.value.rcvd is not None
    return end.value.rcvd.code, end.value.rcvd.reason


async def test_an_address_is_refused_though_the_store_is_away(valkey_url: str, prefix: str) -> None:
    """The code says why, if nothing else can."""
    async with cutting_proxy(valkey_url) as proxy:
        async with served(agent_of("x"), proxy.url, prefix) as server:
            proxy.cuts = 1_000_000
            async with server.socket("/agui?dialect=odd") as socket:
                assert await closed(socket) == (1008, "invalid_input")


async def test_subprotocols_are_answered(valkey_url: str, prefix: str) -> None:
    """A browser drops a socket whose offer is not answered."""
    async with served(agent_of("x"), valkey_url, prefix) as server:
        offers: list[Any] = ["other", "backscroll.durable.v1"]
        async with server.socket("/agui?threadId=t", subprotocols=offers) as socket:
            assert socket.subprotocol == "backscroll.durable.v1"
            frames = [await read(socket) for _ in range(2)]
        await until(lambda: server.worker.connections == 0, "the socket is gone")

    assert "chunk" in frames[1]


@pytest.mark.parametrize("query", ["dialect=odd", "offset=x", "max_frame=1", "threadId="])
async def test_a_bad_address_is_refused_by_name(valkey_url: str, prefix: str, query: str) -> None:
    """A wrong parameter is named in one event, then the socket is closed."""
    async with served(agent_of("x"), valkey_url, prefix) as server:
        async with server.socket(f"/agui?{query}") as socket:
            event = await read(socket)
            code, reason = await closed(socket)
        assert server.worker.connections == 0

    assert (event["type"], event["code"]) == ("RUN_ERROR", "invalid_input")
    assert event["message"].startswith(query.split("=")[0])
    assert (code, reason) == (1008, "invalid_input")
