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
from backscroll.runs.registry import Accepted
from backscroll.web.delivery import NeedsResync
from backscroll.web.feeds import Feeds, Peer, Resync, cancel_all
from backscroll.web.services import Services
from backscroll.web.socket_query import read_query
from backscroll.web.writer import PeerGone

logger = logging.getLogger(__name__)

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
    request = read_request(data, services.limits.input)
    accepted = await services.worker.registry.submit(services.owner, request)
    resumed = headers.get(b"last-event-id")
    stream = EventStream(services, send, is_older=request.is_older_peer)

    async def deliver(feeds: Feeds) -> None:
        if accepted.attached and resumed is not None:
            cursor = parse_cursor(resumed.decode("latin-1"), "Last-Event-ID")
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
    offset = asked.offset
    if b"last-event-id" in headers:
        offset = parse_cursor(headers[b"last-event-id"].decode("latin-1"), "Last-Event-ID")
    stream = EventStream(services, send, is_older=asked.is_older, max_frame=asked.max_frame)
    if asked.run_id is not None:
        deliver = await _of_run(services, asked.run_id, offset)
    elif asked.thread_id is not None:
        thread = services.thread(asked.thread_id)

        async def deliver(feeds: Feeds) -> None:
            await feeds.watch(thread, offset)
    else:
        raise RequestRefused.of_problems([Problem("threadId", "is missing, and so is runId")])
    await stream.serve(receive, deliver)


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
        self, services: Services, send: Send, *, is_older: bool, max_frame: int | None = None
    ) -> None:
        self._services, self._send = services, send
        self._turn = asyncio.Lock()
        self._spoke = asyncio.Event()
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
        try:
            await asyncio.wait([delivery, leaving, keeping], return_when=asyncio.FIRST_COMPLETED)
            if delivery.done():
                await self._send({"type": "http.response.body", "body": b""})
        except OSError:
            logger.debug("a reader left before the end of its stream")
        finally:
            self._services.worker.connections -= 1
            await cancel_all([delivery, leaving, keeping])

    async def _guarded(self, deliver: Callable[[Feeds], Awaitable[None]]) -> None:
        try:
            await deliver(Feeds(self._services, self._peer))
        except PeerGone:
            return
        except NeedsResync:
            await self._write([": resync\n\n"])
        except StoreError as error:
            logger.warning("a stream ended: %s", error)
        except Exception:
            logger.exception("a stream failed")

    async def _keep_alive(self) -> None:
        while True:
            self._spoke.clear()
            try:
                async with asyncio.timeout(self._services.limits.keepalive_s):
                    await self._spoke.wait()
            except TimeoutError:
                await self._write([KEEP])
            except PeerGone:
                return

    async def _write(self, frames: Iterable[str]) -> None:
        self._spoke.set()
        async with self._turn:
            for frame in frames:
                await self._body(frame.encode())

    async def _body(self, data: bytes) -> None:
        message = {"type": "http.response.body", "body": data, "more_body": True}
        try:
            async with asyncio.timeout(self._services.limits.send_timeout_s):
                await self._send(message)
        except (TimeoutError, OSError) as error:
            raise PeerGone from error

    async def _resync(self, resync: Resync) -> None:
        await self._write([f": resync head={resync.head}\n\n"])


async def read_body(receive: Receive, headers: Mapping[bytes, bytes], limit: int) -> bytes:
    """Return the body of a request; raises `too_large` before more than the limit is held."""
    stated = headers.get(b"content-length", b"0")
    size = int(stated) if stated.isdigit() else 0
    parts: list[bytes] = []
    got = 0
    while size <= limit:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise RequestRefused("not_json", "the body ended early")
        parts.append(message.get("body", b""))
        got += len(parts[-1])
        size = max(size, got)
        if not message.get("more_body", False):
            break
    if size > limit:
        message_text = f"the request has {size:,} bytes or more, allowed are {limit:,}"
        raise RequestRefused("too_large", message_text, {"limit": limit})
    return b"".join(parts)


async def _until_gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
