"""The console socket: a thread's entries, and the heads of threads, as they change."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

from starlette.types import Receive, Scope, Send

from backscroll.agui.input import parse_object
from backscroll.agui.refusal import Problem, RequestRefused, error_member
from backscroll.kernel.canon import canonical_json, clean_text
from backscroll.kernel.errors import StoreError
from backscroll.runs.entry_json import entry_live
from backscroll.runs.hub import ThreadDeleted
from backscroll.store.keys import ThreadKey
from backscroll.web.answers import DIGITS
from backscroll.web.console_questions import (
    changed_questions,
    open_questions,
    questions_of,
)
from backscroll.web.console_threads import thread_head
from backscroll.web.feeds import cancel_all
from backscroll.web.services import Services
from backscroll.web.serving import abort_of
from backscroll.web.writer import PeerGone, SocketWriter

logger = logging.getLogger(__name__)

BATCH_S = 0.05
BATCH = 1000
HEADS_S = 1.0
HEADS = 200
SUBSCRIPTIONS = 16


async def console_websocket(services: Services, scope: Scope, receive: Receive, send: Send) -> None:
    """Serve one console socket until it ends."""
    await receive()
    await send({"type": "websocket.accept"})
    writer = SocketWriter(send, abort_of(scope), services.limits.send_timeout_s)
    services.worker.connections += 1
    try:
        await ConsoleSocket(services, receive, writer).serve()
    finally:
        services.worker.connections -= 1
        writer.gone()


class ConsoleSocket:
    """One tab of the console: what it subscribed to."""

    def __init__(self, services: Services, receive: Receive, writer: SocketWriter) -> None:
        self._services, self._receive, self._writer = services, receive, writer
        self._worker = services.worker
        self._subscribed: dict[str, asyncio.Task[None]] = {}

    async def serve(self) -> None:
        """Serve until either side closes."""
        try:
            while not self._writer.is_closed:
                message = await self._receive()
                if message["type"] == "websocket.disconnect":
                    self._writer.gone()
                    return
                try:
                    await self._take(message.get("text") or "")
                except RequestRefused as refusal:
                    await self._say({"error": error_member(refusal)})
        except PeerGone:
            logger.debug("a console left before it was answered")
        finally:
            await cancel_all(self._subscribed.values())

    async def _take(self, text: str) -> None:
        frame = parse_object(text, self._services.limits.input)
        for verb in ("subscribe", "unsubscribe"):
            asked = frame.get(verb)
            if isinstance(asked, dict):
                await (self._subscribe if verb == "subscribe" else self._unsubscribe)(asked)
                return
        problem = Problem("subscribe", "is missing, and so is unsubscribe")
        raise RequestRefused.of_problems([problem])

    async def _subscribe(self, asked: dict[str, Any]) -> None:
        await self._unsubscribe(asked)
        if len(self._subscribed) >= SUBSCRIPTIONS:
            message = f"This socket has {SUBSCRIPTIONS} subscriptions already."
            raise RequestRefused("too_many_feeds", message)
        if "thread" in asked:
            after = asked.get("after")
            if after is not None and not _is_seq(after):
                problem = Problem("subscribe.after", "must be a whole number from 0 on")
                raise RequestRefused.of_problems([problem])
            thread = _thread(asked["thread"])
            work: Callable[[], Awaitable[None]]
            name, work = f"thread:{thread.key}", partial(self._thread, thread, after)
        elif asked.get("threads") is True:
            name, work = "threads", self._threads
        elif asked.get("questions") is True:
            name, work = "questions", self._questions
        else:
            message = "names neither thread nor threads nor questions"
            raise RequestRefused.of_problems([Problem("subscribe", message)])
        self._subscribed[name] = asyncio.ensure_future(self._guarded(work))

    async def _unsubscribe(self, asked: dict[str, Any]) -> None:
        name = "questions" if asked.get("questions") is True else "threads"
        if "thread" in asked:
            name = f"thread:{_thread(asked['thread']).key}"
        task = self._subscribed.pop(name, None)
        if task is not None:
            await cancel_all([task])

    async def _thread(self, thread: ThreadKey, after: int | None) -> None:
        """Send a thread's entries; when it is deleted, those of its successor, after a resync."""
        while True:
            try:
                await self._entries(thread, after)
            except ThreadDeleted:
                resync = {"floor": 0, "head": 0}
                await self._say({"thread": thread.key, "resync": resync})
                after = 0

    async def _entries(self, thread: ThreadKey, after: int | None) -> None:
        """Send a thread's entries in batches, each seq once and rising."""
        async with self._worker.hub.watch(thread) as feed:
            head = await self._worker.log.head(thread)
            cursor = head.seq if after is None else after
            if cursor > head.seq or (cursor < head.floor and after is not None):
                resync = {"floor": head.floor, "head": head.seq}
                await self._say({"thread": thread.key, "resync": resync})
                cursor = head.floor
            else:
                await self._batch(thread, [], head.floor, head.seq)
            while True:
                held = await feed.after(cursor, BATCH)
                cursor = held[-1].seq
                entries = [entry_live(item.entry) for item in held]
                await self._batch(thread, entries, head.floor, max(feed.head, cursor))
                # What arrives meanwhile goes out together.
                await asyncio.sleep(BATCH_S)

    async def _batch(
        self, thread: ThreadKey, entries: list[dict[str, Any]], floor: int, head: int
    ) -> None:
        await self._say({"thread": thread.key, "entries": entries, "floor": floor, "head": head})

    async def _threads(self) -> None:
        """Send heads that changed, each at most once a second; an empty list says: from now on."""
        known: dict[str, dict[str, Any]] = {}
        first = True
        while True:
            records = await self._worker.threads.heads(limit=HEADS)
            heads = {record.thread.key: thread_head(record) for record in records}
            changed = [head for key, head in heads.items() if known.get(key) != head]
            gone = [key for key in known if key not in heads] if len(heads) < HEADS else []
            if first or changed or gone:
                await self._say({"threads": [] if first else changed, "gone": gone})
            known, first = heads, False
            await asyncio.sleep(HEADS_S)

    async def _questions(self) -> None:
        """Send the open questions, then those that were asked or decided, within a second."""
        known: dict[str, Any] | None = None
        while True:
            found = await open_questions(self._services)
            now, closed = changed_questions(known or {}, found)
            told = [q for name, q in now.items() if known is None or known.get(name) != q]
            gone = [name for name in known or {} if name not in now]
            for key in closed:
                try:
                    decided = await questions_of(self._services, ThreadKey.from_key(key))
                except RequestRefused:
                    # What cannot be read right now is not taken for decided.
                    now |= {name: q for name, q in (known or {}).items() if q["thread"] == key}
                    continue
                told += [q for q in decided if f"{key} {q['interrupt_id']}" in gone]
            if told or known is None:
                await self._say({"questions": told})
            known = now
            await asyncio.sleep(HEADS_S)

    async def _guarded(self, work: Callable[[], Awaitable[None]]) -> None:
        try:
            await work()
        except PeerGone:
            return
        except StoreError as error:
            logger.warning("a console subscription ended: %s", error)
            await self._writer.close(1013, "unavailable")
        except Exception:
            logger.exception("a console subscription failed")
            await self._writer.close(1011, "internal_error")

    async def _say(self, value: dict[str, Any]) -> None:
        await self._writer.text(clean_text(canonical_json(value)))


def _is_seq(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 10**DIGITS


def _thread(key: Any) -> ThreadKey:
    try:
        return ThreadKey.from_key(key)
    except (ValueError, AttributeError, TypeError) as error:
        problem = Problem("subscribe.thread", "must be the key of a thread")
        raise RequestRefused.of_problems([problem]) from error
