"""Threads as an operator sees them: listed by last activity, named, archived, deleted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from backscroll.store.connection import store_errors
from backscroll.store.keys import ThreadKey
from backscroll.store.runs import RunStore
from backscroll.store.scripts import Script, resend
from backscroll.store.thread_log import ThreadLog

ThreadStatus = Literal["running", "waiting", "error", "ok"]

_SET_META = Script("set_meta")
_DELETE = Script("delete", ("head",))


@dataclass(frozen=True, slots=True)
class ThreadRecord:
    """The head of a thread; times in milliseconds, `extra` what writers of the log added.

    `indexed` is the activity under which the thread was listed, which may lag behind.
    """

    thread: ThreadKey
    agent: str = ""
    title: str = ""
    archived: bool = False
    status: ThreadStatus = "ok"
    run: str = ""
    worker: str = ""
    fence: int = 0
    lease: int = 0
    epoch: str = ""
    floor: int = 0
    entries: int = 0
    messages: int = 0
    runs: int = 0
    errors: int = 0
    started: int = 0
    activity: int = 0
    last_run: str = ""
    last_status: str = ""
    pause: str = ""
    questions: int = 0
    counts: Mapping[str, int] = field(default_factory=dict)
    extra: Mapping[str, str] = field(default_factory=dict)
    indexed: int = 0


class ThreadStore:
    """The list of threads and what an operator may do to one."""

    def __init__(self, log: ThreadLog) -> None:
        self._log, self._clients, self._keys = log, log.clients, log.keys

    async def heads(
        self,
        owner: str | None = None,
        *,
        before: tuple[int, str] | None = None,
        limit: int = 200,
    ) -> list[ThreadRecord]:
        """Return threads by last activity, newest first, of one owner or of all.

        `before` is activity and key of the last one seen; the activity is that of the index.
        """
        page = await self._log.indexes.page(owner, before, limit)
        with store_errors("read threads"):
            async with self._clients.read.pipeline(transaction=False) as pipe:
                for thread, _ in page:
                    pipe.hgetall(self._keys.meta(thread))
                found = await pipe.execute()
        for (thread, _), meta in zip(page, found, strict=True):
            if not meta:
                # Its time is over; nobody else takes it out of the list.
                await self._log.indexes.forget_thread(thread, ())
        return [
            replace(read_meta(thread, meta), indexed=time)
            for (thread, time), meta in zip(page, found, strict=True)
            if meta
        ]

    async def record(self, thread: ThreadKey) -> ThreadRecord | None:
        """Return the head of one thread."""
        with store_errors("read a thread"):
            meta = await self._clients.read.hgetall(self._keys.meta(thread))
        return read_meta(thread, meta) if meta else None

    async def rename(self, thread: ThreadKey, title: str) -> bool:
        """Give a thread another title; False when there is no such thread."""
        return await self._set(thread, {"title": title})

    async def archive(self, thread: ThreadKey, archived: bool) -> bool:
        """Set or take off the archive flag; False when there is no such thread."""
        return await self._set(thread, {"archived": "1" if archived else ""})

    async def delete(self, thread: ThreadKey) -> str | None:
        """Delete all of a thread; returns the active run instead, which must be stopped first."""
        run_ids = [run.run_id for run in await RunStore(self._log).runs(thread)]
        names = self._keys.of_thread(thread)
        with store_errors("delete a thread"):
            active = await resend(
                lambda _: _DELETE.run(self._clients.write, names, [self._keys.bell(thread)])
            )
        if active is not None:
            return str(active.decode("utf-8", "surrogatepass"))
        await self._log.indexes.forget_thread(thread, run_ids)
        return None

    async def _set(self, thread: ThreadKey, fields: Mapping[str, str]) -> bool:
        args = [part for pair in fields.items() for part in pair]
        names = [self._keys.meta(thread)]
        with store_errors("change a thread"):
            return bool(await resend(lambda _: _SET_META.run(self._clients.write, names, args)))


def read_meta(thread: ThreadKey, meta: Mapping[bytes, bytes]) -> ThreadRecord:
    """Return a thread's head from its meta hash."""
    texts = {name.decode(): value.decode("utf-8", "surrogatepass") for name, value in meta.items()}
    counts = {name[2:]: int(texts.pop(name)) for name in [*texts] if name.startswith("n_")}
    extra = {name: value for name, value in texts.items() if name not in _FIELDS}

    def number(name: str) -> int:
        return int(texts.get(name) or 0)

    return ThreadRecord(
        thread=thread,
        agent=texts.get("agent", ""),
        title=texts.get("title", ""),
        archived=bool(texts.get("archived")),
        status=_status(texts),
        run=texts.get("run", ""),
        worker=texts.get("worker", ""),
        fence=number("fence"),
        lease=number("lease"),
        epoch=texts.get("epoch", ""),
        floor=number("floor"),
        entries=number("seq"),
        messages=number("messages"),
        runs=number("runs"),
        errors=number("errors"),
        started=number("created"),
        activity=number("time"),
        last_run=texts.get("last_run", ""),
        last_status=texts.get("last_status", ""),
        pause=texts.get("pause", ""),
        questions=number("questions"),
        counts=counts,
        extra=extra,
    )


_FIELDS: Sequence[str] = (
    "seq time floor epoch fence run lease worker stop owner agent title archived created last_run "
    "last_status runs errors messages revision edits superseded pause questions"
).split()


def _status(texts: Mapping[str, str]) -> ThreadStatus:
    if texts.get("run"):
        return "running"
    last = texts.get("last_status")
    if texts.get("pause") or last == "waiting":
        return "waiting"
    return "error" if last == "error" else "ok"
