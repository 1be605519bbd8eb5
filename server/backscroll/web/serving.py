"""One worker's HTTP server: uvicorn with a way to drop a peer and a way to drain."""

from __future__ import annotations

import asyncio
import logging
import signal
import socket
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from types import FrameType
from typing import Any

import uvicorn
from starlette.types import ASGIApp, Scope
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

from backscroll.web.header_log import hide_secret_headers

logger = logging.getLogger(__name__)

CLOSE_S = 2
USER_TIMEOUT_MS = 30_000
BACKLOG = 2048
ABORT_EXTENSION = "backscroll.abort"


class AbortableProtocol(WebSocketsSansIOProtocol):
    """uvicorn's WebSocket protocol, with a way to drop a peer that does not read.

    The application finds `abort()` in the scope: it frees the connection at once, where a close
    would wait behind bytes that the peer never takes.
    """

    async def run_asgi(self) -> None:
        """Run the application with the abort in its scope."""
        extensions: Any = self.scope.setdefault("extensions", {})  # Any: ASGI leaves it open
        extensions[ABORT_EXTENSION] = {"abort": self.transport.abort}
        await super().run_asgi()


class AbortableHttp(HttpToolsProtocol):
    """uvicorn's HTTP protocol, with the same way to drop a peer."""

    def on_message_begin(self) -> None:
        """Begin a request with the abort in its scope."""
        super().on_message_begin()
        scope: Any = self.scope  # Any: ASGI leaves extensions open
        scope["extensions"] = {ABORT_EXTENSION: {"abort": self.transport.abort}}


def abort_of(scope: Scope) -> Callable[[], None] | None:
    """Return what drops a connection at once, where the server offers it."""
    found: Callable[[], None] | None = (
        scope.get("extensions", {}).get(ABORT_EXTENSION, {}).get("abort")
    )
    return found


@dataclass(frozen=True, slots=True)
class ServingOptions:
    """What the HTTP server needs to know."""

    max_input_bytes: int
    keepalive_s: float
    compression: bool
    log_level: str


class DrainingServer(uvicorn.Server):
    """First signal: drain, then stop. Second signal: stop now."""

    def __init__(self, config: uvicorn.Config, drain: Callable[[], Awaitable[None]]) -> None:
        super().__init__(config)
        self._drain = drain
        self._draining: asyncio.Task[None] | None = None
        self._signalled = False
        self._loop: asyncio.AbstractEventLoop | None = None

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start, and remember the loop for signals."""
        self._loop = asyncio.get_running_loop()
        await super().startup(sockets)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Begin to drain on the first signal, leave on the second."""
        if self._signalled or self._loop is None:
            self.should_exit = True
            self.force_exit = self._signalled and sig == signal.SIGINT
            return
        self._signalled = True
        self._loop.call_soon_threadsafe(self._begin)

    def _begin(self) -> None:
        self._draining = asyncio.ensure_future(self._drain_and_stop())

    async def _drain_and_stop(self) -> None:
        try:
            await self._drain()
        except Exception:
            logger.exception("the worker could not drain")
        finally:
            self.should_exit = True


def listen(host: str, port: int) -> socket.socket:
    """Return a listening socket; raises OSError when the address cannot be had."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if hasattr(socket, "TCP_USER_TIMEOUT"):
            # A net below the send timeout: a vanished peer's connection ends by itself.
            listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, USER_TIMEOUT_MS)
        listener.bind((host, port))
        listener.listen(BACKLOG)
        listener.set_inheritable(True)
    except OSError:
        listener.close()
        raise
    return listener


def make_server(
    app: ASGIApp, options: ServingOptions, drain: Callable[[], Awaitable[None]]
) -> DrainingServer:
    """Return the server for one worker; run it with `serve(sockets=[listener])`."""
    hide_secret_headers()
    config = uvicorn.Config(
        app,
        loop="auto",
        http=AbortableHttp,
        ws=AbortableProtocol,
        ws_max_size=options.max_input_bytes,
        ws_ping_interval=options.keepalive_s,
        ws_ping_timeout=20.0,
        ws_per_message_deflate=options.compression,
        lifespan="on",
        log_config=None,
        # uvicorn tells of every start and connection at level info; we do not.
        log_level="debug" if options.log_level == "debug" else "warning",
        access_log=False,
        proxy_headers=False,
        server_header=False,
        timeout_keep_alive=30,
        # Runs have had their time; what is left are peers that do not read or do not answer.
        timeout_graceful_shutdown=CLOSE_S,
    )
    return DrainingServer(config, drain)
