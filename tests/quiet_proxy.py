"""A TCP proxy as others are: it drops whom it hears nothing of, and goes to who answers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from cutting_proxy import listening, pump


class QuietProxy:
    """Forwards to the first backend that answers; cuts what the server is silent on too long.

    `heard` has what the server sent on each connection, in order of connecting.
    """

    def __init__(self, ports: Sequence[int], silence_s: float) -> None:
        """Keep where to forward to, and how long a server may say nothing."""
        self._ports, self._silence_s = ports, silence_s
        self._server: asyncio.Server | None = None
        self.heard: list[bytearray] = []
        self.dropped = 0

    @property
    def port(self) -> int:
        """The port to connect to."""
        assert self._server is not None
        port: int = self._server.sockets[0].getsockname()[1]
        return port

    async def _connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        for port in self._ports:
            try:
                return await asyncio.open_connection("127.0.0.1", port)
            except OSError:
                continue
        raise OSError("no backend answers")

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        up_reader, up_writer = await self._connect()
        heard = bytearray()
        self.heard.append(heard)
        requests = asyncio.create_task(pump(reader, up_writer))
        try:
            while True:
                async with asyncio.timeout(self._silence_s):
                    data = await up_reader.read(65536)
                if not data:
                    break
                heard += data
                writer.write(data)
                await writer.drain()
        except TimeoutError:
            self.dropped += 1
        except ConnectionError:
            pass
        finally:
            requests.cancel()
            for end in (up_writer, writer):
                end.close()
            await asyncio.gather(requests, return_exceptions=True)


@asynccontextmanager
async def quiet_proxy(*ports: int, silence_s: float = 60) -> AsyncIterator[QuietProxy]:
    """Run a proxy for as long as the block lasts."""
    proxy = QuietProxy(ports, silence_s)
    async with listening(proxy._serve) as proxy._server:
        yield proxy
