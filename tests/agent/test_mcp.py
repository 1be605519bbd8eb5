"""The tools of MCP servers are tools like any other."""

from __future__ import annotations

import base64
import sys
from pathlib import Path
from typing import Any

import pytest
from agent.agents import agent_of
from backscroll.agent.answers import Approve
from backscroll.agent.mcp import mcp_tools
from backscroll.kernel.client import ChatClient
from backscroll.kernel.content import FilePart, TextPart
from backscroll.kernel.errors import AssemblyError, BackscrollError, ToolError
from backscroll.kernel.request import ToolResponse
from mcp_servers import PROGRAM, McpProcess, old_server
from played_model import call, calls


def kind_of(response: ToolResponse) -> str | None:
    """Return the kind of a response's failure."""
    return response.error.kind if response.error is not None else None


async def test_tools_of_a_program() -> None:
    """Names, descriptions and schemas are the server's; results and failures find their form."""
    async with mcp_tools(command=PROGRAM) as tools:
        client = ChatClient(tools=tools)
        add = client.tools.get("add")
        three = await client.call_tool("add", {"a": 2}, {})
        files = await client.call_tool("files_list", {"folder": "x"}, {})
        picture = await client.call_tool("picture", {}, {})
        broken = await client.call_tool("broken", {"why": "too hot"}, {})
        wrong = await client.call_tool("add", {"a": "x"}, {})

    assert add is not None and add.info.description == "Add two numbers."
    assert add.info.schema["required"] == ["a"] and add.info.timeout_s == 60
    assert (three.content, files.content) == ("3", "x/a\nx/b")
    data = base64.b64encode(bytes.fromhex("89504e470d0a1a0a")).decode()
    assert picture.content == (TextPart("a pixel"), FilePart("image/png", data=data))
    assert broken.content.endswith("too hot") and kind_of(broken) == "semantic"
    assert "was not executed" in wrong.content


async def test_the_environment_of_a_program(tmp_path: Path) -> None:
    """A program gets the variables and the folder it is given, and no secret of ours."""
    given = {"command": PROGRAM, "env": {"GREETING": "hello"}, "cwd": tmp_path}
    async with mcp_tools(**given) as tools:
        client = ChatClient(tools=tools)
        mine = await client.call_tool("environment", {"name": "GREETING"}, {})
        other = await client.call_tool("environment", {"name": "OPENAI_API_KEY"}, {})

    assert mine.content == f"hello in {tmp_path}"
    assert other.content == f"None in {tmp_path}"


async def test_time_and_loss() -> None:
    """What takes too long is transient, a server that is lost is the environment's trouble."""
    async with mcp_tools(command=PROGRAM, timeout_s=10) as tools:
        client = ChatClient(tools=tools)
        lost = await client.call_tool("die", {}, {})
    async with mcp_tools(command=PROGRAM, timeout_s=0.2, only=["slow"]) as tools:
        late = await ChatClient(tools=tools).call_tool("slow", {}, {})

    assert kind_of(lost) == "environment"
    assert kind_of(late) == "transient" and "timed out after 0.2 s" in late.content


async def test_tools_of_an_endpoint() -> None:
    """An agent calls the tools of two servers; a prefix keeps their names apart."""
    with McpProcess() as one, McpProcess() as two:
        async with (
            mcp_tools(url=one.endpoint, prefix="one", only=["add"]) as first,
            mcp_tools(url=two.endpoint, prefix="two", only=["add"], sensitive=True) as second,
        ):
            both = calls(call("one_add", {"a": 1}, "1"), call("two_add", {"a": 2}, "2"))
            agent = agent_of(both, "ok", tools=[*first, *second])
            paused = await agent.invoke("add", conversation_id="t")
            result = await agent.resume({"2": Approve()}, conversation_id="t", pause=paused.pause)

    assert paused.pause is not None and [item.tool for item in paused.pause.items] == ["two_add"]
    assert [record.content for record in result.records] == ["2", "3"]


async def test_a_tool_with_a_wrong_schema() -> None:
    """Options are checked like those of any tool."""
    async with old_server() as server:
        with pytest.raises(AssemblyError, match="timeout_s"):
            async with mcp_tools(url=server.url, timeout_s=-1):
                pass


@pytest.mark.parametrize(
    "wrong",
    [
        {},
        {"command": "server"},
        {"command": ["a"], "url": "http://b"},
        {"url": "http://b", "env": {"A": "b"}},
        {"command": ["a"], "headers": {"a": "b"}},
        {"command": ["a"], "connect_timeout_s": 0},
    ],
)
async def test_wrong_options(wrong: dict[str, Any]) -> None:
    """Mistakes are raised before anything is started."""
    with pytest.raises(AssemblyError) as caught:
        async with mcp_tools(**wrong):
            pass

    assert caught.value.kind == "invalid_option"


async def test_servers_and_tools_that_are_not_there() -> None:
    """It says what cannot be reached, and which tools there are."""
    with pytest.raises(ToolError, match="cannot be reached"):
        async with mcp_tools(url="http://127.0.0.1:9/mcp"):
            pass
    async with old_server() as server:
        with pytest.raises(AssemblyError, match=r"\(ask\), got 'tell'"):
            async with mcp_tools(url=server.url, only=["ask", "tell"]):
                pass


async def test_without_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the extra a sentence says what to install."""
    monkeypatch.setitem(sys.modules, "mcp", None)
    monkeypatch.delitem(sys.modules, "backscroll.agent.mcp_address", raising=False)
    monkeypatch.delitem(sys.modules, "backscroll.agent.mcp_link", raising=False)

    with pytest.raises(BackscrollError, match="MCP tools need the extra `mcp`"):
        async with mcp_tools(command=["x"]):
            pass
