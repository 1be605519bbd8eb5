"""A link to an MCP server: it is lost and made anew, and says what went wrong."""

from __future__ import annotations

import asyncio
import sys
from typing import Any

import pytest
from backscroll.agent.mcp_address import Endpoint, Program
from backscroll.agent.mcp_link import McpLink
from backscroll.kernel.errors import ToolError
from mcp_servers import PROGRAM, McpProcess, old_server

CONNECT_S = 30.0
DONE = {"content": [{"type": "text", "text": "done"}]}


def program() -> McpLink:
    """Return a link to the program over stdio."""
    return McpLink(Program(tuple(PROGRAM)), CONNECT_S)


def endpoint(url: str, **headers: str) -> McpLink:
    """Return a link over HTTP."""
    return McpLink(Endpoint(url, headers, CONNECT_S, 60.0), CONNECT_S)


async def said(link: McpLink, name: str, **args: Any) -> str:
    """Call a tool and return the text of its result."""
    block: Any = (await link.call(name, args)).content[0]
    return str(block.text)


async def failure(link: McpLink, name: str, **args: Any) -> ToolError:
    """Call a tool and return how it fails."""
    with pytest.raises(ToolError) as caught:
        await link.call(name, args)
    return caught.value


async def test_a_process_that_ends() -> None:
    """The call under way fails, the next one starts the server again."""
    async with program() as link:
        first = await said(link, "pid")
        lost = await failure(link, "die")
        second = await said(link, "pid")

    assert lost.kind == "environment" and "may have taken effect" in str(lost)
    assert first != second


async def test_calls_at_once_share_a_connection() -> None:
    """Many callers wait for one connection; all calls under way fail with it."""
    async with program() as link:
        pids = await asyncio.gather(*(said(link, "pid") for _ in range(5)))
        slow = [asyncio.create_task(failure(link, "slow")) for _ in range(3)]
        await failure(link, "die")
        lost = await asyncio.gather(*slow)

    assert len(set(pids)) == 1
    assert {error.kind for error in lost} == {"environment"}


async def test_what_the_server_refuses() -> None:
    """An error of the protocol is for the model to read; one of time may pass."""
    answers = [{"code": -32602, "message": "no"}, {"code": -32001, "message": "too slow"}]

    async with old_server(*answers) as server, endpoint(server.url) as link:
        refused, late = await failure(link, "ask"), await failure(link, "ask")

    assert (refused.kind, str(refused)) == ("semantic", "no")
    assert (late.kind, str(late)) == ("transient", "too slow")


async def test_leaving_ends_calls() -> None:
    """What is under way when the link is left fails; later calls say that it is closed."""
    async with program() as link:
        await said(link, "pid")
        slow = asyncio.create_task(failure(link, "slow"))
        await asyncio.sleep(0)

    assert (await slow).kind == "environment"
    assert "is closed" in str(await failure(link, "pid"))


@pytest.mark.parametrize(
    ("command", "words"),
    [(("/no/such/program",), "No such file"), ((sys.executable, "-c", "pass"), "closed")],
)
async def test_a_program_that_is_none(command: tuple[str, ...], words: str) -> None:
    """Each try says why the server cannot be reached."""
    async with McpLink(Program(command), CONNECT_S) as link:
        for _ in range(2):
            with pytest.raises(ToolError, match=f"cannot be reached: .*{words}") as caught:
                await link.tools()

    assert caught.value.kind == "environment"


async def test_a_program_that_says_nothing() -> None:
    """Connecting takes no longer than it may, and can be left at any time."""
    silent = Program((sys.executable, "-c", "import sys; sys.stdin.read()"))

    async with McpLink(silent, 0.5) as link:
        with pytest.raises(ToolError, match="did not answer in time"):
            await link.tools()
    async with McpLink(silent, CONNECT_S) as link:
        asking = asyncio.create_task(failure(link, "pid"))
        await asyncio.sleep(0)

    assert (await asking).kind == "environment"


async def test_an_endpoint_that_restarts() -> None:
    """While it is away calls fail; once it is back they work."""
    with McpProcess() as server:
        async with endpoint(server.endpoint) as link:
            first = await said(link, "pid")
            server.kill()
            away = [await failure(link, "pid"), await failure(link, "pid")]
            server.start()
            second = await said(link, "pid")

    assert [error.kind for error in away] == ["environment", "environment"]
    assert "cannot be reached" in str(away[1])
    assert first != second


async def test_a_session_that_is_forgotten() -> None:
    """The call was not carried out, so it is made again in a new session."""
    async with old_server(404, DONE, 404, 404) as server, endpoint(server.url) as link:
        assert await said(link, "ask") == "done"
        assert server.sessions == 2
        assert (await failure(link, "ask")).kind == "semantic"


async def test_an_endpoint_that_refuses() -> None:
    """A status of HTTP is trouble of the environment; headers are sent and never shown."""
    async with old_server(500) as server:
        url = server.url.replace("http://", "http://me:secret@") + "?token=secret"
        async with endpoint(url, authentication="Bearer secret") as link:
            refused = await failure(link, "ask")

    assert refused.kind == "environment" and "secret" not in str(refused)
    assert any("Bearer secret" in head for head in server.headers)


async def test_pages_of_tools() -> None:
    """All tools are listed, with what the server says of them."""
    async with old_server() as server, endpoint(server.url) as link:
        assert [tool.name for tool in await link.tools()] == ["ask"]
