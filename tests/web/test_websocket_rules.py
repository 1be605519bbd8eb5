"""The AG-UI WebSocket: its limits, its control frames, and how it ends."""

from __future__ import annotations

import asyncio
import json
import logging
from contextlib import asynccontextmanager
from typing import Any

import pytest
import websockets
from backscroll.web.services import WebLimits
from cutting_proxy import cutting_proxy
from deadlines import scaled
from served import read_run, request, served
from working import agent_of, begun, bodies, held, key, until_ended

WATCH = "/agui?threadId=t&protocolVersion=1.0"
DURABLE = "/agui?dialect=durable&protocolVersion=1.0"


async def say(socket: Any, **frame: Any) -> None:
    """Send one frame."""
    await socket.send(json.dumps(frame))


async def read(socket: Any) -> Any:
    """Return the next frame."""
    async with asyncio.timeout(scaled(10)):
        return json.loads(await socket.recv())


async def closed(socket: Any) -> tuple[int, str]:
    """Read until the socket closes, and return why."""
    with pytest.raises(websockets.ConnectionClosed) as end:
        while True:
            await read(socket)
    assert end.value.rcvd is not None
    return end.value.rcvd.code, end.value.rcvd.reason


@asynccontextmanager
async def opened(url: str, prefix: str, path: str, *script: Any, **options: Any) -> Any:
    """Serve an agent and open one socket."""
    async with served(agent_of(*script), url, prefix, **options) as server:
        async with server.socket(path) as socket:
            yield server, socket


async def test_an_idle_socket_is_closed(valkey_url: str, prefix: str) -> None:
    """1000 `idle` without feed and frame; a watch is no idleness."""
    limits = WebLimits(idle_s=0.1)
    async with served(agent_of("x"), valkey_url, prefix, limits=limits) as server:
        async with server.socket("/agui") as socket, server.socket(WATCH) as watch:
            assert await closed(socket) == (1000, "idle")
            for _ in range(2):
                await read(watch)
            await say(watch, type="ping")
            assert await read(watch) == {"type": "pong"}


async def test_durable_sockets_are_pinged(valkey_url: str, prefix: str) -> None:
    """Every keepalive_s, and only in this dialect."""
    limits = WebLimits(keepalive_s=0.05)
    async with opened(valkey_url, prefix, DURABLE, limits=limits) as (_, socket):
        assert [await read(socket) for _ in range(2)] == [{"type": "ping"}] * 2


async def test_bad_frames_close_in_the_end(valkey_url: str, prefix: str) -> None:
    """1008 `rate_limited` after fifty in a minute."""
    async with opened(valkey_url, prefix, "/agui") as (_, socket):
        for _ in range(50):
            await socket.send("bad")

        assert await closed(socket) == (1008, "rate_limited")


async def test_a_control_frame_is_refused_by_a_notice(valkey_url: str, prefix: str) -> None:
    """Also on a socket that watches nothing, where an event would hit the next stream."""
    async with opened(valkey_url, prefix, "/agui", "hi") as (_, socket):
        await say(socket, type="abort", runId="nope")
        unknown = await read(socket)
        await say(socket, type="abort")
        missing = await read(socket)
        await say(socket, type="watch", threadId="t")
        watch = await read(socket)
        await say(socket, **request("t", "r", "hello"))
        events = await read_run(socket)

    assert (unknown["type"], unknown["runId"]) == ("refusal", "nope")
    assert [f["error"]["code"] for f in (unknown, missing, watch)] == [
        "not_found",
        "invalid_input",
        "one_stream",
    ]
    assert events[-1]["type"] == "RUN_FINISHED"


async def test_a_bare_watch_is_one_stream(valkey_url: str, prefix: str) -> None:
    """Requests for its thread run on it, for another one they are refused."""
    async with opened(valkey_url, prefix, WATCH, "hi") as (_, socket):
        await read_run(socket)
        await say(socket, **request("other", "r1", "x"))
        refusal = await read(socket)
        await say(socket, **request("t", "r2", "hello"))
        events = await read_run(socket)

    assert (refusal["type"], refusal["error"]["code"]) == ("refusal", "one_stream")
    assert (refusal["threadId"], refusal["runId"]) == ("other", "r1")
    assert [e["runId"] for e in events if "runId" in e] == ["r2", "r2"]


async def test_a_refusal_on_a_watched_thread_is_a_notice_and_a_note(
    valkey_url: str, prefix: str
) -> None:
    """It names the request, and the run that is in the way; operators are told."""
    async with opened(valkey_url, prefix, WATCH, held()) as (server, socket):
        await read_run(socket)
        await begun(server.worker, "r1")
        await say(socket, **request("t", "r2", "hi", "again"))
        while (refusal := await read(socket))["type"] != "refusal":
            pass
        bad = request("t", "r3", {"id": "u1", "content": "x"})  # type: ignore[arg-type]
        await say(socket, **bad)
        while (wrong := await read(socket))["type"] != "refusal":
            pass
        async with asyncio.timeout(scaled(5)):
            while len(notes := await bodies(server.worker, "note")) < 2:
                pass

    assert refusal["runId"] == "r2" and refusal["error"]["details"]["runId"] == "r1"
    assert wrong["error"]["code"] == "invalid_input"
    assert [(n["code"], n["refused_run"]) for n in notes] == [
        ("thread_busy", "r2"),
        ("invalid_input", "r3"),
    ]


async def test_feeds_of_a_socket_are_bounded(valkey_url: str, prefix: str) -> None:
    """One more is refused, of runs as of watches."""
    limits = WebLimits(feeds_per_socket=1, bare_feeds=1)
    async with opened(valkey_url, prefix, "/agui", held(), limits=limits) as (server, socket):
        await say(socket, **request("t1", "r1", "x"))
        await say(socket, **request("t2", "r2", "x"))
        await until_ended_by_stop(server, "r1")
        await read_run(socket)
        refusal = (await read_run(socket))[0]
        async with server.socket(DURABLE) as durable:
            await say(durable, type="watch", threadId="a")
            await say(durable, type="watch", threadId="a")
            await say(durable, type="watch", threadId="b")
            while (watch := await read(durable))["type"] != "refusal":
                pass

    assert (refusal["code"], refusal["metadata"]["backscroll"]["runId"]) == ("too_many_feeds", "r2")
    assert watch["error"]["code"] == "too_many_feeds"


async def until_ended_by_stop(server: Any, run: str) -> None:
    """Stop a run of thread t1 once it has begun."""
    while (await server.worker.log.head(key("t1"))).run != run:
        pass
    await server.worker.registry.store.stop(key("t1"), run)
    await until_ended(server.worker, run, "t1")


async def test_a_run_that_is_delivered_already(valkey_url: str, prefix: str) -> None:
    """The same request again on the same connection changes nothing."""
    async with opened(valkey_url, prefix, "/agui", held()) as (server, socket):
        body = request("t", "r1", "hi")
        await say(socket, **body)
        assert (await read(socket))["type"] == "RUN_STARTED"
        await say(socket, **body)
        await say(socket, type="ping")
        while await read(socket) != {"type": "pong"}:
            pass
        await server.worker.registry.store.stop(key(), "r1")
        events = await read_run(socket)

    assert [e["type"] for e in events].count("RUN_STARTED") == 0


async def test_a_replay_takes_no_frames(valkey_url: str, prefix: str) -> None:
    """A socket with runId and offset is read only."""
    async with served(agent_of(held()), valkey_url, prefix) as server:
        await begun(server.worker, "r1")
        async with server.socket("/agui?runId=r1&offset=-1") as socket:
            await say(socket, **request("t", "r2", "x"))
            while (refusal := await read(socket)).get("type") != "refusal":
                pass

    assert refusal["error"]["code"] == "read_only"


async def test_threads_are_watched_by_frame(valkey_url: str, prefix: str) -> None:
    """Several on one durable socket, from a cursor or from the prelude."""
    async with served(agent_of("one", "two"), valkey_url, prefix) as server:
        await server.run("t1", "r1", "x")
        await server.run("t2", "r2", "x")
        async with server.socket(DURABLE) as socket:
            await say(socket, type="watch", threadId="t1")
            await say(socket, type="watch", threadId="t2", offset="-1")
            ends: dict[str, str] = {}
            while len(ends) < 2:
                frame = await read(socket)
                if frame.get("chunk", frame)["type"] == "RUN_FINISHED":
                    ends[frame["threadId"]] = frame["chunk"]["runId"]

    assert ends == {"t1": "r1", "t2": "r2"}


async def test_a_bare_feed_that_cannot_go_on_is_closed(valkey_url: str, prefix: str) -> None:
    """1013 `resync`, so that the client joins anew."""
    async with served(agent_of("x" * 65_536), valkey_url, prefix) as server:
        await server.run("t", "r", "hi")
        async with server.socket(f"{WATCH}&dialect=bare&offset=-1&max_frame=65536") as socket:
            assert await closed(socket) == (1013, "resync")


@pytest.mark.parametrize("frame", [None, {"type": "abort", "runId": "r"}, {"bad": True}])
async def test_a_store_that_is_away_closes_with_1013(
    valkey_url: str, prefix: str, frame: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """In a feed, in a control frame, in a refusal; without a stack trace."""
    async with cutting_proxy(valkey_url) as proxy:
        async with served(agent_of("x"), proxy.url, prefix) as server:
            async with server.socket(DURABLE) as socket:
                proxy.cuts = 1_000_000
                await say(socket, **(frame or request("t", "r", "hi")))

                assert await closed(socket) == (1013, "unavailable")
    assert [r for r in caplog.records if r.levelno >= logging.ERROR] == []


async def test_a_fault_of_ours_closes_with_1011(
    valkey_url: str, prefix: str, caplog: pytest.LogCaptureFixture
) -> None:
    """A log that cannot be read is told in the server's own log."""
    async with served(agent_of("x"), valkey_url, prefix) as server:
        await server.run("t", "r", "hi")
        name = server.worker.keys.log(key())
        await server.worker.clients.write.delete(name)
        await server.worker.clients.write.xadd(name, {"odd": "odd"}, id="1-0")
        async with server.socket("/agui?runId=r&offset=-1") as socket:
            assert await closed(socket) == (1011, "internal_error")

    assert "a feed failed" in caplog.text


async def test_a_deleted_thread_ends_its_watches(valkey_url: str, prefix: str) -> None:
    """1000 `deleted` for the watch of the address, `unwatched` for one by frame."""
    async with opened(valkey_url, prefix, WATCH, "one", "two") as (server, by_address):
        await server.run("t", "r1", "hi")
        async with server.socket(DURABLE) as by_frame:
            await say(by_frame, type="watch", threadId="t")
            while "id" not in await read(by_frame):
                pass
            assert await server.worker.threads.delete(key()) is None

            assert await closed(by_address) == (1000, "deleted")
            assert await read(by_frame) == {"type": "unwatched", "threadId": "t"}
            await server.run("t", "r2", "again")
            await say(by_frame, type="watch", threadId="t")
            told = [await read(by_frame) for _ in range(3)]

    assert [m["content"] for m in told[1]["messages"]] == ["again", "two"]
    assert told[-1]["chunk"]["type"] == "RUN_FINISHED"
