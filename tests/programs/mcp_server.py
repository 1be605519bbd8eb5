"""An MCP server for tests, made with the official package: stdio, or HTTP with `--port`."""

from __future__ import annotations

import argparse
import asyncio
import os
from typing import Any

from mcp.server.mcpserver import Image, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

server = MCPServer("for-tests")
PIXEL = bytes.fromhex("89504e470d0a1a0a")


@server.tool()
def add(a: int, b: int = 1) -> int:
    """Add two numbers."""
    return a + b


@server.tool(name="files.list")
def list_files(folder: str) -> list[str]:
    """List the files of a folder."""
    return [f"{folder}/a", f"{folder}/b"]


@server.tool()
def picture() -> Any:
    """Draw a picture."""
    return ["a pixel", Image(data=PIXEL, format="png")]


@server.tool()
def broken(why: str) -> str:
    """Fail."""
    raise ToolError(why)


@server.tool()
async def slow() -> str:
    """Never end."""
    await asyncio.Event().wait()
    return "never"


@server.tool()
def pid() -> int:
    """Tell the process id."""
    return os.getpid()


@server.tool()
def die() -> str:
    """End the server in the middle of the call."""
    os._exit(1)


@server.tool()
def environment(name: str) -> str:
    """Tell a variable of the environment and the folder."""
    return f"{os.environ.get(name)} in {os.getcwd()}"


@server.custom_route("/readyz", methods=["GET"])
async def ready(request: Request) -> Response:
    """Say that the server runs."""
    return PlainTextResponse("ready")


def main() -> None:
    """Serve over stdin and stdout, or over HTTP."""
    options = argparse.ArgumentParser()
    options.add_argument("--port", type=int)
    port = options.parse_args().port
    if port is None:
        server.run("stdio")
    else:
        server.run("streamable-http", host="127.0.0.1", port=port)


if __name__ == "__main__":
    main()
