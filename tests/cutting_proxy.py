"""A TCP proxy in front of a Redis that cuts connections after a command ran, before its answer."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from urllib.parse import unquote, urlparse


async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Forward bytes until their end."""
    while data := await reader.read(65536):
        writer.write(data)
        await writer.drain()
    writer.close()


Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def listening(serve: Serve) -> AsyncIterator[asyncio.Server]:
    """Serve connections on the loopback; none of them outlives the block."""
    serving: set[asyncio.Task[None]] = set()

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        serving.add(task)
        try:
            # asyncio would report a cancelled handler as a failure.
            with contextlib.suppress(asyncio.CancelledError):
                await serve(reader, writer)
        finally:
            serving.discard(task)

    server = await asyncio.start_server(handle, "127.0.0.1", 0)
    try:
        yield server
    finally:
        server.close()
        for task in list(serving):
            task.cancel()
        await asyncio.gather(*serving, return_exceptions=True)
        await server.wait_closed()


class CuttingProxy:
    """Forwards bytes; swallows as many answers as it is told, with their connections."""

    def __init__(self, upstream_url: str) -> None:
        """Keep where to forward to: the URL of a Unix socket."""
        self._path = unquote(urlparse(upstream_url).path)
        self._server: asyncio.Server | None = None
        self.cuts = 0
        self.answers_swallowed = 0

    @property
    def url(self) -> str:
        """The address to connect to."""
        assert self._server is not None
        return f"redis://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        up_reader, up_writer = await asyncio.open_unix_connection(self._path)
        requests = asyncio.create_task(pump(reader, up_writer))
        try:
            while answer := await up_reader.read(65536):
                if self.cuts:
                    self.cuts -= 1
                    self.answers_swallowed += 1
                    break
                writer.write(answer)
                await writer.drain()
        except ConnectionError:
            pass
        finally:
            requests.cancel()
            for end in (up_writer, writer):
                end.close()
            await asyncio.gather(requests, return_exceptions=True)


@asynccontextmanager
async def cutting_proxy(upstream_url: str) -> AsyncIterator[CuttingProxy]:
    """Run a proxy for as long as the block lasts."""
    proxy = CuttingProxy(upstream_url)
    async with listening(proxy._serve) as proxy._server:
        yield proxy
