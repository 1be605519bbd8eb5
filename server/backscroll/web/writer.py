"""The writing end of one connection: one writer at a time, each write with a deadline."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable

from starlette.types import Send

logger = logging.getLogger(__name__)


class PeerGone(Exception):
    """The other side left, or does not read; nothing more can be written."""


class SocketWriter:
    """Writes frames to a WebSocket; a peer that takes none in time is dropped, once."""

    def __init__(self, send: Send, abort: Callable[[], None] | None, timeout_s: float) -> None:
        self._send, self._abort, self._timeout_s = send, abort, timeout_s
        self._turn = asyncio.Lock()
        self.is_closed = False

    async def text(self, frame: str) -> None:
        """Write one frame; raises PeerGone."""
        async with self._turn:
            await self._write(frame)

    async def texts(self, frames: Iterable[str]) -> None:
        """Write frames with nothing between them; raises PeerGone."""
        async with self._turn:
            for frame in frames:
                await self._write(frame)

    async def close(self, code: int, reason: str = "") -> None:
        """Send the close code, once; nothing is written afterwards."""
        async with self._turn:
            if self.is_closed:
                return
            self.is_closed = True
            try:
                async with asyncio.timeout(self._timeout_s):
                    await self._send({"type": "websocket.close", "code": code, "reason": reason})
            except (TimeoutError, OSError, RuntimeError):
                self._drop()

    def gone(self) -> None:
        """Note that the peer has left."""
        self.is_closed = True

    async def _write(self, frame: str) -> None:
        if self.is_closed:
            raise PeerGone
        try:
            async with asyncio.timeout(self._timeout_s):
                await self._send({"type": "websocket.send", "text": frame})
        except TimeoutError as error:
            self.is_closed = True
            logger.warning("a reader took no frame for %s s and was dropped", self._timeout_s)
            self._drop()
            raise PeerGone from error
        except (OSError, RuntimeError) as error:
            # The server raises these for a socket that has been closed meanwhile.
            self.is_closed = True
            raise PeerGone from error

    def _drop(self) -> None:
        if self._abort is not None:
            self._abort()
