"""A client of the wire: it speaks AG-UI over a WebSocket and keeps every frame it was sent."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import Callable
from types import TracebackType
from typing import Any, Self

import websockets
from deadlines import scaled

Frame = dict[str, Any]
TERMINAL = ("RUN_FINISHED", "RUN_ERROR")


class WireClient:
    """One socket, read in the background with the library's default limits.

    `frames` is everything that came, `code` and `reason` are those of the close, once it came.
    """

    def __init__(self, ws_url: str, query: str = "", **options: Any) -> None:
        """Keep where to connect to, under `/agui`."""
        self._url, self._options = f"{ws_url}/agui{query}", options
        self.frames: list[Frame] = []
        self.code: int | None = None
        self.reason = ""
        self._news = asyncio.Event()

    async def __aenter__(self) -> Self:
        """Connect and begin to read."""
        self.socket = await websockets.connect(self._url, **self._options)
        self._reading = asyncio.ensure_future(self._read())
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Leave; say what came when the test has failed."""
        await self.socket.close()
        await self._reading
        if error is not None:
            error.add_note(f"--- {self._url}: {self.code} {self.reason}\n{self.frames[-20:]}")

    async def _read(self) -> None:
        try:
            async for frame in self.socket:
                self.frames.append(json.loads(frame))
                self._news.set()
        except websockets.ConnectionClosed:
            pass
        self.code, self.reason = self.socket.close_code, self.socket.close_reason or ""
        self._news.set()

    @property
    def events(self) -> list[Frame]:
        """The AG-UI events, out of their envelopes; notices are left out."""
        bare = (frame.get("chunk", frame) for frame in self.frames)
        return [event for event in bare if event["type"].isupper()]

    @property
    def cursors(self) -> list[str]:
        """The cursors of the durable dialect, in order of arrival."""
        return [frame["id"] for frame in self.frames if "chunk" in frame]

    def types(self) -> list[str]:
        """Return the type of every event."""
        return [event["type"] for event in self.events]

    def ended(self) -> int:
        """Return how many terminal events came."""
        return sum(kind in TERMINAL for kind in self.types())

    def saw(self, kind: str, **members: Any) -> bool:
        """Say whether an event of a type with these members came."""
        return any(
            event["type"] == kind and members.items() <= event.items() for event in self.events
        )

    async def send(self, frame: Frame) -> None:
        """Send one frame."""
        await self.socket.send(json.dumps(frame, ensure_ascii=False))

    async def until(self, condition: Callable[[], bool], what: str, within_s: float = 10) -> None:
        """Return as soon as the frames that came fulfil a condition."""
        try:
            async with asyncio.timeout(scaled(within_s)):
                while not condition():
                    assert self.code is None, f"closed with {self.code} {self.reason} before {what}"
                    self._news.clear()
                    await self._news.wait()
        except TimeoutError:
            raise AssertionError(f"expected within {scaled(within_s):g} s: {what}") from None

    async def until_ended(self, runs: int = 1, within_s: float = 10) -> None:
        """Return when so many runs have ended."""
        await self.until(lambda: self.ended() >= runs, f"{runs} terminal events", within_s)

    async def until_saw(self, kind: str, within_s: float = 10, **members: Any) -> None:
        """Return when such an event has come."""
        await self.until(lambda: self.saw(kind, **members), f"{kind} {members}", within_s)

    async def until_closed(self, within_s: float = 10) -> None:
        """Return when the socket was closed by the other side."""
        async with asyncio.timeout(scaled(within_s)):
            await asyncio.shield(self._reading)


def ask(thread: str, run: str, *texts: str, **members: Any) -> Frame:
    """Return a request with new user messages, whose ids come from the run's."""
    messages = [
        {"id": f"{run}-u{n}", "role": "user", "content": text} for n, text in enumerate(texts, 1)
    ]
    whole = {"tools": [], "context": [], "state": {}, "forwardedProps": {}}
    named = {"threadId": thread, "runId": run, "messages": messages, "protocolVersion": "1.0"}
    return {**whole, **named, **members}


def deaf_socket(port: int, query: str = "", room: int | None = None) -> socket.socket:
    """Open a WebSocket that never reads, not even its close; `room` is what its kernel takes."""
    raw = socket.socket()
    if room is not None:
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, room)
    raw.connect(("127.0.0.1", port))
    lines = (
        f"GET /agui{query} HTTP/1.1",
        f"Host: 127.0.0.1:{port}",
        "Connection: Upgrade",
        "Upgrade: websocket",
        "Sec-WebSocket-Version: 13",
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
    )
    raw.sendall("\r\n".join((*lines, "", "")).encode())
    return raw
