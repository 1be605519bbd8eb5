"""The outermost layer: host, origin, CORS, request ids, and the one shape of errors."""

from __future__ import annotations

import json
import logging
import secrets
from collections.abc import Iterable

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from backscroll.agui.refusal import RequestRefused, error_body, http_status
from backscroll.kernel.errors import BackscrollError, StoreError
from backscroll.web.answers import SECURITY_HEADERS
from backscroll.web.origins import SAFE_METHODS, OriginRules

logger = logging.getLogger(__name__)

_CORS = (
    (b"access-control-allow-methods", b"GET, POST, PATCH, DELETE, OPTIONS"),
    (b"access-control-max-age", b"600"),
)


class Guard:
    """Lets through what may come in, and turns every error into the one JSON shape."""

    def __init__(self, app: ASGIApp, rules: OriginRules) -> None:
        self._app, self._rules = app, rules

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one HTTP request or WebSocket."""
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        scope.setdefault("state", {})["request_id"] = f"req_{secrets.token_hex(6)}"
        refusal = self._check(scope, headers)
        if scope["type"] == "websocket":
            if refusal is not None:
                await send({"type": "websocket.close", "code": 4403, "reason": refusal.code})
                return
            await self._app(scope, receive, send)
            return
        if refusal is None and self._rules.is_foreign(headers.get("origin"), headers.get("host")):
            if scope["method"] == "OPTIONS":
                await _answer(send, 204, b"", _preflight(headers))
                return
            send = _with_headers(send, _cors(headers["origin"]))
        await self._http(scope, receive, send, refusal)

    def _check(self, scope: Scope, headers: Headers) -> RequestRefused | None:
        host, origin = headers.get("host"), headers.get("origin")
        if not self._rules.host_allowed(host):
            return RequestRefused("bad_host", f"The host {host!r} is not served here.")
        is_safe = scope["type"] == "http" and scope["method"] in SAFE_METHODS
        if not is_safe and not self._rules.origin_allowed(origin, host):
            return RequestRefused("bad_origin", f"Pages of {origin!r} may not call this server.")
        return None

    async def _http(
        self, scope: Scope, receive: Receive, send: Send, refusal: RequestRefused | None
    ) -> None:
        started = False

        async def watch(message: Message) -> None:
            nonlocal started
            started = started or message["type"] == "http.response.start"
            await send(message)

        try:
            if refusal is not None:
                raise refusal
            await self._app(scope, receive, watch)
        except BackscrollError as error:
            if started:
                logger.warning("an answer ended early: %s", error)
                raise
            await send_error(send, _public(error), scope["state"]["request_id"])
        except Exception:
            request_id = scope["state"]["request_id"]
            logger.exception("request %s failed", request_id)
            if started:
                raise
            await send_error(send, internal(), request_id)


def internal() -> RequestRefused:
    """Return what a peer is told of a fault of ours: nothing but that it was one."""
    return RequestRefused("internal_error", "The server failed; its log has the request id.")


async def send_error(send: Send, error: BackscrollError, request_id: str) -> None:
    """Answer an HTTP request with the one error shape."""
    status = http_status(error)
    body = json.dumps(error_body(error, request_id=request_id), ensure_ascii=False).encode()
    headers = [(b"content-type", b"application/json"), (b"cache-control", b"no-store")]
    headers += [(name.lower().encode(), text.encode()) for name, text in SECURITY_HEADERS.items()]
    after = error.retry_after_s if isinstance(error, RequestRefused) else None
    if after is not None:
        headers.append((b"retry-after", str(after).encode()))
    await _answer(send, status.http, body, headers)


def _public(error: BackscrollError) -> BackscrollError:
    """Return what may be shown of an error: a store's own words stay in the log."""
    if isinstance(error, StoreError):
        logger.warning("%s", error)
        return RequestRefused("unavailable", "The conversation store is not available right now.")
    if isinstance(error, RequestRefused):
        return error
    logger.error("an error reached the edge", exc_info=error)
    return internal()


async def _answer(
    send: Send, status: int, body: bytes, headers: Iterable[tuple[bytes, bytes]]
) -> None:
    length = (b"content-length", str(len(body)).encode())
    start: Message = {
        "type": "http.response.start",
        "status": status,
        "headers": [*headers] if status == 204 else [*headers, length],
    }
    await send(start)
    await send({"type": "http.response.body", "body": body})


def _cors(origin: str) -> list[tuple[bytes, bytes]]:
    return [
        (b"access-control-allow-origin", origin.encode()),
        (b"access-control-allow-credentials", b"true"),
        (b"vary", b"Origin"),
    ]


def _preflight(headers: Headers) -> list[tuple[bytes, bytes]]:
    asked = headers.get("access-control-request-headers", "")
    allowed = [(b"access-control-allow-headers", asked.encode())] if asked else []
    return [*_cors(headers["origin"]), *_CORS, *allowed]


def _with_headers(send: Send, extra: list[tuple[bytes, bytes]]) -> Send:
    async def wrapped(message: Message) -> None:
        if message["type"] == "http.response.start":
            message = {**message, "headers": [*message.get("headers", ()), *extra]}
        await send(message)

    return wrapped
