"""The application of one worker: every route, and the worker's life around them."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

from starlette.datastructures import State
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Mount, Route, Router, WebSocketRoute
from starlette.types import ASGIApp, Receive, Scope, Send
from starlette.websockets import WebSocket

from backscroll.agui.capabilities import capabilities
from backscroll.agui.refusal import Problem, RequestRefused
from backscroll.runs.worker import Worker
from backscroll.web import console_calls, console_log, console_threads, ops
from backscroll.web.answers import json_answer, json_body, services_of
from backscroll.web.console_compaction import compaction_routes
from backscroll.web.console_pages import ConsoleFiles, console_folder
from backscroll.web.console_questions import answer_by_post, question_routes
from backscroll.web.console_socket import console_websocket
from backscroll.web.guard import Guard
from backscroll.web.handshake import agui_websocket
from backscroll.web.origins import OriginRules
from backscroll.web.services import Services, WebLimits
from backscroll.web.sse import get_feed, post_run

OpenWorker = Callable[[], AbstractAsyncContextManager[Worker]]


def build_app(
    open_worker: OpenWorker,
    limits: WebLimits,
    rules: OriginRules,
    on_ready: Callable[[Worker], None] | None = None,
) -> ASGIApp:
    """Return the application; its lifespan opens the worker and closes it again."""
    return Guard(Application(open_worker, limits, on_ready), rules)


class Application:
    """Routes without starlette's own error pages: the guard around it answers every error."""

    def __init__(
        self,
        open_worker: OpenWorker,
        limits: WebLimits,
        on_ready: Callable[[Worker], None] | None,
    ) -> None:
        self.state = State()
        self.state.console = ConsoleFiles(console_folder())

        @asynccontextmanager
        async def lifespan(app: Any) -> AsyncIterator[None]:
            async with open_worker() as worker:
                self.state.services = Services(worker, limits)
                if on_ready is not None:
                    on_ready(worker)
                yield

        self._router = Router(routes(), redirect_slashes=False, lifespan=lifespan)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection; routes are matched on the raw path.

        A thread's key is one segment of a path, whatever characters are in it.
        """
        scope = {**scope, "app": self}
        raw = scope.get("raw_path")
        if scope["type"] in ("http", "websocket") and raw:
            scope["path"] = raw.split(b"?")[0].decode("latin-1")
        try:
            await self._router(scope, receive, send)
        except HTTPException as error:
            path = scope["path"]
            if error.status_code == 405:
                message = f"{scope['method']} is not allowed on {path}."
                raise RequestRefused("method_not_allowed", message) from error
            raise RequestRefused("not_found", f"There is no route {path}.") from error


def routes() -> list[BaseRoute]:
    """Return every route of the application."""
    thread = "/threads/{thread}"
    api: list[BaseRoute] = [
        Route("/session", ops.session),
        Route("/system", ops.system),
        Route("/threads", console_threads.list_threads),
        Route(thread, console_threads.get_thread),
        Route(f"{thread}/runs", console_threads.list_runs),
        Route(f"{thread}/messages", console_threads.list_messages),
        Route(f"{thread}/messages/{{message}}", console_threads.get_message),
        Route(f"{thread}/cancel", console_threads.cancel_run, methods=["POST"]),
        Route(f"{thread}/entries", console_log.list_entries),
        Route(f"{thread}/entries/{{seq}}", console_log.get_entry),
        Route(f"{thread}/rows", console_log.list_rows),
        Route(f"{thread}/export", console_log.export),
        Route(f"{thread}/calls", console_calls.list_calls),
        Route(f"{thread}/calls/{{call}}", console_calls.get_call),
        Route(f"{thread}/calls/{{call}}/messages", console_calls.list_sent),
        Route(f"{thread}/calls/{{call}}/request", console_calls.get_request),
        Route(f"{thread}/compactions", console_calls.list_compactions),
        Route(f"{thread}/compactions/{{number}}", console_calls.get_compaction),
        *compaction_routes(thread),
        *question_routes(thread),
        Route("/{path:path}", _no_route),
    ]
    return [
        Route("/healthz", ops.healthz),
        Route("/readyz", ops.readyz),
        Route("/favicon.ico", _icon),
        Route("/", _page),
        Route("/agui/capabilities", _capabilities),
        Route("/agui/abort", _abort, methods=["POST"]),
        Route("/agui/answer", answer_by_post, methods=["POST"]),
        _AguiRoute("/agui", _agui_http),
        WebSocketRoute("/agui", _agui_socket),
        Route("/agui/{agent}/capabilities", _capabilities),
        _AguiRoute("/agui/{agent}", _agui_http),
        WebSocketRoute("/agui/{agent}", _agui_socket),
        Mount("/console/api", routes=api),
        WebSocketRoute("/console/ws", _console_socket),
        Route("/console/static/{hash}/{path:path}", _static),
        Route("/console", _page),
        Route("/console/{path:path}", _page),
    ]


class _AguiRoute(Route):
    """A route whose endpoint is plain ASGI, for GET and POST."""

    def __init__(self, path: str, endpoint: ASGIApp) -> None:
        super().__init__(path, _Plain(endpoint), methods=["GET", "POST"])


class _Plain:
    """An ASGI callable that starlette takes as it is."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._app(scope, receive, send)


async def _agui_http(scope: Scope, receive: Receive, send: Send) -> None:
    services: Services = scope["app"].state.services
    services.check_agent(scope)
    if scope["method"] == "POST":
        await post_run(services, scope, receive, send)
    elif scope["method"] == "HEAD":
        # A stream has no end, so there is nothing to tell of it but its bytes.
        raise RequestRefused("method_not_allowed", "HEAD is not allowed on a stream.")
    else:
        query = dict(Request(scope).query_params)
        await get_feed(services, scope, receive, send, query)


async def _agui_socket(socket: WebSocket) -> None:
    services: Services = socket.app.state.services
    query = dict(socket.query_params)
    await agui_websocket(services, socket.scope, socket._receive, socket._send, query)


async def _console_socket(socket: WebSocket) -> None:
    services: Services = socket.app.state.services
    await console_websocket(services, socket.scope, socket._receive, socket._send)


async def _capabilities(request: Request) -> Response:
    services = services_of(request)
    services.check_agent(request.scope)
    return json_answer(json.loads(capabilities(services.card())))


async def _abort(request: Request) -> Response:
    services = services_of(request)
    body = await json_body(request)
    if not isinstance(body.get("runId", body.get("threadId")), str):
        raise RequestRefused.of_problems([Problem("runId", "is missing, and so is threadId")])
    registry = services.worker.registry
    if "runId" in body:
        return json_answer({"stopping": await registry.stop(services.owner, body["runId"])})
    thread = services.thread(body["threadId"])
    run = (await services.worker.log.head(thread)).run
    stopping = bool(run) and await registry.store.stop(thread, run)
    return json_answer({"stopping": stopping})


async def _page(request: Request) -> Response:
    files: ConsoleFiles = request.app.state.console
    return await files.page(request)


async def _static(request: Request) -> Response:
    files: ConsoleFiles = request.app.state.console
    return await files.static(request)


async def _icon(request: Request) -> Response:
    files: ConsoleFiles = request.app.state.console
    return await files.icon(request)


async def _no_route(request: Request) -> Response:
    raise RequestRefused("not_found", f"There is no route {request.url.path}.")
