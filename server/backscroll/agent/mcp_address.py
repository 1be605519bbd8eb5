"""Addresses of MCP servers: where one is, how it is reached, and what of it must not be shown."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Protocol

import httpx2
from mcp import StdioServerParameters, stdio_client
from mcp.client import Transport
from mcp.client.streamable_http import streamable_http_client

STREAM_READ_S = 300.0


class Address(Protocol):
    """Where a server is, and how it is reached; as text it shows no secret."""

    @property
    def secrets(self) -> tuple[str, ...]:
        """What must not be shown."""
        ...

    def transport(self) -> Transport:
        """Return a fresh way to the server."""
        ...


@dataclass(frozen=True, slots=True)
class Program:
    """A server that is started as a process and spoken to over its stdin and stdout."""

    command: tuple[str, ...]
    env: Mapping[str, str] | None = None
    cwd: str | None = None

    def __str__(self) -> str:
        """Name the program, without its arguments."""
        return self.command[0]

    @property
    def secrets(self) -> tuple[str, ...]:
        """Nothing: what a program says of itself is its own business."""
        return ()

    def transport(self) -> Transport:
        """Return what starts the process; what it prints on stderr goes to ours."""
        program, *args = self.command
        env = dict(self.env) if self.env is not None else None
        parameters = StdioServerParameters(command=program, args=args, env=env, cwd=self.cwd)
        return stdio_client(parameters, errlog=sys.__stderr__ or sys.stderr)


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A server that is spoken to over streamable HTTP."""

    url: str
    headers: Mapping[str, str]
    connect_timeout_s: float
    read_timeout_s: float

    def __str__(self) -> str:
        """Name scheme, host and path, without anything secret."""
        url = httpx2.URL(self.url)
        return str(url.copy_with(userinfo=b"", query=None, fragment=None))

    @property
    def secrets(self) -> tuple[str, ...]:
        """The values of the headers, and what follows a scheme in them."""
        values = list(self.headers.values())
        return (*values, *(value.rpartition(" ")[2] for value in values))

    def transport(self) -> Transport:
        """Return a client for the endpoint."""
        return self._opened()

    @asynccontextmanager
    async def _opened(self) -> AsyncIterator[Any]:  # Any: the two streams of the mcp package
        read_s = max(STREAM_READ_S, self.read_timeout_s)
        timeout = httpx2.Timeout(self.connect_timeout_s, read=read_s)
        async with (
            httpx2.AsyncClient(headers=dict(self.headers), timeout=timeout) as http,
            streamable_http_client(self.url, http_client=http) as streams,
        ):
            yield streams
