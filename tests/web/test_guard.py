"""The outermost layer: host, origin, CORS, and the one shape of errors."""

from __future__ import annotations

import logging
from typing import Any

import httpx
import pytest
import websockets
from backscroll.agui.refusal import RequestRefused
from backscroll.kernel.errors import BackscrollError, ModelError, StoreError
from backscroll.web.guard import Guard
from backscroll.web.origins import OriginRules
from served import request, served
from working import agent_of

FOREIGN = "https://app.example"
RULES = OriginRules(origins=frozenset({FOREIGN}))


def client(app: Any, rules: OriginRules = RULES) -> httpx.AsyncClient:
    """Return a client that calls an application behind the guard."""
    transport = httpx.ASGITransport(Guard(app, rules), raise_app_exceptions=False)
    return httpx.AsyncClient(transport=transport, base_url="http://localhost")


def raising(error: Exception, *, after_start: bool = False) -> Any:
    """Return an application that fails."""

    async def app(scope: Any, receive: Any, send: Any) -> None:
        if after_start:
            await send({"type": "http.response.start", "status": 200, "headers": []})
        raise error

    return app


async def fine(scope: Any, receive: Any, send: Any) -> None:
    """Answer everything."""
    await send({"type": "http.response.start", "status": 200, "headers": [(b"x-own", b"1")]})
    await send({"type": "http.response.body", "body": b"fine"})


async def test_a_refusal_has_the_one_shape() -> None:
    """Code, message, details with the request's id; when to come back."""
    refusal = RequestRefused("draining", "Restarting.", {"part": "worker"})
    async with client(raising(refusal)) as http:
        answer = await http.get("/")

    error = answer.json()["error"]
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")
    assert (error["code"], error["message"]) == ("draining", "Restarting.")
    assert error["details"].pop("request_id").startswith("req_")
    assert error["details"] == {"part": "worker", "retryable": True}
    assert answer.headers["content-type"] == "application/json"
    assert answer.headers["cache-control"] == "no-store"


@pytest.mark.parametrize(
    ("error", "status", "code"),
    [
        (StoreError("redis://:secret@host is away"), 503, "unavailable"),
        (ValueError("/etc/secret"), 500, "internal_error"),
        (ModelError("auth", "the key sk-secret"), 500, "internal_error"),
        (BackscrollError("secret"), 500, "internal_error"),
    ],
)
async def test_what_went_wrong_inside_stays_inside(
    error: Exception, status: int, code: str, caplog: pytest.LogCaptureFixture
) -> None:
    """No stack trace, path, key or provider body leaves; the server's log has them."""
    async with client(raising(error)) as http:
        answer = await http.get("/")

    assert (answer.status_code, answer.json()["error"]["code"]) == (status, code)
    assert "secret" not in answer.text
    assert "secret" in caplog.text


async def test_a_failure_after_the_start_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    """An answer that has begun cannot become an error; it ends early."""
    for error in (StoreError("away"), ValueError("boom")):
        with pytest.raises(type(error)):
            transport = httpx.ASGITransport(Guard(raising(error, after_start=True), RULES))
            async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as http:
                await http.get("/")

    assert [r.levelno for r in caplog.records] == [logging.WARNING, logging.ERROR]


async def test_hosts_and_origins_are_checked_first() -> None:
    """A wrong host always, a wrong origin on what changes something."""
    async with client(fine) as http:
        host = await http.get("/", headers={"host": "evil.example"})
        origin = await http.post("/", headers={"origin": "https://evil.example"})
        null = await http.post("/", headers={"origin": "null"})
        read = await http.get("/", headers={"origin": "https://evil.example"})
        own = await http.post("/", headers={"origin": "http://localhost"})

    assert (host.status_code, host.json()["error"]["code"]) == (403, "bad_host")
    assert [a.json()["error"]["code"] for a in (origin, null)] == ["bad_origin"] * 2
    assert "access-control-allow-origin" not in read.headers
    assert (read.status_code, own.status_code) == (200, 200)


async def test_preflights_of_allowed_origins() -> None:
    """204, the methods, the requested headers echoed, ten minutes."""
    asked = {"origin": FOREIGN, "access-control-request-headers": "content-type, x-a"}
    async with client(raising(AssertionError())) as http:
        answer = await http.options("/agui", headers=asked)
        plain = await http.options("/agui", headers={"origin": FOREIGN})

    headers = answer.headers
    assert (answer.status_code, answer.content) == (204, b"")
    assert headers["access-control-allow-origin"] == FOREIGN and headers["vary"] == "Origin"
    assert headers["access-control-allow-credentials"] == "true"
    assert headers["access-control-allow-methods"] == "GET, POST, PATCH, DELETE, OPTIONS"
    assert headers["access-control-allow-headers"] == "content-type, x-a"
    assert headers["access-control-max-age"] == "600"
    assert "access-control-allow-headers" not in plain.headers


async def test_answers_to_allowed_origins_name_them() -> None:
    """Errors too, since the page must be able to read why."""
    refusal = RequestRefused("not_found", "No.")
    for app, status in ((fine, 200), (raising(refusal), 404)):
        async with client(app) as http:
            answer = await http.get("/", headers={"origin": FOREIGN})

        assert answer.status_code == status
        assert answer.headers["access-control-allow-origin"] == FOREIGN
        assert answer.headers["vary"] == "Origin"


async def test_a_socket_of_a_wrong_page_is_not_upgraded(valkey_url: str, prefix: str) -> None:
    """403 before the upgrade, for a wrong origin and for a wrong host."""
    async with served(agent_of("hi"), valkey_url, prefix) as server:
        for headers in ({"Origin": "https://evil.example"}, {"Origin": "null"}):
            with pytest.raises(websockets.InvalidStatus) as refused:
                await server.socket(additional_headers=headers)
            assert refused.value.response.status_code == 403
        own = f"http://127.0.0.1:{server.port}"
        async with server.socket(additional_headers={"Origin": own}) as socket:
            await socket.send('{"type":"ping"}')

            assert await socket.recv() == '{"type":"pong"}'


async def test_a_page_elsewhere_can_use_the_server(valkey_url: str, prefix: str) -> None:
    """An allowed origin posts and reads the stream."""
    origins = OriginRules(origins=frozenset({FOREIGN}))
    async with served(agent_of("hi"), valkey_url, prefix, origins=origins) as server:
        body = request("t", "r", "hello")
        answer = await server.http.post("/agui", json=body, headers={"origin": FOREIGN})

    assert answer.headers["access-control-allow-origin"] == FOREIGN
    assert "RUN_FINISHED" in answer.text


async def test_other_kinds_of_connection_pass() -> None:
    """Lifespan is not a request."""
    seen: list[str] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        seen.append(scope["type"])

    await Guard(app, RULES)({"type": "lifespan"}, None, None)  # type: ignore[arg-type]

    assert seen == ["lifespan"]
