"""The tools of MCP servers, for an agent like any other tools."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from backscroll.agent.mcp_results import content_of, description_of, offered_names
from backscroll.kernel.errors import AssemblyError, BackscrollError
from backscroll.kernel.tool import Tool, ToolContext, ToolResult

if TYPE_CHECKING:
    from mcp.types import Tool as McpTool

    from backscroll.agent.mcp_address import Address
    from backscroll.agent.mcp_link import McpLink

TIMEOUT_S = 60.0
CONNECT_TIMEOUT_S = 30.0


@asynccontextmanager
async def mcp_tools(
    *,
    command: Sequence[str] = (),
    env: Mapping[str, str] | None = None,
    cwd: str | os.PathLike[str] | None = None,
    url: str = "",
    headers: Mapping[str, str] | None = None,
    prefix: str = "",
    only: Collection[str] | None = None,
    timeout_s: float = TIMEOUT_S,
    connect_timeout_s: float = CONNECT_TIMEOUT_S,
    **options: Any,  # Any: the options of `tool`
) -> AsyncIterator[list[Tool]]:
    """Connect to an MCP server and give its tools; they work until the block is left.

    `command` starts a server (with `env` and `cwd`), `url` names one that runs (with `headers`).
    `prefix` goes before each name, `only` chooses by the server's names; `options` hold for all
    tools. Raises ToolError when the server cannot be reached, and what `Tool.from_schema` raises.
    Needs the extra `mcp`.
    """
    address = _address(
        command, env, cwd, url, headers, timeout_s=timeout_s, connect_timeout_s=connect_timeout_s
    )
    from backscroll.agent.mcp_link import McpLink

    async with McpLink(address, connect_timeout_s) as link:
        chosen = _chosen(await link.tools(), only)
        names = offered_names((tool.name for tool in chosen), prefix)
        options = {"timeout_s": timeout_s, **options}
        yield [_tool(link, tool, name, options) for tool, name in zip(chosen, names, strict=True)]


def _address(
    command: Sequence[str],
    env: Mapping[str, str] | None,
    cwd: str | os.PathLike[str] | None,
    url: str,
    headers: Mapping[str, str] | None,
    *,
    timeout_s: float,
    connect_timeout_s: float,
) -> Address:
    if isinstance(command, str) or bool(command) == bool(url):
        raise _invalid("command", "a list of words in command, or a url; one of the two")
    if (url and (env or cwd)) or (command and headers):
        raise _invalid("command", "env and cwd with a command, headers with a url")
    if not connect_timeout_s > 0:
        raise _invalid("connect_timeout_s", "a positive number")
    try:
        from backscroll.agent.mcp_address import Endpoint, Program
    except ModuleNotFoundError as error:
        message = f"MCP tools need the extra `mcp` (pip install 'backscroll[mcp]'): {error}"
        raise BackscrollError(message) from error
    if url:
        return Endpoint(url, dict(headers or {}), connect_timeout_s, timeout_s)
    return Program(tuple(command), env, os.fspath(cwd) if cwd is not None else None)


def _chosen(tools: Sequence[McpTool], only: Collection[str] | None) -> list[McpTool]:
    if only is None:
        return list(tools)
    names = [tool.name for tool in tools]
    missing = [name for name in only if name not in names]
    if missing:
        found = ", ".join(names) or "none"
        raise _invalid("only", f"names of the server's tools ({found}), got {missing[0]!r}")
    return [tool for tool in tools if tool.name in only]


def _tool(link: McpLink, tool: McpTool, name: str, options: Mapping[str, Any]) -> Tool:
    async def call(args: dict[str, Any], context: ToolContext) -> ToolResult:
        result = await link.call(tool.name, args)
        return ToolResult(content_of(result), is_error=result.is_error)

    return Tool.from_schema(name, description_of(tool), tool.input_schema, call, **options)


def _invalid(name: str, expected: str) -> AssemblyError:
    return AssemblyError("invalid_option", f"{name}: expected {expected}", name)
