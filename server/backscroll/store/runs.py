"""Runs: started, kept alive, stopped and ended, each in one step with what the log says of it."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from typing import Any

from backscroll.kernel.errors import LeaseLost
from backscroll.store.connection import store_errors
from backscroll.store.entry import NewEntry
from backscroll.store.keys import ThreadKey
from backscroll.store.pause_record import PauseChange
from backscroll.store.run_record import (
    Busy,
    Changed,
    Known,
    Renewed,
    RunInfo,
    RunStatus,
    Started,
    StartRequest,
    pack_end,
    pack_start,
    read_record,
)
from backscroll.store.scripts import Argument, Script, resend
from backscroll.store.thread_log import (
    LOG_PARTS,
    Appended,
    MetaChanges,
    RunLease,
    ThreadLog,
    new_epoch,
    pack,
)

KEPT_ACTIVITIES = 200

_START = Script("start", (*LOG_PARTS, "change_history", "change_pause"))
_FINISH = Script("finish", (*LOG_PARTS, "change_pause"))
_RENEW = Script("renew")
_CLAIM = Script("claim", ("head",))
_STOP = Script("stop", ("head",))


class RunStore:
    """The runs of all threads, as one worker starts and ends them."""

    def __init__(self, log: ThreadLog) -> None:
        self._log, self._clients, self._keys = log, log.clients, log.keys
        self._indexes = log.indexes

    async def start(self, request: StartRequest) -> Started | Busy | Known | Changed:
        """Start a run on an idle thread, in one step with all it adds to the log.

        A run id is used once per owner: of two starts at the same time one is told Known.
        """
        thread, run_id = request.thread, request.run_id
        holder = await self._indexes.claim_run(thread, run_id)
        if holder != thread:
            return Known(await self._info(holder, run_id) or RunInfo(run_id, holder))
        # Noted first: should we die right after the start, someone looks at the lease.
        await self._indexes.mark_lease(thread, _ms(request.lease_s))
        batch = secrets.token_hex(8)
        answer = await self._start(request, batch)
        if answer[0] == b"busy":
            return Busy(_name(answer[1]), bool(answer[2]))
        if answer[0] == b"changed":
            return Changed()
        if answer[0] == b"known":
            info, of_batch = read_record(thread, run_id, answer[1], (*answer, None)[2])
            if of_batch != batch:
                return Known(info)
            # Our own start, whose answer got lost.
            answer = [b"started", info.fence, info.first, info.last, info.started]
        started = Started(RunLease(thread, run_id, answer[1]), *answer[2:])
        await self._indexes.keep_run(thread, run_id)
        await self._indexes.touch(thread, started.time, now=True)
        if request.pause is not None and request.pause.taken:
            await self._indexes.forget_pause(thread)
        return started

    async def renew(self, lease: RunLease, lease_s: float) -> Renewed:
        """Make a lease longer; raises LeaseLost when the run is another worker's, or ended."""
        names = [self._keys.meta(lease.thread)]
        with store_errors("renew a lease"):
            answer = await resend(
                lambda _: _RENEW.run(self._clients.write, names, [lease.fence, _ms(lease_s)])
            )
        if answer[0] == b"lost":
            raise LeaseLost(lease.thread.thread_id, lease.fence, answer[1])
        await self._indexes.mark_lease(lease.thread, _ms(lease_s))
        await self._log.lifetime.slide(lease.thread)
        return Renewed(answer[1], bool(answer[2]))

    async def finish(
        self,
        lease: RunLease,
        entries: Sequence[NewEntry],
        *,
        status: RunStatus,
        error: str = "",
        details: Mapping[str, Any] | None = None,  # Any: JSON values
        meta: Mapping[str, str] | None = None,
        pause: PauseChange | None = None,
        activities: Sequence[bytes] = (),
    ) -> Appended:
        """End a run: its last entries, its record, its pause, the lease given back, in one step.

        `activities` is what it showed beside messages; the newest of a thread are kept.
        Raises LeaseLost, and writes nothing, when the run is another worker's or has ended.
        """
        thread, batch = lease.thread, secrets.token_hex(8)
        changes = {**(meta or {}), "last_run": lease.run, "last_status": status}
        if pause is not None:
            changes |= pause.meta()
            await self._indexes.mark_pause(thread, pause.due)
        tail = (
            new_epoch(),
            MetaChanges(set=changes).pack(entries),
            _text(lease.run),
            pack_end(status, error, details or {}),
            pause.pack() if pause else b"",
            pack(list(activities)),
            KEPT_ACTIVITIES,
            *self._log.pack(entries),
        )
        kept = (self._keys.runs, self._keys.run, self._keys.pause, self._keys.activities)
        answer = await self._log.call(
            _FINISH,
            thread,
            [name(thread) for name in kept],
            lambda again: (lease.fence, batch, int(again), *tail),
            fence=lease.fence,
        )
        appended = Appended(*answer[1:])
        await self._indexes.keep_run(thread, lease.run)
        await self._indexes.touch(thread, appended.time, now=True)
        return appended

    async def stop(self, thread: ThreadKey, run_id: str) -> bool:
        """Ask a run to stop, on whichever worker it is; False when it is not active."""
        names = [
            self._keys.log(thread),
            self._keys.meta(thread),
            self._keys.calls(thread),
            self._keys.bell(thread),
        ]
        with store_errors("stop a run"):
            return bool(
                await resend(lambda _: _STOP.run(self._clients.write, names, [_text(run_id)]))
            )

    async def stop_requested(self, lease: RunLease) -> bool:
        """Say whether a run was asked to stop; its bell and each renewal say so too."""
        return (await self._log.head(lease.thread)).stop == lease.run

    async def claim_lost(self, thread: ThreadKey, lease_s: float) -> RunLease | None:
        """Take over a run whose lease has expired; its worker can write no more.

        None when there is none, or someone else was faster. Whoever gets the lease ends the run.
        """
        await self._indexes.mark_lease(thread, _ms(lease_s))
        return await self._claim(thread, lease_s, None)

    async def claim_all_lost(self, lease_s: float) -> list[RunLease]:
        """Take over every run whose lease has expired."""
        claimed = []
        for thread, noted in await self._indexes.due_leases():
            lease = await self._claim(thread, lease_s, noted)
            if lease is not None:
                await self._indexes.mark_lease(thread, _ms(lease_s))
                claimed.append(lease)
        return claimed

    async def run_info(self, owner: str, run_id: str) -> RunInfo | None:
        """Return what is known of an owner's run."""
        thread = await self._indexes.find_run(owner, run_id)
        return None if thread is None else await self._info(thread, run_id)

    async def runs(self, thread: ThreadKey) -> list[RunInfo]:
        """Return all runs of a thread, oldest first."""
        with store_errors("list runs"):
            fields = await self._clients.read.hgetall(self._keys.runs(thread))
        found = [
            read_record(thread, _name(name[2:]), start, fields.get(b"e:" + name[2:]))[0]
            for name, start in fields.items()
            if name.startswith(b"s:")
        ]
        return sorted(found, key=lambda run: run.first)

    async def activities(self, thread: ThreadKey) -> list[bytes]:
        """Return what the ended runs of a thread showed beside messages, oldest first."""
        with store_errors("read activities"):
            return list(await self._clients.read.lrange(self._keys.activities(thread), 0, -1))

    async def takeover(self, thread: ThreadKey) -> bytes | None:
        """Return what the active run's start left for a takeover."""
        with store_errors("read a run"):
            found: bytes | None = await self._clients.read.get(self._keys.run(thread))
        return found

    async def _start(self, request: StartRequest, batch: str) -> list[Any]:
        thread, run_id = request.thread, request.run_id
        entries, pause = [*request.entries, *request.change.entries(run_id)], request.pause
        once = {"owner": thread.owner, "agent": request.agent}
        if request.title:
            once["title"] = request.title
        args = (
            batch,
            _text(run_id),
            self._log.worker,
            _ms(request.lease_s),
            request.change.revision,
            pack_start(request),
            request.takeover,
            request.state or b"",
            new_epoch(),
            MetaChanges(pause.meta() if pause else None, once, {"runs": 1}).pack(entries),
            request.change.pack(run_id, before=len(request.entries)),
            pause.pack() if pause else b"",
            *self._log.pack(entries),
        )
        names = (self._keys.messages, self._keys.ids, self._keys.runs, self._keys.run)
        answer: list[Any] = await self._log.call(
            _START,
            thread,
            [*(name(thread) for name in names), self._keys.state(thread), self._keys.pause(thread)],
            lambda _: args,
            fence=0,
        )
        return answer

    async def _claim(self, thread: ThreadKey, lease_s: float, noted: int | None) -> RunLease | None:
        names = [self._keys.log(thread), self._keys.meta(thread)]
        args: list[Argument] = [self._log.worker, _ms(lease_s)]
        with store_errors("claim a lost run"):
            answer = await resend(lambda _: _CLAIM.run(self._clients.write, names, args))
        if answer[0] == b"claimed":
            return RunLease(thread, _name(answer[1]), answer[2])
        if answer[0] == b"held":
            await self._indexes.mark_lease(thread, answer[1])
        elif noted is not None:
            await self._indexes.forget_lease(thread, noted)
        return None

    async def _info(self, thread: ThreadKey, run_id: str) -> RunInfo | None:
        field = _text(run_id)
        with store_errors("read a run"):
            start, end = await self._clients.read.hmget(
                self._keys.runs(thread), [b"s:" + field, b"e:" + field]
            )
        return None if start is None else read_record(thread, run_id, start, end)[0]


def _ms(seconds: float) -> int:
    return round(seconds * 1000)


def _text(name: str) -> bytes:
    return name.encode("utf-8", "surrogatepass")


def _name(text: bytes) -> str:
    return text.decode("utf-8", "surrogatepass")
