"""What a page and an operator see of the runs of a served agent."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from backscroll.kernel.message import Message
from backscroll.store.chat_memory import RedisChatMemory
from backscroll.store.connection import connect
from backscroll.store.keys import Keys
from backscroll.store.thread_log import ThreadLog
from scripted_provider import Reply, ScriptedProvider
from served import Served, request, sse_events


def said(n: int, text: str) -> dict[str, Any]:
    """Return the n-th message of a person."""
    return {"id": f"u{n}", "role": "user", "content": text}


def of_type(events: Sequence[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    """Return the events of one type."""
    return [event for event in events if event["type"] == kind]


def shown(events: Sequence[dict[str, Any]]) -> str:
    """Return the text a page shows of a run."""
    return "".join(event["delta"] for event in of_type(events, "TEXT_MESSAGE_CONTENT"))


def results(events: Sequence[dict[str, Any]]) -> list[str]:
    """Return the tool results of a run, in the order they came."""
    return [event["content"] for event in of_type(events, "TOOL_CALL_RESULT")]


async def told(server: Served, thread: str = "t") -> list[dict[str, Any]]:
    """Return the notes of a thread."""
    path = f"/console/api/threads/{thread}/entries?kind=note&fields=full"
    return [entry["body"] for entry in (await server.get(path))["entries"]]


async def stored(server: Served, thread: str = "t") -> list[dict[str, Any]]:
    """Return the stored messages of a thread."""
    found = await server.get(f"/console/api/threads/{thread}/messages?fields=full")
    return [entry["message"] for entry in found["messages"]]


async def seed(redis_url: str, prefix: str, messages: Sequence[Message]) -> None:
    """Put messages into the history of thread t as they are."""
    clients = connect(redis_url)
    await RedisChatMemory(ThreadLog(clients, Keys(prefix), "seed")).add("t", messages)
    await clients.close()


async def refused_run(server: Served, provider: ScriptedProvider, refusal: Reply) -> Any:
    """Have a conversation, then a call that is refused once; return the events of its run."""
    provider.otherwise(Reply("So-it-is. " + "And_" * 400))
    for n in range(1, 6):
        await server.run("t", f"r{n}", said(n, f"Report {n}: " + "all is well here. " * 60))
    provider.add(refusal, Reply("Now it fits."))
    body = request("t", "r9", said(9, "And now?"))
    return sse_events((await server.http.post("/agui", json=body)).text)
