"""The writing end of a connection."""

from __future__ import annotations

import asyncio
import json
import logging
import socket as socket_module
from typing import Any

import pytest
from backscroll.web.services import WebLimits
from backscroll.web.writer import PeerGone, SocketWriter
from played_model import Said
from served import request, served, until
from working import agent_of, until_ended


class Peer:
    """A peer that takes frames, or does not."""

    def __init__(self, *, reads: bool = True, error: Exception | None = None) -> None:
        self.sent: list[dict[str, Any]] = []
        self.reads, self.error, self.aborted = reads, error, 0

    async def send(self, message: Any) -> None:
        """Take one message."""
        if self.error is not None:
            raise self.error
        if not self.reads:
            await asyncio.Event().wait()
        await asyncio.sleep(0)
        self.sent.append(message)

    def abort(self) -> None:
        """Count how often the connection is dropped."""
        self.aborted += 1

    def writer(self) -> SocketWriter:
        """Return a writer to this peer."""
        return SocketWriter(self.send, self.abort, 0.05)

    @property
    def texts(self) -> list[str]:
        """The frames that arrived."""
        return [message["text"] for message in self.sent if "text" in message]


async def test_frames_that_belong_together_stay_together() -> None:
    """A prelude is contiguous, whoever else writes meanwhile."""
    peer = Peer()
    writer = peer.writer()

    await asyncio.gather(
        writer.texts(f"a{n}" for n in range(5)),
        writer.text("ping"),
        writer.texts(f"b{n}" for n in range(5)),
    )

    assert peer.texts == [*(f"a{n}" for n in range(5)), "ping", *(f"b{n}" for n in range(5))]


async def test_the_close_code_is_sent_once_and_is_last() -> None:
    """Nothing is written after it."""
    peer = Peer()
    writer = peer.writer()

    await writer.close(1013, "resync")
    await writer.close(1011)
    with pytest.raises(PeerGone):
        await writer.text("late")

    assert peer.sent == [{"type": "websocket.close", "code": 1013, "reason": "resync"}]


async def test_a_peer_that_does_not_read_is_dropped_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """It costs one frame, and is aborted, since a close would wait behind what is unread."""
    peer = Peer(reads=False)
    writer = peer.writer()

    for _ in range(2):
        with pytest.raises(PeerGone):
            await writer.text("x")
    await writer.close(4408)

    assert (peer.aborted, writer.is_closed) == (1, True)
    assert len(caplog.records) == 1


async def test_a_close_that_is_not_taken_drops_too() -> None:
    """It bounds the wait, and frees the connection."""
    peer = Peer(reads=False)

    await peer.writer().close(1000)

    assert peer.aborted == 1


@pytest.mark.parametrize("error", [OSError("reset"), RuntimeError("closed already")])
async def test_a_peer_that_left(error: Exception, caplog: pytest.LogCaptureFixture) -> None:
    """What the server raises for a closed socket is no fault."""
    writer = Peer(error=error).writer()

    with pytest.raises(PeerGone):
        await writer.text("x")

    assert writer.is_closed and caplog.records == []


async def test_a_server_that_cannot_abort() -> None:
    """Without the extension the timeout alone bounds the wait."""
    writer = SocketWriter(Peer(reads=False).send, None, 0.05)

    with pytest.raises(PeerGone):
        await writer.text("x")


async def test_gone_means_closed() -> None:
    """After the peer has said goodbye nothing is tried."""
    peer = Peer()
    writer = peer.writer()

    writer.gone()
    await writer.close(1000)

    assert peer.sent == []


async def test_a_real_reader_that_stops_is_dropped(
    valkey_url: str, prefix: str, caplog: pytest.LogCaptureFixture
) -> None:
    """A stalled socket costs one frame and ends after the send timeout; its run goes on."""
    caplog.set_level(logging.WARNING)
    limits = WebLimits(send_timeout_s=0.5)
    large = Said(" ".join(["x" * 60_000] * 150))
    async with served(agent_of(large, "next"), valkey_url, prefix, limits=limits) as server:
        socket = await server.socket(max_size=None, max_queue=1)
        raw = socket.transport.get_extra_info("socket")
        raw.setsockopt(socket_module.SOL_SOCKET, socket_module.SO_RCVBUF, 4096)
        await socket.send(json.dumps(request("t", "r", "go")))
        socket.transport.pause_reading()
        await until_ended(server.worker, "r")
        await until(lambda: server.worker.connections == 0, "the reader is dropped", 10)
        after = await server.run("t", "r2", "go", "on")
        socket.transport.abort()

    assert after[-1]["type"] == "RUN_FINISHED"
    assert [r.message for r in caplog.records if "took no frame" in r.message] != []
