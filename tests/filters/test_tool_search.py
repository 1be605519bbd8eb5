"""ToolSearch shows few tools, and the tool that finds the others."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest
from agent.agents import agent_of, model_of
from backscroll.agent.answers import Approve
from backscroll.agent.pause import InMemoryPauseStore
from backscroll.filters.tool_index import KeywordIndex
from backscroll.filters.tool_search import SLOT, ToolSearch
from backscroll.kernel.errors import AssemblyError
from backscroll.kernel.model import ModelRequest, Named
from backscroll.kernel.texts import Texts
from backscroll.kernel.tool import Tool, ToolSpec
from played_model import call, calls


async def _run(args: Any, context: Any) -> str:
    return "done"


def make(name: str, description: str, **options: Any) -> Tool:
    """Return a tool without arguments."""
    schema = {"type": "object", "properties": {}}
    return Tool.from_schema(name, description, schema, _run, **options)


TOOLS = [
    make("read_file", "Read a file", tags={"files"}),
    make("send_mail", "Send a mail", sensitive=True),
    make("get_weather", "Tell the weather"),
]


def search(query: str, id: str = "s") -> Any:
    """Return a call of the search tool."""
    return call("search_tools", {"query": query}, id)


def shown(request: ModelRequest) -> list[str]:
    """Return the names of the tools a request shows."""
    return [tool.name for tool in request.tools]


async def test_what_is_shown() -> None:
    """TS5: at first the search tool alone; then what was found, in the catalog's order."""
    agent = agent_of("ok", "ok", "ok", tools=TOOLS, tool_search=ToolSearch())
    always = agent_of("ok", tools=TOOLS, tool_search=ToolSearch(always=["get_weather"]))

    await agent.invoke("hi")
    await agent.invoke("hi", context={SLOT: ["get_weather", "read_file", "gone"]})
    await agent.invoke("hi", tool_choice=Named("send_mail"))
    await always.invoke("hi")

    first, second, third = (shown(request) for request in model_of(agent).requests)
    assert first == ["search_tools"]
    assert second == ["search_tools", "read_file", "get_weather"]
    assert third == ["search_tools", "send_mail"]
    assert shown(model_of(always).requests[0]) == ["search_tools", "get_weather"]


async def test_searching() -> None:
    """TS7: search, then the next request shows the tool, and it is called."""
    agent = agent_of(
        calls(search("weather")), calls(call("get_weather")), "ok",
        tools=TOOLS, tool_search=ToolSearch(),
    )  # fmt: skip

    result = await agent.invoke("hi", conversation_id="t")

    assert [record.content for record in result.records] == [
        "Found 1 tools. They can be called from your next step:\n- get_weather: Tell the weather",
        "done",
    ]
    assert shown(model_of(agent).requests[1]) == ["search_tools", "get_weather"]
    assert result.context[SLOT] == ["get_weather"]


async def test_searches_add_up() -> None:
    """TS6: two searches in one batch and over rounds unite; a miss changes nothing."""
    both = calls(search("weather", "1"), search("file", "2"))
    agent = agent_of(
        both, calls(search("nothing at all")), calls(search(" ")), calls(search("mail")), "ok",
        tools=TOOLS, tool_search=ToolSearch(),
    )  # fmt: skip

    result = await agent.invoke("hi")

    assert result.context[SLOT] == ["get_weather", "read_file", "send_mail"]
    missed = [record.content for record in result.records[2:4]]
    assert missed[0] == (
        'No tool matches "nothing at all". Try other words, or answer without a tool.'
    )
    assert missed[1].startswith('No tool matches " "')
    assert shown(model_of(agent).requests[3]) == ["search_tools", "read_file", "get_weather"]


async def test_tools_that_are_not_shown_may_be_called() -> None:
    """What is shown narrows nothing of what may run."""
    agent = agent_of(calls(call("get_weather")), "ok", tools=TOOLS, tool_search=ToolSearch())

    result = await agent.invoke("hi")

    assert result.records[0].content == "done"


async def test_tags() -> None:
    """TS7: other tags make another catalog and another index; the search is always there."""
    rebuilt: list[list[str]] = []

    class Counting(KeywordIndex):
        def rebuild(self, tools: Sequence[ToolSpec]) -> None:
            rebuilt.append([tool.name for tool in tools])
            super().rebuild(tools)

    script = [calls(search("file")), "ok"] * 3
    agent = agent_of(*script, tools=TOOLS, tool_search=ToolSearch(Counting()))

    await agent.invoke("hi", tags={"files"})
    await agent.invoke("hi", tags={"files"})
    await agent.invoke("hi")

    names = [tool.name for tool in TOOLS]
    assert rebuilt == [["read_file"], names]
    assert shown(model_of(agent).requests[0]) == ["search_tools"]


async def test_discoveries_survive_a_pause() -> None:
    """TS7: after the resume the request shows what was found before."""
    agent = agent_of(
        calls(search("mail")), calls(call("send_mail", id="m")), "ok",
        tools=TOOLS, tool_search=ToolSearch(), pauses=InMemoryPauseStore(),
    )  # fmt: skip

    await agent.invoke("hi", conversation_id="t")
    result = await agent.resume({"m": Approve()}, conversation_id="t")

    assert result.text == "ok"
    assert shown(model_of(agent).requests[2]) == ["search_tools", "send_mail"]


async def test_no_tools_no_search() -> None:
    """A request without tools stays as it is; before any call nothing can be found."""
    finder = ToolSearch()
    agent = agent_of(calls(search("x")), "ok", tool_search=finder)

    result = await agent.invoke("hi")

    assert shown(model_of(agent).requests[0]) == ["search_tools"]
    assert str(result.records[0].content).startswith("No tool matches")


async def test_texts_and_the_next_request() -> None:
    """TXT2: the description is the agent's text; a dry run shows what the next call would."""
    texts = Texts(search_description="Look here.")
    agent = agent_of("ok", tools=TOOLS, tool_search=ToolSearch(), texts=texts)

    await agent.invoke("hi", conversation_id="t")
    following = await agent.next_request("t", {SLOT: ["read_file"]})

    assert model_of(agent).requests[0].tools[0].description == "Look here."
    assert [tool.name for tool in following.tools] == ["search_tools", "read_file"]


async def test_fifty_tools() -> None:
    """Two of fifty large tools are found and called; what is sent of tools falls by 70 %."""
    schema = {
        "type": "object",
        "properties": {f"p{n}": {"type": "string", "description": "word " * 20} for n in range(8)},
    }
    many = [Tool.from_schema(f"tool_{n}", f"Do thing {n}", schema, _run) for n in range(48)]
    script = [calls(search("mail", "1"), search("weather", "2")), calls(call("get_weather")), "ok"]
    tools = [*many, *TOOLS[1:]]

    async def cost(**fields: Any) -> int:
        agent = agent_of(*script, tools=tools, sensitive_tools="run", **fields)
        await agent.invoke("hi")
        requests = model_of(agent).requests
        return sum(len(json.dumps([t.schema for t in r.tools])) for r in requests)

    assert await cost(tool_search=ToolSearch()) < 0.3 * await cost()


@pytest.mark.parametrize("wrong", [{"limit": 0}, {"tool_name": "search tools"}])
def test_wrong_options(wrong: Any) -> None:
    """Mistakes are raised when the filter is made."""
    with pytest.raises(AssemblyError):
        ToolSearch(**wrong)


async def test_a_tool_the_agent_adds_itself_is_never_hidden() -> None:
    """RCL: a tool that appears in mid-conversation breaks the provider's cache."""
    recall = make("recall", "Look up earlier messages")
    agent = agent_of("hi", tools=[*TOOLS, recall], tool_search=ToolSearch())
    await agent.invoke("hello")
    assert shown(model_of(agent).requests[0]) == ["search_tools", "recall"]
