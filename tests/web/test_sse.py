"""AG-UI over POST and GET with server-sent events."""

from __future__ import annotations

import asyncio
import json
import logging
import socket as socket_module
from typing import Any

import httpx
import pytest
from agui_checker import assert_valid
from backscroll.kernel.errors import ModelError, StoreError
from backscroll.runs.worker import Worker
from backscroll.web.services import Services, WebLimits
from backscroll.web.sse import EventStream
from deadlines import scaled
from played_model import Said
from served import Served, request, served, sse_events, until
from working import agent_of, begun, bodies, held, key, until_ended


async def lines_of(answer: httpx.Response, until_line: str) -> list[str]:
    """Read lines of a stream up to one that begins like this."""
    found: list[str] = []
    async with asyncio.timeout(scaled(10)):
        async for line in answer.aiter_lines():
            found.append(line)
            if line.startswith(until_line):
                return found
    raise AssertionError(f"the stream ended without {until_line!r}: {found}")


async def stalled(server: Served, body: dict[str, Any]) -> tuple[Any, Any]:
    """Post a request over a connection that reads nothing."""
    host = socket_module.socket()
    host.setsockopt(socket_module.SOL_SOCKET, socket_module.SO_RCVBUF, 4096)
    host.setblocking(False)
    loop = asyncio.get_running_loop()
    await loop.sock_connect(host, ("127.0.0.1", server.port))
    data = json.dumps(body).encode()
    head = f"POST /agui HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(data)}\r\n\r\n"
    await loop.sock_sendall(host, head.encode() + data)
    return host, loop


async def test_a_run_is_streamed_to_its_end(valkey_url: str, prefix: str) -> None:
    """Headers, one data line per event, a cursor before each logged one, then the end."""
    async with served(agent_of("hello you"), valkey_url, prefix) as server:
        answer = await server.http.post("/agui", json=request("t", "r", "hi"))
        head = await server.worker.log.head(key())

    assert answer.headers["content-type"] == "text/event-stream"
    assert answer.headers["cache-control"] == "no-cache, no-transform"
    assert answer.headers["x-accel-buffering"] == "no"
    blocks = answer.text.split("\n\n")[:-1]
    assert all(b.startswith("id: ") and b.count("\n") == 1 for b in blocks)
    assert "\r" not in answer.text
    assert blocks[-1].startswith(f"id: {head.seq}.{head.epoch}\ndata: ")
    events = sse_events(answer.text)
    assert_valid(events)
    assert events[-1]["type"] == "RUN_FINISHED"


async def test_failures_are_events_once_the_answer_has_begun(valkey_url: str, prefix: str) -> None:
    """200 and RUN_ERROR."""
    async with served(agent_of(ModelError("auth", "no")), valkey_url, prefix) as server:
        answer = await server.http.post("/agui", json=request("t", "r", "hi"))

    assert answer.status_code == 200 and sse_events(answer.text)[-1]["code"] == "auth"


async def test_a_refusal_is_a_json_error_with_a_note(valkey_url: str, prefix: str) -> None:
    """Nothing is streamed; operators of a known thread are told."""
    async with served(agent_of("x"), valkey_url, prefix) as server:
        await server.run("t", "r1", "hi")
        bad = request("t", "r2", {"role": "user", "content": "x"})  # type: ignore[arg-type]
        answer = await server.http.post("/agui", json=bad)
        notes = await bodies(server.worker, "note")

    error = answer.json()["error"]
    assert (answer.status_code, error["code"]) == (422, "invalid_input")
    assert error["message"] == "messages[0].id is missing"
    assert (error["details"]["threadId"], error["details"]["runId"]) == ("t", "r2")
    assert [(n["code"], n["refused_run"]) for n in notes] == [("invalid_input", "r2")]


async def test_the_same_run_again(valkey_url: str, prefix: str) -> None:
    """Its prelude and its own end; with a cursor what comes after it."""
    async with served(agent_of("a b c"), valkey_url, prefix) as server:
        body = request("t", "r", "hi")
        first = await server.http.post("/agui", json=body)
        again = sse_events((await server.http.post("/agui", json=body)).text)
        cursor = first.text.split("\n\n")[2].split("\n")[0].removeprefix("id: ")
        resumed = await server.http.post("/agui", json=body, headers={"last-event-id": cursor})
        bad = await server.http.post("/agui", json=body, headers={"last-event-id": "odd"})

    assert [e["type"] for e in again] == ["RUN_STARTED", "MESSAGES_SNAPSHOT", "RUN_FINISHED"]
    assert sse_events(resumed.text) == sse_events(first.text)[3:]
    assert (bad.status_code, bad.json()["error"]["details"]["problems"][0]["path"]) == (
        422,
        "Last-Event-ID",
    )


async def test_a_cursor_that_cannot_be_continued(valkey_url: str, prefix: str) -> None:
    """The prelude is announced by a comment."""
    async with served(agent_of("x"), valkey_url, prefix) as server:
        await server.run("t", "r", "hi")
        head = await server.worker.log.head(key())
        headers = {"last-event-id": "9999"}
        body = request("t", "r", "hi")
        answer = await server.http.post("/agui", json=body, headers=headers)

    assert answer.text.startswith(f": resync head={head.seq}.{head.epoch}\n\n")
    assert sse_events(answer.text)[-1]["type"] == "RUN_FINISHED"


async def test_a_run_is_read_by_get(valkey_url: str, prefix: str) -> None:
    """Prelude and tail of a run without a cursor, the entries after it with one."""
    async with served(agent_of("a b c"), valkey_url, prefix) as server:
        first = await server.run("t", "r", "hi")
        joined = await server.http.get("/agui?runId=r&protocolVersion=1.0")
        raw = await server.http.get("/agui?runId=r&offset=-1&protocolVersion=1.0")

    assert [e["type"] for e in sse_events(joined.text)][1] == "MESSAGES_SNAPSHOT"
    assert sse_events(raw.text) == first


async def test_a_thread_is_watched_run_after_run(valkey_url: str, prefix: str) -> None:
    """The prelude, then live; the answer does not end by itself."""
    async with served(agent_of("one", "two"), valkey_url, prefix) as server:
        await server.run("t", "r1", "hi")
        async with server.http.stream("GET", "/agui?threadId=t&protocolVersion=1.0") as answer:
            lines = answer.aiter_lines()
            seen: list[dict[str, Any]] = []
            async with asyncio.timeout(scaled(10)):
                async for line in lines:
                    if line.startswith("data: "):
                        seen.append(json.loads(line.removeprefix("data: ")))
                    ends = [e["runId"] for e in seen if e["type"] == "RUN_FINISHED"]
                    if ends == ["r1"] and len(seen) == 3:
                        await server.run("t", "r2", "hi", "more")
                    if ends == ["r1", "r2"]:
                        break

    assert_valid(seen)


async def test_silence_is_kept_alive(valkey_url: str, prefix: str) -> None:
    """A comment every keepalive_s of silence, and no more while something is said."""
    limits = WebLimits(keepalive_s=0.05)
    async with served(agent_of(held()), valkey_url, prefix, limits=limits) as server:
        body = request("t", "r", "hi")
        async with server.http.stream("POST", "/agui", json=body) as answer:
            lines = await lines_of(answer, ": keep")
        await server.http.post("/agui/abort", json={"runId": "r"})
        await until_ended(server.worker, "r")

    assert lines[-1] == ": keep"


async def test_who_leaves_ends_nothing(
    valkey_url: str, prefix: str, caplog: pytest.LogCaptureFixture
) -> None:
    """The feed ends, the run goes on."""
    async with served(agent_of(held()), valkey_url, prefix) as server:
        body = request("t", "r", "hi")
        async with server.http.stream("POST", "/agui", json=body) as answer:
            await lines_of(answer, "id: 1.")
            assert server.worker.connections == 1
        await until(lambda: server.worker.connections == 0, "the connection is gone")

        assert server.worker.registry.active == 1
    assert [r for r in caplog.records if r.levelno >= logging.ERROR] == []


async def test_a_reader_that_stops_is_dropped(
    valkey_url: str, prefix: str, caplog: pytest.LogCaptureFixture
) -> None:
    """It costs one event, and its connection is freed at once; the run goes on."""
    caplog.set_level(logging.WARNING)
    limits = WebLimits(send_timeout_s=0.5)
    large = Said(" ".join(["x" * 60_000] * 150))
    async with served(agent_of(large), valkey_url, prefix, limits=limits) as server:
        host, _ = await stalled(server, request("t", "r", "go"))
        await until_ended(server.worker, "r")
        await until(lambda: server.worker.connections == 0, "the reader is dropped", 10)
        host.close()

    dropped = [r for r in caplog.records if "took no event" in r.message]
    assert len(dropped) == 1


async def test_an_event_that_does_not_fit_ends_the_answer(valkey_url: str, prefix: str) -> None:
    """A frame that only a resync could replace ends an answer with the comment."""
    async with served(agent_of("x" * 65_536), valkey_url, prefix) as server:
        whole = await server.run("t", "r", "hi")
        small = "/agui?runId=r&offset=-1&max_frame=65536&protocolVersion=1.0"
        answer = await server.http.get(small)

    assert answer.text.endswith(": resync\n\n")
    assert sse_events(answer.text) == whole[:3]


async def test_faults_of_a_stream_end_it(
    valkey_url: str, prefix: str, caplog: pytest.LogCaptureFixture
) -> None:
    """A store that is away is a warning, a fault of ours an error; the answer ends either way."""
    for error, level in ((StoreError("away"), logging.WARNING), (ValueError(), logging.ERROR)):
        sent: list[Any] = []
        caplog.clear()

        async def send(message: Any, sent: list[Any] = sent) -> None:
            sent.append(message)

        async def never() -> Any:
            await asyncio.Event().wait()

        async def fail(feeds: Any, error: Exception = error) -> None:
            raise error

        async with served(agent_of("x"), valkey_url, prefix) as server:
            services = services_of(server.worker)
            stream = EventStream(services, send, None, is_older=False)
            await stream.serve(never, fail)

        assert sent[-1] == {"type": "http.response.body", "body": b"", "more_body": False}
        assert [r.levelno for r in caplog.records if r.name.endswith("sse")] == [level]


async def test_a_write_that_is_reset(valkey_url: str, prefix: str) -> None:
    """What the server raises for a closed connection ends the delivery, quietly."""

    async def send(message: Any) -> None:
        if message["type"] == "http.response.body":
            raise OSError("reset")

    async def never() -> Any:
        await asyncio.Event().wait()

    async with served(agent_of("x"), valkey_url, prefix) as server:
        stream = EventStream(services_of(server.worker), send, None, is_older=False)

        async def deliver(feeds: Any) -> None:
            await stream._write(["data: x\n\n"])

        await stream.serve(never, deliver)
        assert server.worker.connections == 0


async def test_a_live_run_is_attached_to(valkey_url: str, prefix: str) -> None:
    """The same request while its run is live is answered with prelude and tail."""
    async with served(agent_of(held()), valkey_url, prefix) as server:
        await begun(server.worker, "r")
        body = request("t", "r", "hi")
        async with server.http.stream("POST", "/agui", json=body) as answer:
            lines: list[str] = []
            async with asyncio.timeout(scaled(10)):
                async for line in answer.aiter_lines():
                    if line.startswith("id: ") and not any(old.startswith("id: ") for old in lines):
                        await server.http.post("/agui/abort", json={"runId": "r"})
                    lines.append(line)

    types = [e["type"] for e in sse_events("\n".join(lines))]
    assert types[:2] == ["RUN_STARTED", "MESSAGES_SNAPSHOT"] and types[-1] == "RUN_FINISHED"


def services_of(worker: Worker) -> Services:
    """Return services with patient limits."""
    return Services(worker, WebLimits())


async def test_a_deleted_thread_ends_its_watch(valkey_url: str, prefix: str) -> None:
    """The answer ends; who asks again watches what has the name now."""
    async with served(agent_of("one"), valkey_url, prefix) as server:
        await server.run("t", "r1", "hi")
        async with server.http.stream("GET", "/agui?threadId=t&protocolVersion=1.0") as answer:
            lines = answer.aiter_lines()
            while not (await anext(lines)).startswith("id: "):
                pass
            await server.worker.threads.delete(key())
            rest = [line async for line in lines]

    assert len([line for line in rest if line]) == 1 and "RUN_FINISHED" in rest[0]
