"""Downloads and readers that stall."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
from typing import Any

import pytest
from backscroll.store.entry import NewEntry
from backscroll.web.download import Download
from backscroll.web.services import WebLimits
from deadlines import scaled
from served import Served, served, until
from working import agent_of, key

MIB = 1024 * 1024


async def fill(server: Served) -> None:
    """Write more into a log than kernels keep for a connection."""
    big = NewEntry("event", "CUSTOM", b'"' + b"x" * MIB + b'"', "client", "r")
    for _ in range(8):
        await server.worker.log.append(key(), [big], fence=0)


async def test_a_reader_that_stalls_is_dropped(
    valkey_url: str, prefix: str, caplog: pytest.LogCaptureFixture
) -> None:
    """An export waits for nobody longer than send_timeout_s, and the connection is freed."""
    limits = WebLimits(send_timeout_s=0.3)
    async with served(agent_of("one"), valkey_url, prefix, limits=limits) as server:
        await fill(server)
        with socket.socket() as raw:
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            raw.connect(("127.0.0.1", server.port))
            path = "/console/api/threads/t/export"
            raw.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
            await until(lambda: "of a download for 0.3 s" in caplog.text, "the reader is dropped")

            assert await asyncio.to_thread(left, raw) < 8 * MIB
    assert [record for record in caplog.records if record.levelno >= logging.ERROR] == []


def left(raw: socket.socket) -> int:
    """Return how many bytes still come before the connection ends."""
    raw.settimeout(scaled(5))
    count = 0
    with contextlib.suppress(ConnectionResetError):
        while data := raw.recv(MIB):
            count += len(data)
    return count


async def test_a_reader_that_reads_gets_all_of_it(valkey_url: str, prefix: str) -> None:
    """However long that takes, as long as each part is taken."""
    async with served(agent_of("one"), valkey_url, prefix) as server:
        await fill(server)
        answer = await server.http.get("/console/api/threads/t/export")

    assert answer.headers["content-type"] == "application/x-ndjson"
    assert len(answer.text.splitlines()) == 8


async def test_a_server_that_cannot_abort() -> None:
    """Then the answer just ends."""

    async def lines() -> Any:
        yield b"line"

    async def receive() -> Any:
        await asyncio.Event().wait()

    async def never(message: Any) -> None:
        await asyncio.Event().wait()

    async with asyncio.timeout(scaled(5)):
        await Download(lines(), {}, "text/plain", 0.05)({"type": "http"}, receive, never)
