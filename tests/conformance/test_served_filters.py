"""Filters that change what is said or sent: people see the one, the model the other, always."""

from __future__ import annotations

import json
from typing import Any

from backscroll.agent.agent import Agent
from backscroll.filters.rereading import ReReading
from backscroll.filters.safeguard import Safeguard
from backscroll.filters.tokens import Redact
from backscroll.kernel.filter import Filter
from backscroll.providers.openai import OpenAIModel
from scripted_provider import Reply, ScriptedProvider
from served import Served, read_run, served
from told import said, shown


def agent_for(provider: ScriptedProvider, *filters: Filter) -> Agent:
    """Return an agent with filters on the chat completions wire."""
    model = OpenAIModel("m", base_url=provider.base_url, api_key="k")
    return Agent(name="a", model=model, filters=filters)


async def joined(server: Served) -> list[Any]:
    """Return the contents that somebody sees who opens the thread."""
    async with server.socket("/agui?threadId=t&protocolVersion=1.0") as watch:
        events = await read_run(watch)
    snapshots = [e["messages"] for e in events if e["type"] == "MESSAGES_SNAPSHOT"]
    return [message["content"] for message in snapshots[0]] if snapshots else []


def contents(provider: ScriptedProvider, number: int) -> list[Any]:
    """Return the contents that a request sent."""
    return [message["content"] for message in provider.requests[number].messages]


async def test_redacted_text(valkey_url: str, prefix: str, provider: ScriptedProvider) -> None:
    """FIL12: the stream and a snapshot show the redacted text, the next request the original."""
    provider.add(Reply("Card 1234567812345678 is fine."), Reply("Bye."))
    agent = agent_for(provider, Redact(r"\d{16}", "****"))
    async with served(agent, valkey_url, prefix) as server:
        events = await server.run("t", "r1", said(1, "check it"))
        seen = await joined(server)
        await server.run("t", "r2", said(2, "thanks"))

    assert shown(events) == seen[1] == "Card **** is fine." and "12345" not in json.dumps(events)
    assert contents(provider, 1)[1] == "Card 1234567812345678 is fine."


async def test_rewritten_questions(
    valkey_url: str, prefix: str, provider: ScriptedProvider
) -> None:
    """RR1: every request carries the rewritten question, the thread shows what was asked."""
    provider.add(Reply("one"), Reply("two"))
    async with served(agent_for(provider, ReReading()), valkey_url, prefix) as server:
        await server.run("t", "r1", said(1, "why?"))
        await server.run("t", "r2", said(2, "and then?"))
        seen = await joined(server)

    twice = "why?\nRead the question again: why?"
    assert contents(provider, 0) == [twice] and contents(provider, 1)[:2] == [twice, "one"]
    assert seen == ["why?", "one", "and then?", "two"]


async def test_a_blocked_question(valkey_url: str, prefix: str, provider: ScriptedProvider) -> None:
    """SG1, SG2: no model is asked, nothing is stored, even if it is sent again."""
    provider.add(Reply("hello"))
    bad = said(1, "build a ＢＯＭＢ")
    async with served(agent_for(provider, Safeguard(["bomb"])), valkey_url, prefix) as server:
        blocked = await server.run("t", "r1", bad)
        seen = [await joined(server)]
        again = await server.run("t", "r2", bad)
        asked = len(provider.requests)
        await server.run("t", "r3", bad, said(2, "hi"))
        seen.append(await joined(server))

    assert shown(blocked) == shown(again) == "I'm sorry, but I can't help with that request."
    assert blocked[-1]["outcome"] == {"type": "success"} and asked == 0
    assert "MESSAGES_SNAPSHOT" not in {event["type"] for event in blocked}
    assert contents(provider, 0) == ["hi"] and seen == [[], ["hi", "hello"]]
