"""AG-UI over POST and GET with server-sent events."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping

from starlette.types import Receive, Scope, Send

from backscroll.agui.cursor import Cursor, parse_cursor
from backscroll.agui.input import read_request
from backscroll.agui.refusal import Problem, RequestRefused
from backscroll.kernel.errors import StoreError
from backscroll.runs.hub import ThreadDeleted
from backscroll.runs.registry import Accepted
from backscroll.web.answers import read_body
from backscroll.web.delivery import NeedsResync
from backscroll.web.feeds import Feeds, Peer, Resync, cancel_all
from backscroll.web.services import Services
from backscroll.web.serving import abort_of
from backscroll.web.socket_query import read_query
from backscroll.web.writer import PeerGone

logger = logging.getLogger(__name__)

ENDING_S = 1.0
KEEP = ": keep\n\n"
HEADERS = [
    (b"content-type", b"text/event-stream"),
    (b"cache-control", b"no-cache, no-transform"),
    (b"x-accel-buffering", b"no"),
]


async def post_run(services: Services, scope: Scope, receive: Receive, send: Send) -> None:
    """Start the run a body asks for and stream it; a refusal is a JSON error."""
    headers = {name.lower(): value for name, value in scope["headers"]}
    data = await read_body(receive, headers, services.limits.input.input_bytes)
    cursor = _last_event_id(headers)
    registry = services.worker.registry
    try:
        request = read_request(data, services.limits.input)
    except RequestRefused as refusal:
        await registry.refusals.note(services.owner, refusal)
        raise
    accepted = await registry.submit(services.owner, request)
    stream = EventStream(services, send, abort_of(scope), is_older=request.is_older_peer)

    async def deliver(feeds: Feeds) -> None:
        if accepted.attached and cursor is not None:
            await feeds.resume_run(accepted.thread, accepted.run_id, accepted.after + 1, cursor)
        else:
            await feeds.run(accepted)

    await stream.serve(receive, deliver)


async def get_feed(
    services: Services, scope: Scope, receive: Receive, send: Send, query: Mapping[str, str]
) -> None:
    """Stream a thread, or a run until it has ended."""
    asked = read_query(query)
    headers = {name.lower(): value for name, value in scope["headers"]}
    offset = _last_event_id(headers) or asked.offset
    stream = EventStream(
        services, send, abort_of(scope), is_older=asked.is_older, max_frame=asked.max_frame
    )
    if asked.run_id is not None:
        deliver = await _of_run(services, asked.run_id, offset)
    elif asked.thread_id is not None:
        thread = services.thread(asked.thread_id)

        async def deliver(feeds: Feeds) -> None:
            await feeds.watch(thread, offset)
    else:
        raise RequestRefused.of_problems([Problem("threadId", "is missing, and so is runId")])
    await stream.serve(receive, deliver)


def _last_event_id(headers: Mapping[bytes, bytes]) -> Cursor | None:
    found = headers.get(b"last-event-id")
    return None if found is None else parse_cursor(found.decode("latin-1"), "Last-Event-ID")


async def _of_run(
    services: Services, run_id: str, offset: Cursor | None
) -> Callable[[Feeds], Awaitable[None]]:
    info = await services.worker.registry.store.run_info(services.owner, run_id)
    if info is None:
        raise RequestRefused("not_found", f"There is no run {run_id}.", {"runId": run_id})

    async def deliver(feeds: Feeds) -> None:
        if offset is None:
            await feeds.run(Accepted(info.thread, run_id, info.first - 1, attached=True))
        else:
            await feeds.resume_run(info.thread, run_id, info.first, offset)

    return deliver


class EventStream:
    """One answer of server-sent events; comments keep it alive while nothing happens."""

    def __init__(
        self,
        services: Services,
        send: Send,
        abort: Callable[[], None] | None,
        *,
        is_older: bool,
        max_frame: int | None = None,
    ) -> None:
        self._services, self._send, self._abort = services, send, abort
        self._turn = asyncio.Lock()
        self._spoke = asyncio.Event()
        self._is_gone = False
        self._peer = Peer(
            "sse",
            is_older,
            max_frame or services.limits.sse_max_frame,
            self._write,
            self._resync,
        )

    async def serve(self, receive: Receive, deliver: Callable[[Feeds], Awaitable[None]]) -> None:
        """Stream until the delivery ends or the peer leaves; what was started goes on."""
        await self._send({"type": "http.response.start", "status": 200, "headers": HEADERS})
        self._services.worker.connections += 1
        delivery = asyncio.ensure_future(self._guarded(deliver))
        leaving = asyncio.ensure_future(_until_gone(receive))
        keeping = asyncio.ensure_future(self._keep_alive())
        closing = asyncio.ensure_future(self._until_closing(delivery))
        tasks = [delivery, leaving, keeping, closing]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            if delivery.done() or closing.done():
                await cancel_all([delivery])
                await self._body(b"", more=False)
        except PeerGone:
            logger.debug("a reader left before the end of its stream")
        finally:
            self._services.worker.connections -= 1
            await cancel_all(tasks)

    async def _guarded(self, deliver: Callable[[Feeds], Awaitable[None]]) -> None:
        try:
            await deliver(Feeds(self._services, self._peer))
        except PeerGone:
            return
        except NeedsResync:
            await self._write([": resync\n\n"])
        except ThreadDeleted:
            return
        except StoreError as error:
            logger.warning("a stream ended: %s", error)
        except Exception:
            logger.exception("a stream failed")

    async def _until_closing(self, delivery: asyncio.Task[None]) -> None:
        """Return when the worker leaves; a delivery gets a moment for the last events."""
        await self._services.worker.registry.drained.wait()
        await asyncio.wait([delivery], timeout=ENDING_S)

    async def _keep_alive(self) -> None:
        while True:
            self._spoke.clear()
            try:
                async with asyncio.timeout(self._services.limits.keepalive_s):
                    await self._spoke.wait()
            except TimeoutError:
                await self._write([KEEP])

    async def _write(self, frames: Iterable[str]) -> None:
        self._spoke.set()
        async with self._turn:
            for frame in frames:
                await self._body(frame.encode())

    async def _body(self, data: bytes, *, more: bool = True) -> None:
        if self._is_gone:
            raise PeerGone
        timeout_s = self._services.limits.send_timeout_s
        try:
            async with asyncio.timeout(timeout_s):
                await self._send({"type": "http.response.body", "body": data, "more_body": more})
        except TimeoutError as error:
            self._is_gone = True
            logger.warning("a reader took no event for %s s and was dropped", timeout_s)
            if self._abort is not None:
                self._abort()
            raise PeerGone from error
        except OSError as error:
            self._is_gone = True
            raise PeerGone from error

    async def _resync(self, resync: Resync) -> None:
        await self._write([f": resync head={resync.head}\n\n"])


async def _until_gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
