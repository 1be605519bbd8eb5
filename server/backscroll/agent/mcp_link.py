"""A link to an MCP server: connected when it is needed, and anew after it was lost."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from types import TracebackType
from typing import Any, Self

from mcp import Client, MCPError
from mcp.types import (
    CONNECTION_CLOSED,
    INTERNAL_ERROR,
    INVALID_REQUEST,
    REQUEST_TIMEOUT,
    CallToolResult,
)
from mcp.types import Tool as McpTool

from backscroll.agent.mcp_address import Address
from backscroll.kernel.errors import ToolError, redact

CLOSE_S = 10.0
PAGES = 100

# How the mcp package words two answers that it makes itself from a status of HTTP.
FORGOTTEN = (INVALID_REQUEST, "Session terminated")
HTTP_REFUSED = (INTERNAL_ERROR, "Server returned an error response")


class McpLink:
    """Calls the tools of one server; entering it starts its task, leaving it ends it.

    A call that is under way when the server is lost fails: it may have taken effect. The next one
    connects anew. Failures are raised as ToolError with the kind that routes them.
    """

    def __init__(self, address: Address, connect_timeout_s: float) -> None:
        self._address, self._connect_timeout_s = address, connect_timeout_s
        self._client: asyncio.Future[Client] | None = None
        self._wake, self._end = asyncio.Event(), asyncio.Event()
        self._is_closing = False

    async def __aenter__(self) -> Self:
        """Start the task that holds connections; it connects when somebody asks."""
        self._task = asyncio.create_task(self._run())
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Disconnect; a process that does not end by itself is ended."""
        self._is_closing = True
        self._wake.set()
        self._end.set()
        if self._client is not None and not self._client.done():
            self._task.cancel()
        try:
            await asyncio.wait([self._task], timeout=CLOSE_S)
        finally:
            self._task.cancel()
        await asyncio.wait([self._task], timeout=CLOSE_S)

    async def tools(self) -> list[McpTool]:
        """Return the tools the server offers; raises ToolError when it cannot be asked."""
        client = await self._connected()
        found: list[McpTool] = []
        cursor: str | None = None
        try:
            async with asyncio.timeout(self._connect_timeout_s):
                for _ in range(PAGES):
                    page = await client.list_tools(cursor=cursor)
                    found += page.tools
                    cursor = page.next_cursor
                    if cursor is None:
                        break
        except TimeoutError as error:
            raise self._unreachable(error) from error
        except MCPError as error:
            raise self._failure(error, client) from error
        return found

    async def call(self, name: str, args: dict[str, Any]) -> CallToolResult:
        """Call one tool; it takes as long as it takes, so the caller bounds it."""
        client = await self._connected()
        try:
            return await self._asked(client, name, args)
        except MCPError as error:
            if (error.code, error.message) != FORGOTTEN:
                raise self._failure(error, client) from error
        # The server has restarted and knows our session no more: the call was not carried out.
        self._lose(client)
        client = await self._connected()
        try:
            return await self._asked(client, name, args)
        except MCPError as error:
            raise self._failure(error, client) from error

    async def _asked(self, client: Client, name: str, args: dict[str, Any]) -> CallToolResult:
        try:
            return await client.call_tool(name, args)
        except RuntimeError as error:
            if self._is_current(client):
                raise
            raise self._lost() from error

    async def _connected(self) -> Client:
        """Return a client of the present connection, or of the next one."""
        if self._is_closing:
            raise ToolError(f"the link to the MCP server {self._address} is closed", "environment")
        if self._client is None:
            self._client = asyncio.get_running_loop().create_future()
            self._client.add_done_callback(_look_at)
            self._wake.set()
        return await asyncio.shield(self._client)

    async def _run(self) -> None:
        """Hold one connection at a time, until the link is left."""
        try:
            while not self._is_closing:
                if self._client is None:
                    await self._wake.wait()
                    self._wake.clear()
                else:
                    await self._hold(self._client)
        finally:
            self._is_closing = True
            if self._client is not None and not self._client.done():
                self._client.set_exception(self._lost())

    async def _hold(self, found: asyncio.Future[Client]) -> None:
        """Connect, tell who waits for it, and stay connected until the server is lost."""
        self._end = end = asyncio.Event()
        try:
            async with AsyncExitStack() as stack:
                way = _watched(self._address.transport(), end.set)
                async with asyncio.timeout(self._connect_timeout_s):
                    client = await stack.enter_async_context(Client(way))
                if not found.done():
                    found.set_result(client)
                await end.wait()
                self._forget(found)
        except Exception as error:
            # However a connection ends, the next call makes another one.
            if not found.done():
                found.set_exception(self._unreachable(error))
        finally:
            self._forget(found)

    def _forget(self, found: asyncio.Future[Client]) -> None:
        if self._client is found and found.done():
            self._client = None

    def _is_current(self, client: Client) -> bool:
        found = self._client
        return found is not None and found.done() and found.result() is client

    def _lose(self, client: Client) -> None:
        if self._is_current(client):
            self._client = None
            self._end.set()

    def _failure(self, error: MCPError, client: Client) -> ToolError:
        if error.code == CONNECTION_CLOSED:
            self._lose(client)
            return self._lost()
        message = redact(error.message, self._address.secrets)
        if error.code == REQUEST_TIMEOUT:
            return ToolError(message, "transient")
        if (error.code, error.message) == HTTP_REFUSED:
            return ToolError(f"the MCP server {self._address} refused the request", "environment")
        return ToolError(message)

    def _lost(self) -> ToolError:
        message = f"the MCP server {self._address} was lost; the call may have taken effect"
        return ToolError(message, "environment")

    def _unreachable(self, error: BaseException) -> ToolError:
        reason = redact(_reason(error), self._address.secrets)
        message = f"the MCP server {self._address} cannot be reached: {reason}"
        return ToolError(message, "environment")


class _Watched:
    """A stream of messages that tells when it has ended."""

    def __init__(self, inner: Any, on_end: Callable[[], None]) -> None:
        self._inner, self._on_end = inner, on_end  # Any: a stream private to the mcp package

    @property
    def last_context(self) -> Any:  # Any: the context in which a message was sent, if known
        return getattr(self._inner, "last_context", None)

    async def receive(self) -> Any:
        return await self._inner.receive()

    async def aclose(self) -> None:
        await self._inner.aclose()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Any:
        try:
            return await self._inner.__anext__()
        except StopAsyncIteration:
            self._on_end()
            raise

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()


@asynccontextmanager
async def _watched(
    transport: AbstractAsyncContextManager[Any], on_end: Callable[[], None]
) -> AsyncIterator[Any]:
    async with transport as (read, write):
        yield _Watched(read, on_end), write


def _look_at(found: asyncio.Future[Client]) -> None:
    """Take note of a failure that nobody waits for any longer."""
    if not found.cancelled():
        found.exception()


def _reason(error: BaseException) -> str:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    if isinstance(error, TimeoutError) and not str(error):
        return "it did not answer in time"
    return str(error) or type(error).__name__
