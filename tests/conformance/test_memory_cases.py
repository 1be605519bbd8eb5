"""The acceptance cases of the history, played from a client to a strict provider and back."""

from __future__ import annotations

from typing import Any

from backscroll.agent.agent import Agent
from backscroll.conversation.memory import InMemoryChatMemory
from backscroll.conversation.windowed import WindowedChatMemory
from backscroll.kernel.tool import tool
from backscroll.providers.openai import OpenAIModel
from scripted_provider import Call, Recorded, Reply, ScriptedProvider
from served import Served, served


@tool
def look(at: str) -> str:
    """Look at something."""
    return f"saw {at}"


@tool(return_direct=True)
def ticket() -> str:
    """Open a ticket."""
    return "Ticket T-4711 is open."


def agent_for(provider: ScriptedProvider, **fields: Any) -> Agent:
    """Return an agent on the chat completions wire."""
    model = OpenAIModel("m", base_url=provider.base_url, api_key="k")
    return Agent(name="a", model=model, tools=[look, ticket], **fields)


def said(n: int, text: str) -> dict[str, Any]:
    """Return the n-th message of a person."""
    return {"id": f"u{n}", "role": "user", "content": text}


def line(message: dict[str, Any]) -> str:
    """Return a message of a request or of the store in one word."""
    calls = ",".join(call["id"] for call in message.get("tool_calls", ()))
    if message["role"] == "tool":
        return f"t({message['tool_call_id']})"
    return f"a({calls})" if calls else str(message["content"])


def view(record: Recorded) -> list[str]:
    """Return what a request sent, a word per message."""
    return [line(message) for message in record.messages]


async def stored(server: Served) -> list[str]:
    """Return the stored history, a word per message."""
    found = await server.get("/console/api/threads/t/messages?fields=full")
    return [line(entry["message"]) for entry in found["messages"]]


async def test_a_window_never_begins_with_an_orphan(
    valkey_url: str, prefix: str, provider: ScriptedProvider
) -> None:
    """memory-07: each request of a window of 4 has whole groups and the newest question whole."""
    one, two, three = (Call("look", {"at": name}, name) for name in ("c1", "c2", "c3"))
    provider.add(
        Reply(calls=(one,)), Reply("a1"), Reply(calls=(two, three)), Reply("a2"), Reply("a3")
    )
    agent = agent_for(provider, memory=WindowedChatMemory(InMemoryChatMemory(), 4))
    async with served(agent, valkey_url, prefix) as server:
        for n in (1, 2, 3):
            await server.run("t", f"r{n}", said(n, f"u{n}"))
        kept = await stored(server)

    assert provider.problems == []
    assert [view(record) for record in provider.requests] == [
        ["u1"],
        ["u1", "a(c1)", "t(c1)"],
        ["a(c1)", "t(c1)", "a1", "u2"],
        ["u2", "a(c2,c3)", "t(c2)", "t(c3)"],
        ["u3"],
    ]
    assert kept == [
        "u1", "a(c1)", "t(c1)", "a1", "u2", "a(c2,c3)", "t(c2)", "t(c3)", "a2", "u3", "a3",
    ]  # fmt: skip


async def test_a_group_longer_than_the_window_stays_whole(
    valkey_url: str, prefix: str, provider: ScriptedProvider
) -> None:
    """memory-07: five results in one batch: question, calls and all results are sent."""
    names = [f"c{n}" for n in range(5)]
    provider.add(Reply(calls=tuple(Call("look", {"at": n}, n) for n in names)), Reply("done"))
    agent = agent_for(provider, memory=WindowedChatMemory(InMemoryChatMemory(), 4))
    async with served(agent, valkey_url, prefix) as server:
        await server.run("t", "r1", said(1, "u1"))

    expected = ["u1", f"a({','.join(names)})", *(f"t({name})" for name in names)]
    assert view(provider.requests[1]) == expected and provider.problems == []


async def test_the_history_holds_the_tool_traffic(
    valkey_url: str, prefix: str, provider: ScriptedProvider
) -> None:
    """memory-08: calls and results of both rounds, in order, also when another worker reads."""
    first, second = (Call("look", {"at": name}, name) for name in ("c1", "c2"))
    provider.add(Reply(calls=(first,)), Reply(calls=(second,)), Reply("a1"))
    async with served(agent_for(provider), valkey_url, prefix) as server:
        await server.run("t", "r1", said(1, "u1"))
    async with served(agent_for(provider), valkey_url, prefix) as other:
        kept = await stored(other)
        provider.add(Reply("a2"))
        await other.run("t", "r2", said(2, "u2"))

    assert kept == ["u1", "a(c1)", "t(c1)", "a(c2)", "t(c2)", "a1"]
    assert view(provider.requests[-1]) == [*kept, "u2"] and provider.problems == []


async def test_a_direct_answer_is_in_the_next_request(
    valkey_url: str, prefix: str, provider: ScriptedProvider
) -> None:
    """memory-08: after a return-direct turn call and result are stored, and sent next time."""
    provider.add(Reply(calls=(Call("ticket", {}, "c1"),)), Reply("It is T-4711."))
    async with served(agent_for(provider), valkey_url, prefix) as server:
        await server.run("t", "r1", said(1, "u1"))
        kept = await stored(server)
        await server.run("t", "r2", said(2, "what was the ticket number?"))

    assert kept == ["u1", "a(c1)", "t(c1)"] and len(provider.requests) == 2
    sent = provider.requests[1].messages
    assert [line(message) for message in sent[:3]] == kept and provider.problems == []
    assert sent[2]["content"] == "Ticket T-4711 is open."
