"""The AG-UI WebSocket, in both dialects, against a real worker."""

from __future__ import annotations

import asyncio
import json
import logging
import socket as socket_module
import struct
from typing import Any

import pytest
import websockets
from backscroll.agent.agent import Agent
from backscroll.agui.checks import InputLimits
from backscroll.kernel.message import tool_call
from backscroll.kernel.tool import tool
from backscroll.web.services import WebLimits
from deadlines import scaled
from scripted_model import ScriptedModel, reply
from served import read_run, request, served, until


@tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def scripted(*replies: Any) -> Agent:
    """Return an agent whose model plays these replies."""
    return Agent(name="a", model=ScriptedModel(*replies), tools=[add])


async def test_text_is_closed_before_a_call(valkey_url: str, prefix: str) -> None:
    """protocol-01: text, then a call in one reply: the message ends before the call begins."""
    agent = scripted(reply("Let me |look", [tool_call("c1", "add", {"a": 1, "b": 2})]), reply("3"))
    async with served(agent, valkey_url, prefix) as server, server.socket() as socket:
        await socket.send(json.dumps(request("t", "r", "go")))
        types = [event["type"] for event in await read_run(socket)]

    first_call = types.index("TOOL_CALL_START")
    assert types.index("TEXT_MESSAGE_END") < first_call
    assert types.count("RUN_FINISHED") == 1 and types[-1] == "RUN_FINISHED"


async def test_bad_frames_are_answered_and_the_socket_stays_open(
    valkey_url: str, prefix: str
) -> None:
    """protocol-09: each bad request names its path, no run is made, the next good one runs."""
    no_id = request("t", "r1", {"role": "user", "content": "x"})  # type: ignore[arg-type]
    robot = request("t", "r2", {"id": "m", "role": "robot", "content": "x"})  # type: ignore[arg-type]
    async with served(scripted(reply("hi")), valkey_url, prefix) as server:
        async with server.socket() as socket:
            answers = []
            for frame in (json.dumps(no_id), json.dumps(robot), "not json", b"bytes"):
                await socket.send(frame)
                answers.append(json.loads(await socket.recv()))
            await socket.send(json.dumps(request("t", "r3", "hello")))
            events = await read_run(socket)
        runs = (await server.get("/console/api/threads/t/runs"))["runs"]

    assert [a["code"] for a in answers] == ["invalid_input"] * 2 + ["not_json"] * 2
    assert answers[0]["message"] == "messages[0].id is missing"
    assert answers[0]["metadata"]["backscroll"]["runId"] == "r1"
    assert answers[1]["message"].startswith("messages[0].role")
    assert events[-1]["type"] == "RUN_FINISHED"
    assert [run["run"] for run in runs] == ["r3"]


async def test_a_frame_over_the_limit_closes_with_the_limit_named(
    valkey_url: str, prefix: str
) -> None:
    """A frame of 20 MB is refused with 1009 and the limit; the server goes on."""
    limits = WebLimits(InputLimits(input_bytes=1_000_000))
    async with served(scripted(reply("hi")), valkey_url, prefix, limits=limits) as server:
        async with server.socket() as socket:
            with pytest.raises(websockets.ConnectionClosed) as closed:
                await socket.send("x" * 2_000_000)
                await socket.recv()
        events = await server.run("t", "r", "hello")

    assert closed.value.rcvd is None or closed.value.rcvd.code == 1009
    assert events[-1]["type"] == "RUN_FINISHED"


async def test_several_runs_on_one_bare_socket_come_one_after_another(
    valkey_url: str, prefix: str
) -> None:
    """Requests for two threads at once: their feeds do not mix in the bare dialect."""
    async with served(scripted(reply("a|b"), reply("c|d")), valkey_url, prefix) as server:
        async with server.socket() as socket:
            await socket.send(json.dumps(request("t1", "r1", "x")))
            await socket.send(json.dumps(request("t2", "r2", "y")))
            first, second = await read_run(socket), await read_run(socket)

    assert (first[0]["runId"], second[0]["runId"]) == ("r1", "r2")
    assert {e.get("runId", "r1") for e in first} == {"r1"}


async def test_a_dropped_socket_ends_nothing(
    valkey_url: str, prefix: str, caplog: pytest.LogCaptureFixture
) -> None:
    """websocket-02: resets before, during and after leave no noise; the run comes to its end."""
    agent = scripted(reply("|".join("abcdefgh")), reply("again"))
    async with served(agent, valkey_url, prefix) as server:
        for path in ("/agui", "/agui?threadId=t&dialect=durable"):
            socket = await server.socket(path)
            if path == "/agui":
                await socket.send(json.dumps(request("t", "r", "go")))
                await socket.recv()
            _reset(socket)
        await until(lambda: server.worker.connections == 0, "the connections are gone")
        await until(lambda: server.worker.registry.active == 0, "the run has ended")
        async with server.socket("/agui?threadId=t&protocolVersion=1.0") as watch:
            events = await read_run(watch)

    snapshot = next(e for e in events if e["type"] == "MESSAGES_SNAPSHOT")
    assert [m.get("content") for m in snapshot["messages"]] == ["go", "abcdefgh"]
    assert [record for record in caplog.records if record.levelno >= logging.ERROR] == []


async def test_a_thread_can_be_read_without_a_run(valkey_url: str, prefix: str) -> None:
    """protocol-11: a watch gets one snapshot in stored order and calls no model."""
    agent = scripted(reply("one"), reply("two"), reply("three"))
    async with served(agent, valkey_url, prefix) as server:
        for n in range(1, 4):
            await server.run("t", f"r{n}", *[f"m{k}" for k in range(1, n + 1)])
        stored = (await server.get("/console/api/threads/t/messages"))["messages"]
        async with server.socket("/agui?threadId=t&protocolVersion=1.0") as socket:
            events = await read_run(socket)
        async with server.socket("/agui?threadId=unknown&protocolVersion=1.0") as socket:
            unknown = await read_run(socket)
        asked = len(agent.client.model.requests)  # type: ignore[union-attr]

    snapshot = next(e for e in events if e["type"] == "MESSAGES_SNAPSHOT")
    assert [m["id"] for m in snapshot["messages"]] == [m["id"] for m in stored]
    assert len(stored) == 6 and asked == 3
    assert [e["type"] for e in unknown] == ["RUN_STARTED", "RUN_FINISHED"]


async def test_replay_comes_before_live(valkey_url: str, prefix: str) -> None:
    """reconnect-03: cut and watch again by cursor in mid-answer: each number once, in order."""
    numbers = "|".join(f"{n} " for n in range(60))
    async with served(scripted(reply(numbers)), valkey_url, prefix) as server:
        seen: list[str] = []
        path = "/agui?dialect=durable&threadId=t&protocolVersion=1.0"
        async with server.socket(path) as socket:
            await socket.send(json.dumps(request("t", "r", "go")))
            cursor, ended = await _take(socket, seen, 5)
        while not ended:
            async with server.socket(f"{path}&offset={cursor}") as socket:
                cursor, ended = await _take(socket, seen, 3)

    assert "".join(seen) == "".join(f"{n} " for n in range(60))


async def test_a_cursor_that_cannot_be_continued_is_answered_with_a_resync(
    valkey_url: str, prefix: str
) -> None:
    """A cursor ahead of the log, or of another epoch, gets the notice and then the prelude."""
    async with served(scripted(reply("hi")), valkey_url, prefix) as server:
        await server.run("t", "r", "go")
        reasons = []
        for offset in ("9999", "1.zzzz"):
            async with server.socket(f"/agui?threadId=t&offset={offset}") as socket:
                reasons.append(json.loads(await socket.recv())["reason"])
                assert json.loads(await socket.recv())["type"] == "RUN_STARTED"

    assert reasons == ["ahead", "epoch"]


async def test_stop_ends_the_run_cancelled(valkey_url: str, prefix: str) -> None:
    """An abort frame stops the run; its proof is the terminal event, and the next one works."""
    started = asyncio.Event()

    @tool
    async def hang() -> str:
        """Take for ever."""
        started.set()
        await asyncio.Event().wait()
        return ""

    model = ScriptedModel(reply("", [tool_call("c", "hang")]), reply("fine"))
    agent = Agent(name="a", model=model, tools=[hang])
    async with served(agent, valkey_url, prefix) as server, server.socket() as socket:
        await socket.send(json.dumps(request("t", "r1", "go")))
        await started.wait()
        await socket.send(json.dumps({"type": "abort", "runId": "r1"}))
        events = await read_run(socket)
        await socket.send(json.dumps(request("t", "r2", "go", "on")))
        after = await read_run(socket)

    assert events[-1]["outcome"] == {"type": "cancelled"}
    result = next(e for e in events if e["type"] == "TOOL_CALL_RESULT")
    assert result["metadata"] == {"backscroll": {"outcome": "cancelled"}}
    assert after[-1]["outcome"] == {"type": "success"}


async def test_a_watching_socket_gets_notices(valkey_url: str, prefix: str) -> None:
    """A refusal on a watching socket is a notice, since an event would hit the stream."""
    async with served(scripted(), valkey_url, prefix) as server:
        async with server.socket("/agui?dialect=durable&threadId=t") as socket:
            for _ in range(2):
                await socket.recv()
            await socket.send(json.dumps({"type": "abort", "runId": "nope"}))
            refusal = json.loads(await socket.recv())
            await socket.send(json.dumps({"type": "ping"}))
            pong = json.loads(await socket.recv())
            await socket.send(json.dumps({"type": "unwatch", "threadId": "t"}))
            unwatched = json.loads(await socket.recv())

    assert (refusal["type"], refusal["error"]["code"]) == ("refusal", "not_found")
    assert pong == {"type": "pong"}
    assert unwatched == {"type": "unwatched", "threadId": "t"}


@pytest.mark.parametrize("query", ["dialect=odd", "offset=x", "max_frame=1", "threadId="])
async def test_a_bad_address_is_refused_by_name(valkey_url: str, prefix: str, query: str) -> None:
    """A wrong parameter is named, then the socket is closed."""
    async with served(scripted(), valkey_url, prefix) as server:
        async with server.socket(f"/agui?{query}") as socket:
            event = json.loads(await socket.recv())
            with pytest.raises(websockets.ConnectionClosed) as closed:
                await socket.recv()

    assert event["message"].startswith(query.split("=")[0])
    assert closed.value.rcvd is not None and closed.value.rcvd.code == 1008


async def test_replay_of_a_run_closes_when_it_is_through(valkey_url: str, prefix: str) -> None:
    """runId and offset replay one run and close with 1000; an unknown run closes with 1008."""
    async with served(scripted(reply("hi")), valkey_url, prefix) as server:
        await server.run("t", "r", "go")
        frames = [
            json.loads(frame) async for frame in await server.socket("/agui?runId=r&offset=-1")
        ]
        async with server.socket("/agui?runId=nope&offset=-1") as socket:
            with pytest.raises(websockets.ConnectionClosed) as closed:
                await socket.recv()

    types = [frame["chunk"]["type"] for frame in frames]
    assert (types[0], types[-1]) == ("RUN_STARTED", "RUN_FINISHED")
    assert closed.value.rcvd is not None and closed.value.rcvd.code == 1008


async def _take(socket: Any, seen: list[str], count: int) -> tuple[str, bool]:
    """Read up to `count` deltas into `seen`; returns the cursor, and whether the run ended."""
    cursor = ""
    async with asyncio.timeout(scaled(10)):
        while count:
            frame = json.loads(await socket.recv())
            chunk = frame.get("chunk", frame)
            cursor = frame.get("id", cursor)
            if chunk["type"] == "TEXT_MESSAGE_CONTENT":
                seen.append(chunk["delta"])
                count -= 1
            if chunk["type"] == "RUN_FINISHED" and chunk["runId"] == "r":
                return cursor, True
    return cursor, False


def _reset(connection: Any) -> None:
    """Drop a connection the hard way, with a TCP reset."""
    raw = connection.transport.get_extra_info("socket")
    linger = struct.pack("ii", 1, 0)
    raw.setsockopt(socket_module.SOL_SOCKET, socket_module.SO_LINGER, linger)
    connection.transport.abort()
