"""One worker's HTTP server: dropping a peer, draining, listening."""

from __future__ import annotations

import asyncio
import signal
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest
import websockets
from backscroll.web.serving import (
    DrainingServer,
    ServingOptions,
    abort_of,
    listen,
    make_server,
)
from deadlines import scaled
from served import until

OPTIONS = ServingOptions(1000, 5, False, "warning")


async def lifespan(receive: Any, send: Any) -> None:
    """Take part in the life of the server."""
    for kind in ("startup", "shutdown"):
        await receive()
        await send({"type": f"lifespan.{kind}.complete"})


@asynccontextmanager
async def serving(
    app: Any, drain: Any = None, options: ServingOptions = OPTIONS
) -> AsyncIterator[tuple[DrainingServer, int, asyncio.Future[None]]]:
    """Serve an application on a free port."""

    async def nothing() -> None:
        return None

    async def whole(scope: Any, receive: Any, send: Any) -> None:
        is_life = scope["type"] == "lifespan"
        await (lifespan(receive, send) if is_life else app(scope, receive, send))

    server = make_server(whole, options, drain or nothing)
    listener = listen("127.0.0.1", 0)
    task = asyncio.ensure_future(server.serve(sockets=[listener]))
    await until(lambda: server.started, "the server has started")
    try:
        yield server, listener.getsockname()[1], task
    finally:
        server.should_exit = True
        await asyncio.wait([task], timeout=scaled(10))
        listener.close()


async def test_a_peer_can_be_dropped(valkey_url: str) -> None:
    """The abort in the scope frees a connection at once, on a socket and on a request."""

    async def app(scope: Any, receive: Any, send: Any) -> None:
        abort = abort_of(scope)
        assert abort is not None
        if scope["type"] == "websocket":
            await receive()
            await send({"type": "websocket.accept"})
        abort()
        assert (await receive())["type"] in ("websocket.disconnect", "http.request")

    async with serving(app) as (_, port, _task):
        async with websockets.connect(f"ws://127.0.0.1:{port}/") as peer:
            with pytest.raises(websockets.ConnectionClosed) as closed:
                await peer.recv()
        async with httpx.AsyncClient(trust_env=False) as http:
            with pytest.raises(httpx.RemoteProtocolError):
                await http.get(f"http://127.0.0.1:{port}/")

    assert closed.value.rcvd is None
    assert abort_of({"type": "http"}) is None


async def test_the_first_signal_drains_and_the_second_leaves() -> None:
    """What goes on may end before the server does; whoever insists is heard."""
    drained = asyncio.Event()
    draining = asyncio.Event()

    async def drain() -> None:
        draining.set()
        await drained.wait()

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 204, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    async with serving(app, drain) as (server, port, task):
        server.handle_exit(signal.SIGTERM, None)
        async with asyncio.timeout(scaled(5)):
            await draining.wait()
        async with httpx.AsyncClient(trust_env=False) as http:
            answer = await http.get(f"http://127.0.0.1:{port}/")
        before = server.should_exit
        drained.set()
        async with asyncio.timeout(scaled(5)):
            await asyncio.wait([task])

    assert (answer.status_code, before) == (204, False) and task.done()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
async def test_a_second_signal_does_not_wait(number: signal.Signals) -> None:
    """It stops at once, and Ctrl-C twice closes what is open without waiting."""
    forever = asyncio.Event()

    async def drain() -> None:
        await forever.wait()

    async def app(scope: Any, receive: Any, send: Any) -> None:
        raise AssertionError

    async with serving(app, drain) as (server, _, task):
        server.handle_exit(number, None)
        await asyncio.sleep(0)
        server.handle_exit(number, None)
        async with asyncio.timeout(scaled(5)):
            await asyncio.wait([task])
        assert server.should_exit and server.force_exit == (number == signal.SIGINT)
        forever.set()
        await asyncio.sleep(0)


async def test_a_drain_that_fails_does_not_keep_the_server(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Whatever happens, a signal ends it."""

    async def drain() -> None:
        raise ValueError

    async def app(scope: Any, receive: Any, send: Any) -> None:
        raise AssertionError

    async with serving(app, drain) as (server, _, task):
        server.handle_exit(signal.SIGTERM, None)
        async with asyncio.timeout(scaled(5)):
            await asyncio.wait([task])

    assert "could not drain" in caplog.text


def test_a_signal_before_the_start_ends_it() -> None:
    """There is nothing to drain yet."""
    server = make_server(lambda *_: None, OPTIONS, lambda: None)  # type: ignore[arg-type,return-value]

    server.handle_exit(signal.SIGTERM, None)

    assert server.should_exit and not server.force_exit


def test_the_server_is_told_everything() -> None:
    """Limits and times are ours, not uvicorn's defaults."""
    options = ServingOptions(1234, 7.5, True, "debug")
    config = make_server(lambda *_: None, options, lambda: None).config  # type: ignore[arg-type,return-value]

    assert (config.ws_max_size, config.ws_ping_interval) == (1234, 7.5)
    assert config.ws_per_message_deflate is True
    assert config.timeout_graceful_shutdown == 2 and config.access_log is False
    assert not config.proxy_headers


def test_listening() -> None:
    """A dead peer's is dropped, children inherit the socket, a taken port is told."""
    with listen("127.0.0.1", 0) as first:
        port = first.getsockname()[1]
        assert first.get_inheritable()
        if hasattr(socket, "TCP_USER_TIMEOUT"):
            option = first.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT)
            assert option == 30_000
        with pytest.raises(OSError, match="in use"):
            listen("127.0.0.1", port)


def test_listening_on_the_other_family() -> None:
    """An address with colons is of version 6."""
    try:
        listener = listen("::1", 0)
    except OSError as error:
        pytest.skip(f"no IPv6 here: {error}")
    with listener:
        assert listener.family is socket.AF_INET6
