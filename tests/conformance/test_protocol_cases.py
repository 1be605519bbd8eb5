"""The acceptance cases of the protocol that are about tools, from a client to a provider."""

from __future__ import annotations

import asyncio
import json
import time
from typing import Any

import pytest
from agui_checker import assert_valid
from backscroll.agent.agent import Agent
from backscroll.kernel.tool import tool
from backscroll.providers.openai import OpenAIModel
from deadlines import scaled
from scripted_provider import Call, Reply, ScriptedProvider
from served import Served, request, served

TAKES_S = 2.0


@tool
async def slow_tool() -> str:
    """Take two seconds."""
    await asyncio.sleep(TAKES_S)
    return "slow"


@tool
def blocking_tool() -> str:
    """Take two seconds without letting go of its thread."""
    time.sleep(TAKES_S)
    return "slow"


@tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def agent_for(provider: ScriptedProvider) -> Agent:
    """Return an agent on the chat completions wire."""
    model = OpenAIModel("m", base_url=provider.base_url, api_key="k")
    return Agent(name="a", model=model, tools=[slow_tool, blocking_tool, add])


async def timed(server: Served) -> list[tuple[float, dict[str, Any]]]:
    """Return the events of a run over a socket with their times of arrival."""
    found: list[tuple[float, dict[str, Any]]] = []
    async with server.socket() as socket, asyncio.timeout(scaled(15)):
        await socket.send(json.dumps(request("t", "r1", "go")))
        while not found or found[-1][1]["type"] not in ("RUN_FINISHED", "RUN_ERROR"):
            event = json.loads(await socket.recv())
            found.append((time.monotonic(), event))
    return found


@pytest.mark.parametrize("name", ["slow_tool", "blocking_tool"])
async def test_tool_events_are_sent_when_they_happen(
    valkey_url: str, prefix: str, provider: ScriptedProvider, name: str
) -> None:
    """protocol-02, EV4: the end of the call 1.5 s before its result, that before the answer."""
    provider.add(Reply("Let me see.", calls=(Call(name),)), Reply("done"))
    async with served(agent_for(provider), valkey_url, prefix) as server:
        found = await timed(server)

    at = {event["type"]: moment for moment, event in found if event["type"].startswith("TOOL")}
    first = next(
        moment
        for moment, event in found
        if event["type"] == "TEXT_MESSAGE_CONTENT" and event["delta"].startswith("done")
    )
    assert at["TOOL_CALL_RESULT"] - at["TOOL_CALL_END"] >= 1.5
    assert at["TOOL_CALL_RESULT"] < first
    assert_valid([event for _, event in found])


@pytest.mark.parametrize("text", ["Checking", ""])
async def test_a_call_names_the_message_that_holds_it(
    valkey_url: str, prefix: str, provider: ScriptedProvider, text: str
) -> None:
    """protocol-03: the parent of a call is its own assistant message, never a later one.

    Where the message has text its START came before; without text the call itself begins it.
    """
    calls = (Call("add", {"a": 1, "b": 2}), Call("add", {"a": 3, "b": 4}))
    provider.add(Reply(text, calls=calls), Reply("Found 3"))
    async with served(agent_for(provider), valkey_url, prefix) as server:
        events = await server.run("t", "r1", "look")
        kept = (await server.get("/console/api/threads/t/messages"))["messages"]

    parents = [e["parentMessageId"] for e in events if e["type"] == "TOOL_CALL_START"]
    holder, last = (m["id"] for m in kept if m["role"] == "assistant")
    assert parents == [holder, holder]
    started = [e["messageId"] for e in events if e["type"] == "TEXT_MESSAGE_START"]
    assert started == ([holder, last] if text else [last])
    kinds = [event["type"] for event in events]
    assert not text or kinds.index("TEXT_MESSAGE_START") < kinds.index("TOOL_CALL_START")
    assert_valid(events)
