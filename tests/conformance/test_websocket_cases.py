"""Sockets at their limits: no reader, no word for long, too much in, too much out."""

from __future__ import annotations

import socket
from contextlib import ExitStack
from typing import Any

import httpx
import psutil
import pytest
from agui_checker import problems_of
from agui_client import Client
from conformance.stage import Stage
from quiet_proxy import quiet_proxy
from scripted_provider import Call, Reply
from served import sse_events, until
from wire_client import WireClient, ask, deaf_socket

KIB = 1024
SPOKEN = 2_000
DEAF = 8
GROWTH = 50 * KIB * KIB

DROPPED = "a reader took no frame for 1.0 s and was dropped"
PING = b"\x89\x04"
"""How a WebSocket ping of the server begins: unmasked, four bytes long."""


def is_cut(raw: socket.socket) -> bool:
    """Say whether the other side has let go of a connection, reading what is left of it."""
    raw.settimeout(5)
    try:
        while raw.recv(KIB * KIB):
            pass
    except ConnectionResetError:
        pass
    except TimeoutError:
        return False
    return True


@pytest.mark.timeout(120)
async def test_a_client_that_stops_reading(stage: Stage) -> None:
    """websocket-01: it costs no memory and is dropped, logged once; who reads gets everything."""
    # More than kernels keep for a connection by themselves.
    text = {"content": "x" * 2 * KIB}
    stage.model.add(Reply(chunks=(text,) * 400), Reply(chunks=(text,) * SPOKEN))
    thread, watch = stage.thread, f"?protocolVersion=1.0&threadId={stage.thread}"
    with ExitStack() as stack, stage.serve(send_timeout_s=1, coalesce_deltas=1) as server:
        async with WireClient(server.ws_url, watch) as reading:
            await reading.send(ask(thread, f"{thread}-1", "warm up"))
            await reading.until_ended(2)
            process = psutil.Process(server.pid)
            before = most(process)
            dialects = ("bare", "durable") * (DEAF // 2)
            raw = [
                stack.enter_context(deaf_socket(server.port, f"{watch}&dialect={d}", 4096))
                for d in dialects
            ]
            await reading.send(ask(thread, f"{thread}-2", "speak"))
            await reading.until_ended(3, within_s=30)
            grown = most(process) - before
            await until(lambda: server.output().count(DROPPED) >= DEAF, "all deaf are dropped")
        assert all(map(is_cut, raw))
        logged = server.output(100_000)

    said = [e["delta"] for e in reading.events if e["type"] == "TEXT_MESSAGE_CONTENT"]
    assert "".join(said) == "x" * 2 * KIB * (SPOKEN + 400)
    assert grown < GROWTH, f"{grown / KIB / KIB:.1f} MiB"
    assert logged.count(DROPPED) == DEAF and "Traceback" not in logged


def most(process: psutil.Process) -> int:
    """Return the resident memory of a process and those it started."""
    return sum(one.memory_info().rss for one in (process, *process.children(recursive=True)))


async def test_silence_does_not_drop_a_connection(stage: Stage) -> None:
    """websocket-03: pings keep every kind of reader behind a proxy that cuts silent ones."""
    stage.model.add(Reply(calls=(Call("quiet", {"seconds": 6}),)), Reply("Here it is."))
    run, query = f"{stage.thread}-1", f"&protocolVersion=1.0&threadId={stage.thread}"
    with stage.serve(keepalive_s=1) as server:
        async with quiet_proxy(server.port, silence_s=2) as proxy:
            url = f"ws://127.0.0.1:{proxy.port}"
            async with (
                WireClient(url) as bare,
                WireClient(url, "?dialect=durable" + query) as durable,
                httpx.AsyncClient(trust_env=False, timeout=30) as http,
            ):
                await durable.until_ended()
                await bare.send(ask(stage.thread, run, "be quiet"))
                await bare.until_saw("TOOL_CALL_END")
                over_sse = f"http://127.0.0.1:{proxy.port}/agui?runId={run}&protocolVersion=1.0"
                streamed = await http.get(over_sse)
                await bare.until_ended()
                await durable.until_ended(2)

    for events in (bare.events, durable.events, sse_events(streamed.text)):
        contents = [message.get("content") for message in Client().apply(*events).messages]
        assert contents == ["be quiet", None, "that was quiet", "Here it is."]
    assert proxy.dropped == 0
    assert streamed.text.count(": keep\n\n") >= 4
    assert sum(frame == {"type": "ping"} for frame in durable.frames) >= 4
    assert bytes(proxy.heard[0]).count(PING) >= 4


async def test_a_message_that_is_too_large(stage: Stage) -> None:
    """websocket-04: closed with 1009 and the limit by name, nothing is stored; less is accepted."""
    stage.model.add(Reply("Read."))
    limit = KIB * KIB
    with stage.serve(max_input_bytes=limit) as server:
        async with WireClient(server.ws_url, max_size=None) as client:
            await client.send(ask(stage.thread, f"{stage.thread}-1", "x" * (limit * 3 // 2)))
            await client.until_closed()
        async with httpx.AsyncClient(base_url=server.url, trust_env=False) as http:
            stored = await http.get(f"/console/api/threads/{stage.thread}")
            too_large = ask(stage.thread, f"{stage.thread}-2", "x" * (limit * 3 // 2))
            refused = await http.post("/agui", json=too_large)
        async with WireClient(server.ws_url) as client_again:
            await client_again.send(ask(stage.thread, f"{stage.thread}-3", "x" * (200 * KIB)))
            await client_again.until_ended()

    assert (client.code, str(limit) in client.reason) == (1009, True)
    assert stored.status_code == 404
    assert (refused.status_code, str(limit) in refused.text) == (413, True)
    assert client_again.types()[-1] == "RUN_FINISHED"


def long_history(count: int = 3000, size: int = 2 * KIB) -> list[dict[str, Any]]:
    """Return a history that is larger than what client libraries take in one frame."""
    roles = ("user", "assistant")
    return [
        {"id": f"m{n}", "role": roles[n % 2], "content": f"{n:04d} ".ljust(size // 2, "é")}
        for n in range(count)
    ]


@pytest.mark.parametrize("query", ["", "&dialect=durable", "&max_frame=65536"])
async def test_a_large_snapshot(stage: Stage, query: str) -> None:
    """websocket-05: six megabytes reach a client with default limits, whole and in pages."""
    history = long_history()
    stage.model.configure(strict=False)
    stage.model.add(Reply("That was long."))
    request = ask(stage.thread, f"{stage.thread}-1")
    request["messages"] = [*history, {"id": "last", "role": "user", "content": "?"}]
    with stage.serve(max_input_bytes=16 * KIB * KIB) as server:
        async with WireClient(server.ws_url, max_size=None) as asking:
            await asking.send(request)
            await asking.until_ended()
        watch = f"?protocolVersion=1.0&threadId={stage.thread}{query}"
        async with WireClient(server.ws_url, watch) as joined:
            await joined.until(lambda: stays(joined), "the prelude after the pages", within_s=20)

    held = Client().apply(*joined.events).messages
    assert [m["id"] for m in held[:3001]] == [*(m["id"] for m in history), "last"]
    assert held[1]["content"] == history[1]["content"] and len(held) == 3002
    assert problems_of(joined.events) == []


def stays(client: WireClient) -> bool:
    """Say whether the prelude itself has ended: the run behind the pages."""
    ends = [event for event in client.events if event["type"] == "RUN_FINISHED"]
    return bool(ends) and not ends[-1]["runId"].startswith("backscroll-page")
