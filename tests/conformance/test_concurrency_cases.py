"""Several clients and workers on one thread: what each of them sees, and what is stored."""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress
from typing import Any

import pytest
import websockets
from agui_client import Client
from backscroll.agent.agent import Agent
from backscroll.agui.refusal import RequestRefused
from backscroll.kernel.message import Role
from backscroll.kernel.model import Finished, ModelRequest, Text
from backscroll.kernel.tool import tool
from backscroll.store.keys import LOCAL_OWNER
from deadlines import scaled
from played_model import Said, Streamed, StreamingModel, call, calls
from served import Served, read_run, request, served, until
from working import asked, key, until_ended, working

WATCH = "/agui?threadId=t&protocolVersion=1.0"


@tool
async def look(n: int) -> str:
    """Look something up."""
    await asyncio.sleep(0)
    return f"found {n}"


def paused(text: str, gate: asyncio.Event) -> Streamed:
    """Return a reply that waits in its middle."""
    said = Said(f"{text} and more")
    return Streamed([Text(text), gate, Text(" and more"), Finished(said.response())])


def said(name: str, text: str) -> Any:
    """Return a user message with an id of its own."""
    return {"id": name, "role": "user", "content": text}


async def read_until(socket: Any, client: Client, *types: str) -> dict[str, Any]:
    """Apply a socket's events to a client until one of these types, and return that."""
    async with asyncio.timeout(scaled(10)):
        while True:
            event: dict[str, Any] = json.loads(await socket.recv())
            client.apply(event)
            if event["type"] in types:
                return event


async def test_a_second_tab_sees_the_run_of_the_first(valkey_url: str, prefix: str) -> None:
    """concurrency-02: live on another worker, its own send is refused as busy, both end alike."""
    gate, tab_a, tab_b = asyncio.Event(), Client(), Client()
    agent = Agent(name="a", model=StreamingModel(["ready", paused("I begin", gate), "again"]))
    async with (
        served(agent, valkey_url, prefix) as one,
        served(agent, valkey_url, prefix) as two,
    ):
        await one.run("t", "r0", "are you there?")
        async with one.socket(WATCH) as a, two.socket(WATCH) as b, one.socket() as sending:
            await read_until(a, tab_a, "RUN_FINISHED")
            await read_until(b, tab_b, "RUN_FINISHED")
            await sending.send(json.dumps(request("t", "rA", "are you there?", "hello")))
            async with asyncio.timeout(scaled(1)):
                await read_until(b, tab_b, "TEXT_MESSAGE_CONTENT")
            seen = [(m["role"], m["content"]) for m in tab_b.messages[-2:]]
            refused = await one_event(two, request("t", "rB", said("x1", "stop that, do X")))
            gate.set()
            await read_until(a, tab_a, "RUN_FINISHED")
            await read_until(b, tab_b, "RUN_FINISHED")
        ordinary = await two.run("t", "rC", "are you there?", "hello", "and now?")
        stored = (await one.get("/console/api/threads/t/messages"))["messages"]

    assert seen == [("user", "hello"), ("assistant", "I begin")]
    assert refused["code"] == "thread_busy" and "rA" in refused["message"]
    assert tab_a.shown() == tab_b.shown()
    assert [m["id"] for m in tab_a.messages] == [m["id"] for m in stored[:4]]
    assert ordinary[-1]["type"] == "RUN_FINISHED"


async def one_event(server: Served, body: dict[str, Any]) -> dict[str, Any]:
    """Send a request on a socket of its own and return the first answer."""
    async with server.socket() as socket, asyncio.timeout(scaled(10)):
        await socket.send(json.dumps(body))
        answer: dict[str, Any] = json.loads(await socket.recv())
        return answer


@pytest.mark.timeout(120)
async def test_turns_with_tools_stay_contiguous(valkey_url: str, prefix: str) -> None:
    """concurrency-03: three clients at once, each comes again while it is busy; no turn is torn."""

    def answer(seen: ModelRequest) -> Said:
        if seen.messages[-1].role is Role.TOOL:
            return Said("done")
        n = len(seen.messages)
        return calls(call("look", {"n": n}, f"c{n}a"), call("look", {"n": n}, f"c{n}b"))

    model = StreamingModel([answer] * 6)
    agent = Agent(name="a", model=model, tools=[look])
    async with (
        served(agent, valkey_url, prefix) as one,
        served(agent, valkey_url, prefix) as two,
    ):
        ends = await asyncio.gather(*(insisting((one, two, one)[n], n) for n in range(3)))
        stored = (await one.get("/console/api/threads/t/messages?fields=full"))["messages"]

    assert ends == ["RUN_FINISHED"] * 3
    assert [m["role"] for m in stored] == [*("user", "assistant", "tool", "tool", "assistant")] * 3
    assert sorted(m["id"] for m in stored[::5]) == ["m0", "m1", "m2"]
    for seen in model.requests:
        waiting: set[str] = set()
        for message in seen.messages:
            assert message.role is Role.TOOL or not waiting
            waiting |= {wanted.id for wanted in message.tool_calls}
            waiting.discard(message.tool_call_id or "")
        assert not waiting


async def insisting(server: Served, n: int) -> str:
    """Send one message, again while the thread is busy; returns how its run ended."""
    body = request("t", f"r{n}", said(f"m{n}", f"question {n}"))
    async with server.socket() as socket, asyncio.timeout(scaled(20)):
        while True:
            await socket.send(json.dumps(body))
            events = await read_run(socket)
            if events[-1].get("code") != "thread_busy":
                return str(events[-1]["type"])


@pytest.mark.timeout(120)
async def test_the_same_request_again_does_not_run_twice(valkey_url: str, prefix: str) -> None:
    """concurrency-04: sent to another worker during and after the run; one turn, one answer."""
    gate = asyncio.Event()
    model = StreamingModel([paused("I begin", gate), "next"])
    agent = Agent(name="a", model=model)
    body = request("t", "r1", said("m1", "hello"))
    async with (
        served(agent, valkey_url, prefix) as one,
        served(agent, valkey_url, prefix) as two,
    ):
        async with one.socket() as cut:
            await cut.send(json.dumps(body))
            cut.transport.abort()
        with suppress(websockets.ConnectionClosed):
            await cut.recv()
        await until(lambda: len(model.requests) == 1, "the run has begun", scaled(5))
        during = Client()
        async with two.socket() as again:
            await again.send(json.dumps(body))
            await read_until(again, during, "TEXT_MESSAGE_CONTENT")
            gate.set()
            first = await read_until(again, during, "RUN_FINISHED")
        after = await two.run("t", "r1", *body["messages"])
        other = await one_event(two, request("t", "r1", "something else"))
        stored = (await one.get("/console/api/threads/t/messages"))["messages"]
        runs = (await one.get("/console/api/threads/t/runs"))["runs"]
        ordinary = await one.run("t", "r2", said("m1", "hello"), said("m2", "on"))

    assert first["runId"] == after[-1]["runId"] == "r1" and after[-1]["type"] == "RUN_FINISHED"
    assert [m["role"] for m in during.messages] == ["user", "assistant"]
    assert during.shown() == Client().apply(*after).shown()
    assert [m["role"] for m in stored] == ["user", "assistant"] and len(runs) == 1
    assert other["code"] == "run_conflict"
    assert ordinary[-1]["type"] == "RUN_FINISHED" and len(model.requests) == 2


@pytest.mark.timeout(180)
async def test_two_sends_at_the_same_instant(valkey_url: str, prefix: str) -> None:
    """concurrency-01: 25 rounds on two workers; one runs, the other is told and comes again."""
    agent = Agent(name="a", model=StreamingModel([lambda _: Said("done")] * 50))
    async with (
        working(agent, valkey_url, prefix) as one,
        working(agent, valkey_url, prefix) as two,
    ):
        for n in range(25):
            thread = f"t{n}"
            inputs = [asked(thread, f"r{n}-{k}", said(f"m{k}", f"question {k}")) for k in (1, 2)]
            pairs = list(zip((one, two), inputs, strict=True))
            begun = await asyncio.gather(
                *(worker.registry.submit(LOCAL_OWNER, body) for worker, body in pairs),
                return_exceptions=True,
            )
            late = [pair for pair, how in zip(pairs, begun, strict=True) if is_busy(how, thread)]
            assert len(late) == 1
            won = next(body for _, body in pairs if body is not late[0][1])
            await until_ended(one, won.run_id, thread)
            await late[0][0].registry.submit(LOCAL_OWNER, late[0][1])
            await until_ended(one, late[0][1].run_id, thread)
            stored = [s.message.id for s in (await one.history.read(key(thread))).live]
            assert stored[::2] == [won.messages[0].id, late[0][1].messages[0].id]
            assert len(stored) == 4


def is_busy(how: Any, thread: str) -> bool:
    """Say whether a request was refused because another run is active, and names it."""
    if not isinstance(how, RequestRefused):
        return False
    number = thread.removeprefix("t")
    assert how.code == "thread_busy" and how.details["runId"] in (f"r{number}-1", f"r{number}-2")
    return True
