"""MCP servers for tests: a program over stdio or HTTP, and a scripted one of the older kind."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from processes import PROGRAMS, HttpProcess, free_port

PROGRAM = [sys.executable, str(PROGRAMS / "mcp_server.py")]


class McpProcess(HttpProcess):
    """The program as a server of streamable HTTP; use it as a context manager."""

    ready_within_s = 30.0

    def __init__(self, port: int | None = None) -> None:
        """Choose a free port; nothing runs before `start`."""
        port = port or free_port()
        super().__init__([*PROGRAM, "--port", str(port)], port, env={})

    @property
    def endpoint(self) -> str:
        """The URL a client is given."""
        return f"{self.url}/mcp"


@dataclass
class OldServer:
    """A server with sessions, as before 2026, which answers calls as a test tells it.

    `answers` are taken in turn by calls of its tool `ask`: a status without a body, or a result;
    with a member `code` it is an error.
    """

    answers: list[int | dict[str, Any]] = field(default_factory=list)
    sessions: int = 0
    headers: list[str] = field(default_factory=list)
    url: str = ""

    def answer(self, message: dict[str, Any]) -> tuple[int, dict[str, Any] | None]:
        """Return the status and the result for one message."""
        method = message["method"]
        if "id" not in message:
            return 202, None
        if method == "initialize":
            self.sessions += 1
            info = {"name": "old", "version": "1"}
            asked = message["params"]["protocolVersion"]
            return 200, {"protocolVersion": asked, "capabilities": {}, "serverInfo": info}
        if method == "tools/list":
            tool = {"name": "ask", "inputSchema": {"type": "object"}}
            return 200, {"tools": [tool]}
        if method != "tools/call":
            return 404, None
        found = self.answers.pop(0)
        return (found, None) if isinstance(found, int) else (200, found)


@asynccontextmanager
async def old_server(*answers: int | dict[str, Any]) -> AsyncIterator[OldServer]:
    """Serve on loopback while the block runs."""
    script = OldServer(list(answers))
    tasks: set[asyncio.Task[None]] = set()

    def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        tasks.add(asyncio.ensure_future(_serve(reader, writer, script)))

    server = await asyncio.start_server(accept, "127.0.0.1")
    script.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/mcp"
    try:
        yield script
    finally:
        server.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _serve(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, script: OldServer
) -> None:
    try:
        while head := (await reader.readuntil(b"\r\n\r\n")).decode():
            script.headers.append(head)
            body = await reader.readexactly(_length(head))
            message = json.loads(body) if body else {"method": "none"}
            status, result = script.answer(message)
            writer.write(_response(status, result, message.get("id"), script.sessions))
    except asyncio.IncompleteReadError:
        pass
    finally:
        writer.close()


def _length(head: str) -> int:
    lines = [line.partition(":") for line in head.lower().split("\r\n")]
    return int(next((value for name, _, value in lines if name == "content-length"), "0"))


def _response(status: int, result: dict[str, Any] | None, id: Any, session: int) -> bytes:
    kind = "error" if result and "code" in result else "result"
    text = "" if result is None else json.dumps({"jsonrpc": "2.0", "id": id, kind: result})
    lines = [f"HTTP/1.1 {status} -", f"mcp-session-id: {session}", f"content-length: {len(text)}"]
    lines += ["content-type: application/json"] if text else []
    return ("\r\n".join(lines) + "\r\n\r\n" + text).encode()
