"""Every route of a worker: who answers, in which shape, whatever is asked."""

from __future__ import annotations

import json
import re
from typing import Any
from urllib.parse import quote

import pytest
import websockets
from backscroll.agui.checks import InputLimits
from backscroll.web.app import Application, routes
from backscroll.web.services import WebLimits
from served import read_run, request, served
from starlette.routing import Mount, Route
from working import agent_of, begun, held, until_ended

THREAD = "/console/api/threads/nope"


def paths() -> list[str]:
    """Return every HTTP route, its parameters filled with what does not exist."""
    found = []
    for route in routes():
        inner = route.routes if isinstance(route, Mount) else [route]
        prefix = route.path if isinstance(route, Mount) else ""
        found += [prefix + item.path for item in inner or () if isinstance(item, Route)]
    # A number where one is meant, a name that nobody has everywhere else.
    numbers = re.compile(r"\{(call|seq|number)\}")
    found = [re.sub(r"\{[^}]+\}", "nope", numbers.sub("7", path)) for path in found]
    return sorted(set(found))


def test_no_route_is_left_out() -> None:
    """The list of this test is that of the application."""
    assert len(paths()) > 25 and not [path for path in paths() if "{" in path]


async def test_every_error_has_the_one_shape(valkey_url: str, prefix: str) -> None:
    """On every route, by every method, whatever is wrong."""
    async with served(agent_of("x"), valkey_url, prefix) as server:
        errors: dict[str, Any] = {}
        for path in [
            *paths(),
            "/nope",
            "/console/api/nope",
            "/agui/a/b/c",
            "/console/api/threads/",
        ]:
            for method in ("GET", "POST", "PATCH", "DELETE", "PUT"):
                answer = await server.http.request(method, path, content=b"not json")
                if answer.status_code >= 400:
                    errors[f"{method} {path}"] = answer

    assert len(errors) > 100
    for name, answer in errors.items():
        body = answer.json()
        assert list(body) == ["error"], name
        assert body["error"]["message"] and answer.status_code < 500, name
        assert body["error"]["details"]["request_id"].startswith("req_"), name
        assert answer.headers["content-type"] == "application/json", name


@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [
        ("GET", "/nope", 404, "not_found"),
        ("DELETE", "/agui", 405, "method_not_allowed"),
        ("HEAD", "/agui?threadId=t", 405, "method_not_allowed"),
        ("POST", "/agui/other", 404, "not_found"),
        ("GET", "/agui/other?threadId=t", 404, "not_found"),
        ("GET", "/agui/other/capabilities", 404, "not_found"),
        ("GET", "/agui", 422, "invalid_input"),
        ("GET", "/agui?runId=nope", 404, "not_found"),
        ("GET", "/agui?threadId=t&offset=x", 422, "invalid_input"),
        ("POST", "/agui", 400, "not_json"),
        ("POST", "/agui/abort", 422, "invalid_input"),
        ("GET", THREAD, 404, "not_found"),
        ("POST", f"{THREAD}/cancel", 404, "not_found"),
        ("GET", f"{THREAD}/messages/m", 404, "not_found"),
        ("GET", f"{THREAD}/entries/1", 404, "not_found"),
        ("GET", f"{THREAD}/entries/{'9' * 30}", 404, "not_found"),
        ("GET", f"{THREAD}/entries?after=-1", 422, "invalid_input"),
        ("GET", f"{THREAD}/calls/latest", 404, "not_found"),
        ("GET", f"{THREAD}/calls/x/messages", 404, "not_found"),
        ("GET", f"{THREAD}/compactions/9", 404, "not_found"),
        ("GET", f"{THREAD}/export?format=odd", 422, "invalid_input"),
        ("GET", "/console/api/threads?sort=odd", 422, "invalid_input"),
        ("GET", "/console/api/threads?cursor=odd", 422, "invalid_input"),
        ("GET", "/console/static/old/main.js", 404, "not_found"),
    ],
)
async def test_what_is_wrong_is_said(
    valkey_url: str, prefix: str, method: str, path: str, status: int, code: str
) -> None:
    """Each refusal has its status and its code."""
    async with served(agent_of("x"), valkey_url, prefix) as server:
        answer = await server.http.request(method, path)

    assert answer.status_code == status
    if method != "HEAD":
        assert answer.json()["error"]["code"] == code


@pytest.mark.parametrize("thread", ["a b", "a/b", "{x}", "会话", "%2F", "a?b#c", "..", "a\\b"])
async def test_whatever_a_thread_is_called(valkey_url: str, prefix: str, thread: str) -> None:
    """Its key is one segment on every route, and its runs are its own."""
    async with served(agent_of("hi"), valkey_url, prefix) as server:
        events = await server.run(thread, "r", "hello")
        (head,) = (await server.get("/console/api/threads"))["threads"]
        path = f"/console/api/threads/{quote(head['thread'], safe='')}"
        one = await server.get(path)
        messages = (await server.get(f"{path}/messages"))["messages"]
        rows = (await server.get(f"{path}/rows"))["rows"]
        call = await server.get(f"{path}/calls/latest")

    assert events[0]["threadId"] == thread == one["thread_id"] == head["thread_id"]
    assert [m["role"] for m in messages] == ["user", "assistant"] and rows
    assert call["call"] == 1


async def test_capabilities_and_the_named_agent(valkey_url: str, prefix: str) -> None:
    """The agent is served under its own name too."""
    async with served(agent_of("x", "y"), valkey_url, prefix) as server:
        card = await server.get("/agui/capabilities")
        assert await server.get("/agui/a/capabilities") == card
        answer = await server.http.post("/agui/a", json=request("t", "r", "hello"))
        async with server.socket("/agui/a") as socket:
            await socket.send(json.dumps(request("t2", "r2", "hello")))
            events = await read_run(socket)

    assert card["identity"]["name"] == "a" and card["transport"]["websocket"] is True
    assert "RUN_FINISHED" in answer.text and events[-1]["type"] == "RUN_FINISHED"


async def test_a_socket_of_an_unknown_agent_is_refused(valkey_url: str, prefix: str) -> None:
    """Like every bad address: it is told what is wrong, then closed."""
    async with served(agent_of("x"), valkey_url, prefix) as server:
        async with server.socket("/agui/other") as socket:
            event = json.loads(await socket.recv())
            with pytest.raises(websockets.ConnectionClosed) as closed:
                await socket.recv()

    assert (event["code"], event["message"]) == ("not_found", "There is no agent other.")
    assert closed.value.rcvd is not None and closed.value.rcvd.code == 1008


async def test_a_socket_without_a_route_is_refused(valkey_url: str, prefix: str) -> None:
    """Nothing is opened, and nothing alarming is logged."""
    async with served(agent_of("x"), valkey_url, prefix) as server:
        with pytest.raises(websockets.InvalidStatus) as refused:
            await server.socket("/nope")

    assert refused.value.response.status_code == 403


async def test_a_run_is_aborted_by_request(valkey_url: str, prefix: str) -> None:
    """For HTTP-only clients, by run or by thread; a second time there is nothing to stop."""
    async with served(agent_of(held(), held()), valkey_url, prefix) as server:
        await begun(server.worker, "r1")
        by_run = await server.http.post("/agui/abort", json={"runId": "r1"})
        await until_ended(server.worker, "r1")
        await begun(server.worker, "r2", "hi", "again")
        by_thread = await server.http.post("/agui/abort", json={"threadId": "t"})
        nothing = await server.http.post("/agui/abort", json={"threadId": "unknown"})
        neither = await server.http.post("/agui/abort", json={"runId": 7})
        unknown = await server.http.post("/agui/abort", json={"runId": "nope"})

    assert by_run.json() == by_thread.json() == {"stopping": True}
    assert nothing.json() == {"stopping": False}
    assert (neither.status_code, unknown.status_code) == (422, 404)


async def test_a_body_above_the_limit(valkey_url: str, prefix: str) -> None:
    """413 on every route that takes one, naming the limit; the server goes on."""
    limits = WebLimits(InputLimits(input_bytes=10_000))
    async with served(agent_of("hi"), valkey_url, prefix, limits=limits) as server:
        for path in ("/agui", "/agui/abort", "/console/api/threads/t/cancel"):
            await server.run("t", "r", "hello")
            answer = await server.http.post(path, content=b"x" * 20_000)
            assert (answer.status_code, answer.json()["error"]["code"]) == (413, "too_large")
            assert answer.json()["error"]["details"]["limit"] == 10_000


async def test_the_console_is_served(valkey_url: str, prefix: str) -> None:
    """The root leads to the console, every page of it is the shell, the icon is there."""
    async with served(agent_of("x"), valkey_url, prefix) as server:
        root = await server.http.get("/console")
        page = await server.http.get("/console/threads/t/timeline")
        first = await server.http.get("/")
        icon = await server.http.get("/favicon.ico")

    assert (root.status_code, root.headers["location"]) == (307, "/console/threads")
    assert page.headers["content-type"].startswith("text/html") and page.status_code == 200
    assert first.status_code in (200, 307) and icon.headers["content-type"] == "image/svg+xml"


async def test_the_console_socket_is_there(valkey_url: str, prefix: str) -> None:
    """One object per frame."""
    async with served(agent_of("x"), valkey_url, prefix) as server:
        async with server.socket("/console/ws") as socket:
            await socket.send("{}")

            assert json.loads(await socket.recv())["error"]["code"] == "invalid_input"


def test_the_application_has_its_files_before_it_opens() -> None:
    """The console is read once, at the start."""

    def never() -> Any:
        raise AssertionError

    assert Application(never, WebLimits(), None).state.console.hash
