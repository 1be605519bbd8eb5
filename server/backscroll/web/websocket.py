"""The AG-UI WebSocket: requests and control frames in, feeds out, in either dialect."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping
from functools import partial
from typing import Any

from starlette.types import Receive

from backscroll.agui.control import Abort, Answer, Ping, Unwatch, Watch, is_control, parse_control
from backscroll.agui.input import parse_object, read_input
from backscroll.agui.refusal import RequestRefused
from backscroll.agui.refused import refusal_event, refusal_notice
from backscroll.kernel.canon import canonical_json
from backscroll.kernel.errors import StoreError
from backscroll.runs.hub import ThreadDeleted
from backscroll.runs.registry import Accepted
from backscroll.web.bad_frames import BadFrames
from backscroll.web.console_questions import answer_notice
from backscroll.web.delivery import NeedsResync
from backscroll.web.feeds import Feeds, Peer, Resync, cancel_all, older
from backscroll.web.services import Services
from backscroll.web.socket_query import SocketQuery
from backscroll.web.writer import PeerGone, SocketWriter

logger = logging.getLogger(__name__)

PING = '{"type":"ping"}'
PONG = '{"type":"pong"}'
QUEUED = 256


def unwatched(thread_id: str) -> str:
    """Return the notice that a watch has ended."""
    return canonical_json({"type": "unwatched", "threadId": thread_id})


Job = Callable[[], Awaitable[None]]


class AguiSocket:
    """One connection: what it watches, what it has asked for, and when it ends."""

    def __init__(
        self, services: Services, query: SocketQuery, receive: Receive, writer: SocketWriter
    ) -> None:
        self._services, self._query = services, query
        self._receive, self._writer = receive, writer
        self._registry = services.worker.registry
        self._is_durable = query.dialect == "durable"
        self._is_read_only = query.run_id is not None and query.offset is not None
        self._watches: dict[str, asyncio.Task[None]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._delivering: set[str] = set()
        # The bare dialect is one stream: what is to be delivered waits here for its turn.
        self._stream: asyncio.Queue[Job] = asyncio.Queue(QUEUED)
        self._bad = BadFrames()
        self._peer = Peer(
            query.dialect,
            query.is_older,
            query.max_frame or services.limits.max_frame,
            self._write,
            self._resync if self._is_durable else None,
        )

    async def serve(self) -> None:
        """Serve until either side closes; what was started goes on without this connection."""
        try:
            self._open()
            await self._read()
        except StoreError as error:
            logger.warning("a socket ended: %s", error)
            await self._writer.close(1013, "unavailable")
        finally:
            await cancel_all([*self._tasks, *self._watches.values()])

    def _open(self) -> None:
        """Begin what the address asks for."""
        query = self._query
        if self._is_durable:
            self._start(self._keep_alive)
        else:
            self._start(self._deliver_stream)
        if self._is_read_only:
            self._start(self._replay)
        elif query.thread_id is not None:
            self._watch(query.thread_id, Watch(query.thread_id, query.offset))

    async def _read(self) -> None:
        while not self._writer.is_closed:
            try:
                async with asyncio.timeout(self._services.limits.idle_s):
                    message = await self._receive()
            except TimeoutError:
                if not self._is_busy:
                    await self._writer.close(1000, "idle")
                    return
                continue
            if message["type"] == "websocket.disconnect":
                self._writer.gone()
                return
            await self._frame(message.get("text"), message.get("bytes"))

    @property
    def _is_busy(self) -> bool:
        """Say whether something is being delivered or waited for."""
        return bool(self._watches or self._delivering or self._is_read_only)

    async def _frame(self, text: str | None, data: bytes | None) -> None:
        try:
            if text is None:
                size = len(data or b"")
                raise RequestRefused("not_json", f"not a text frame but {size} binary bytes")
            frame = parse_object(text, self._services.limits.input)
            if self._is_read_only:
                raise RequestRefused("read_only", "This socket replays a run and takes no frames.")
            if is_control(frame):
                await self._answered(frame)
            else:
                self._request(frame)
        except RequestRefused as refusal:
            await self._refuse(refusal)
            await self._registry.refusals.note(self._services.owner, refusal)
            await self._count_bad()

    def _request(self, frame: Mapping[str, Any]) -> None:
        """Start what a request asks for; its events come when what was before it is through."""
        request = read_input(frame, self._services.limits.input)
        if self._query.protocol_version is None:
            self._peer = older(self._peer, request.is_older_peer)
        is_watched = request.thread_id in self._watches
        if self._watches and not self._is_durable and not is_watched:
            message = f"This socket watches thread {self._query.thread_id} and nothing else."
            raise RequestRefused("one_stream", message).for_request(
                request.thread_id, request.run_id
            )
        if request.run_id in self._delivering:
            return
        limits = self._services.limits
        limit = limits.feeds_per_socket if self._is_durable else limits.bare_feeds
        if len(self._delivering) + len(self._watches) >= limit:
            message = f"This socket has {limit} feeds already; wait for one to end."
            raise RequestRefused("too_many_feeds", message).for_request(
                request.thread_id, request.run_id
            )
        accepting = self._registry.submit(self._services.owner, request)
        self._delivering.add(request.run_id)

        async def deliver() -> None:
            try:
                accepted: Accepted = await accepting
                if request.thread_id not in self._watches:
                    await Feeds(self._services, self._peer).run(accepted)
            except RequestRefused as refusal:
                await self._refuse_now(refusal)
            finally:
                self._delivering.discard(request.run_id)

        if self._is_durable or is_watched:
            self._start(deliver)
        else:
            self._stream.put_nowait(deliver)

    async def _answered(self, frame: Mapping[str, Any]) -> None:
        """Carry out a control frame; its refusal is a notice, since no stream is meant."""
        try:
            await self._control(frame)
        except RequestRefused as refusal:
            await self._say(refusal_notice(refusal))
            await self._count_bad()

    async def _control(self, frame: Mapping[str, Any]) -> None:
        match parse_control(frame):
            case Abort(run_id=run_id):
                await self._registry.stop(self._services.owner, run_id)
            case Answer() as answer:
                self._start(partial(self._answer, answer))
            case Ping():
                await self._say(PONG)
            case Watch() as watch if self._is_durable:
                self._watch(watch.thread_id, watch)
            case Unwatch(thread_id=thread_id):
                task = self._watches.pop(thread_id, None)
                if task is not None:
                    await cancel_all([task])
                await self._say(unwatched(thread_id))
            case Watch():
                raise RequestRefused("one_stream", "A bare socket watches by its address only.")

    async def _answer(self, answer: Answer) -> None:
        await self._say(await answer_notice(self._services, answer))

    def _watch(self, thread_id: str, watch: Watch) -> None:
        if thread_id in self._watches:
            return
        if len(self._watches) >= self._services.limits.feeds_per_socket:
            limit = self._services.limits.feeds_per_socket
            raise RequestRefused("too_many_feeds", f"This socket watches {limit} threads already.")
        thread = self._services.thread(thread_id)

        async def deliver() -> None:
            try:
                await Feeds(self._services, self._peer).watch(thread, watch.offset)
            except ThreadDeleted:
                if thread_id == self._query.thread_id:
                    raise
                self._watches.pop(thread_id, None)
                await self._say(unwatched(thread_id))

        self._watches[thread_id] = asyncio.ensure_future(self._guarded(deliver))

    async def _replay(self) -> None:
        """Deliver one run from a cursor on, then close."""
        query = self._query
        assert query.run_id is not None and query.offset is not None
        info = await self._registry.store.run_info(self._services.owner, query.run_id)
        if info is None:
            await self._writer.close(1008, "not_found")
            return
        feeds = Feeds(self._services, self._peer)
        await feeds.resume_run(info.thread, query.run_id, info.first, query.offset)
        await self._writer.close(1000)

    async def _deliver_stream(self) -> None:
        while True:
            job = await self._stream.get()
            await job()

    async def _keep_alive(self) -> None:
        while True:
            await asyncio.sleep(self._services.limits.keepalive_s)
            await self._say(PING)

    def _start(self, job: Job) -> None:
        task = asyncio.ensure_future(self._guarded(job))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _guarded(self, job: Job) -> None:
        """Run one job; what ends it badly ends the socket with the code that says so."""
        try:
            await job()
        except PeerGone:
            return
        except NeedsResync:
            await self._writer.close(1013, "resync")
        except ThreadDeleted:
            await self._writer.close(1000, "deleted")
        except StoreError as error:
            logger.warning("a feed ended: %s", error)
            await self._writer.close(1013, "unavailable")
        except Exception:
            logger.exception("a feed failed")
            await self._writer.close(1011, "internal_error")

    async def _refuse(self, refusal: RequestRefused) -> None:
        """Answer a refused frame, after what is before it in the stream."""
        if self._is_durable or self._watches:
            await self._refuse_now(refusal)
            return

        async def answer() -> None:
            await self._refuse_now(refusal)

        self._stream.put_nowait(answer)

    async def _refuse_now(self, refusal: RequestRefused) -> None:
        if self._watches or self._is_read_only:
            await self._say(refusal_notice(refusal))
        else:
            await self._say(refusal_event(refusal, await self._services.worker.log.now()))

    async def _count_bad(self) -> None:
        if self._bad.is_one_too_many(asyncio.get_running_loop().time()):
            await self._writer.close(1008, "rate_limited")

    async def _write(self, frames: Iterable[str]) -> None:
        await self._writer.texts(frames)

    async def _say(self, frame: str) -> None:
        try:
            await self._writer.text(frame)
        except PeerGone:
            logger.debug("a peer left before it was answered")

    async def _resync(self, resync: Resync) -> None:
        notice = {
            "type": "resync",
            "threadId": resync.thread_id,
            "from": str(resync.cursor),
            "head": str(resync.head),
            "reason": resync.reason,
        }
        await self._writer.text(canonical_json(notice))
