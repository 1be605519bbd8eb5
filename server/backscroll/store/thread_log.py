"""The log of every thread: append in one step, read by number."""

from __future__ import annotations

import secrets
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgpack

from backscroll.kernel.errors import LeaseLost
from backscroll.store.connection import RedisClients, store_errors
from backscroll.store.entry import Entry, NewEntry, pack_entries, unpack_stream
from backscroll.store.indexes import Indexes
from backscroll.store.keys import Keys, ThreadKey
from backscroll.store.lifetime import Lifetime
from backscroll.store.scripts import Argument, Script, resend

LOG_PARTS = ("head", "written", "meta", "write")
"""The script files every writer of a log is put behind."""

_APPEND = Script("append", LOG_PARTS)
_EPOCH_CHARS = "0123456789abcdefghijklmnopqrstuvwxyz"
_REMEMBERED_BATCHES = 256


@dataclass(frozen=True, slots=True)
class Appended:
    """Where a batch is in the log; `last` is below `first` for a batch without entries."""

    first: int
    last: int
    time: int


@dataclass(frozen=True, slots=True)
class RunLease:
    """The right to write a run: worthless once the thread's fence is another one."""

    thread: ThreadKey
    run: str
    fence: int


@dataclass(frozen=True, slots=True)
class LogHead:
    """The state of a log: its numbers, and whose run is active until when, if one is."""

    seq: int = 0
    floor: int = 0
    epoch: str = ""
    time: int = 0
    run: str = ""
    fence: int = 0
    lease: int = 0
    worker: str = ""
    stop: str = ""
    agent: str = ""
    last_run: str = ""
    last_status: str = ""

    @property
    def exists(self) -> bool:
        """Say whether the thread has a log."""
        return self.epoch != ""


@dataclass(frozen=True, slots=True)
class MetaChanges:
    """What an append changes in a thread's meta: fields to set, to set once, to add to."""

    set: Mapping[str, str] | None = None
    once: Mapping[str, str] | None = None
    add: Mapping[str, int] | None = None

    def pack(self, entries: Iterable[NewEntry]) -> bytes:
        """Return the script argument; errors among the entries are counted."""
        add = dict(self.add or {})
        if errors := sum(entry.is_error for entry in entries):
            add["errors"] = add.get("errors", 0) + errors
        return pack([dict(self.set or {}), dict(self.once or {}), add])


class ThreadLog:
    """Appends to and reads the logs of all threads, in the name of one worker.

    A thread is gone `ttl_s` after its last write; 0 keeps it for ever.
    """

    def __init__(self, clients: RedisClients, keys: Keys, worker: str, ttl_s: float = 0.0) -> None:
        self.clients, self.keys, self.worker = clients, keys, worker
        self.lifetime = Lifetime(clients, keys, ttl_s)
        self.indexes = Indexes(clients, keys, self.lifetime.ttl_ms)
        self._answers: OrderedDict[tuple[ThreadKey, str], Appended | None] = OrderedDict()

    async def append(
        self,
        thread: ThreadKey,
        entries: Sequence[NewEntry],
        *,
        fence: int,
        batch: str = "",
        blobs: Mapping[str, bytes] | None = None,
        state: bytes | None = None,
        meta: Mapping[str, str] | None = None,
    ) -> Appended:
        """Number, store and publish entries in one step; fence 0 writes without a run.

        A batch whose answer got lost is sent again and answered as before, also when the caller
        repeats it under the same name after a StoreError. Raises LeaseLost, and writes nothing,
        when the fence is not that of the log.
        """
        key = (thread, batch or secrets.token_hex(8))
        if answered := self._answers.get(key):
            return answered
        sent_before = key in self._answers
        self._remember(key, None)
        blob_args = pack(dict(blobs or {}))
        changes = MetaChanges(set=meta).pack(entries)
        tail = (new_epoch(), changes, blob_args, state or b"", *self.pack(entries))
        answer = await self.call(
            _APPEND,
            thread,
            (self.keys.blobs(thread), self.keys.state(thread)),
            lambda again: (fence, key[1], int(again or sent_before), *tail),
            fence=fence,
        )
        appended = Appended(*answer[1:])
        self._remember(key, appended)
        await self.indexes.touch(thread, appended.time)
        return appended

    async def read(self, thread: ThreadKey, after: int, limit: int = 1000) -> list[Entry]:
        """Return the entries after a number, oldest first, at most `limit`."""
        with store_errors("read the log"):
            items = await self.clients.read.xrange(
                self.keys.log(thread), f"{max(after, 0) + 1}-0", "+", count=limit
            )
        return unpack_stream(items)

    async def read_before(self, thread: ThreadKey, before: int, limit: int = 1000) -> list[Entry]:
        """Return the last entries before a number, oldest first, at most `limit`."""
        if before <= 1:
            return []
        with store_errors("read the log"):
            items = await self.clients.read.xrevrange(
                self.keys.log(thread), f"{before - 1}-0", "-", count=limit
            )
        return unpack_stream(items[::-1])

    async def entry(self, thread: ThreadKey, seq: int) -> Entry | None:
        """Return one entry."""
        found = await self.read(thread, seq - 1, 1) if seq > 0 else []
        return found[0] if found and found[0].seq == seq else None

    async def entries_at(self, thread: ThreadKey, seqs: Sequence[int]) -> list[Entry]:
        """Return the entries with these numbers, in their order, without those that are gone."""
        with store_errors("read entries"):
            async with self.clients.read.pipeline(transaction=False) as pipe:
                for seq in seqs:
                    pipe.xrange(self.keys.log(thread), f"{seq}-0", f"{seq}-0")
                found = await pipe.execute()
        return [entry for items in found for entry in unpack_stream(items)]

    async def head(self, thread: ThreadKey) -> LogHead:
        """Return the state of the log; that of a thread without one is all zeros."""
        names = list(LogHead.__dataclass_fields__)
        with store_errors("read the head of a log"):
            values = await self.clients.read.hmget(self.keys.meta(thread), names)
        found = {
            name: value.decode("utf-8", "surrogatepass")
            for name, value in zip(names, values, strict=True)
            if value is not None
        }
        numbers = ("seq", "floor", "time", "fence", "lease")
        return LogHead(**{n: int(v) if n in numbers else v for n, v in found.items()})  # type: ignore[arg-type]

    async def last_seq(self, thread: ThreadKey) -> int:
        """Return the number of the newest entry, 0 for an empty log."""
        with store_errors("read the head of a log"):
            return int(await self.clients.read.hget(self.keys.meta(thread), "seq") or 0)

    async def blobs(self, thread: ThreadKey, hashes: Sequence[str]) -> dict[str, bytes]:
        """Return blobs by their sha256; those that are gone are left out."""
        if not hashes:
            return {}
        with store_errors("read blobs"):
            found = await self.clients.read.hmget(self.keys.blobs(thread), list(hashes))
        return {sha: data for sha, data in zip(hashes, found, strict=True) if data is not None}

    async def call_seqs(self, thread: ThreadKey) -> list[int]:
        """Return the numbers of all call entries."""
        with store_errors("read the list of calls"):
            found = await self.clients.read.lrange(self.keys.calls(thread), 0, -1)
        return [int(seq) for seq in found]

    async def allot_compaction(self, thread: ThreadKey) -> int:
        """Return the number of the thread's next compaction; nobody else gets it, too."""
        name = self.keys.meta(thread)
        with store_errors("number a compaction"):
            logged = await self.clients.read.hget(name, "n_compaction")
            # The first one to ask goes on from what was numbered by counting.
            first = int(logged or 0)
            await resend(lambda _: self.clients.write.hsetnx(name, "compaction", first))
            return int(await resend(lambda _: self.clients.write.hincrby(name, "compaction", 1)))

    async def state(self, thread: ThreadKey) -> bytes | None:
        """Return the shared state, if the thread ever had one."""
        with store_errors("read the state"):
            found: bytes | None = await self.clients.read.get(self.keys.state(thread))
        return found

    async def now(self) -> int:
        """Return the time of Redis in milliseconds, the only clock of the log."""
        with store_errors("read the time"):
            seconds, micros = await self.clients.read.time()
        return int(seconds) * 1000 + int(micros) // 1000

    def pack(self, entries: Iterable[NewEntry]) -> list[Argument]:
        """Return entries as script arguments, in the name of this worker."""
        return pack_entries(entries, self.worker)

    async def call(
        self,
        script: Script,
        thread: ThreadKey,
        keys: Sequence[str],
        args: Callable[[bool], Sequence[Argument]],
        *,
        fence: int,
    ) -> Any:
        """Run a script that writes a log until it is answered; raises LeaseLost when it says so.

        Its keys are log, meta, calls and bell, then `keys`; `args` is told about repetitions.
        (Any: the script's own answer, a list that begins with a word.)
        """
        of_log = (self.keys.log, self.keys.meta, self.keys.calls, self.keys.bell)
        names = [*(name(thread) for name in of_log), *keys]
        with store_errors("write the log"):
            answer = await resend(lambda again: script.run(self.clients.write, names, args(again)))
        if answer[0] == b"lost":
            raise LeaseLost(thread.thread_id, fence, int(answer[1]))
        await self.lifetime.slide(thread)
        return answer

    def _remember(self, key: tuple[ThreadKey, str], answer: Appended | None) -> None:
        self._answers[key] = answer
        self._answers.move_to_end(key)
        if len(self._answers) > _REMEMBERED_BATCHES:
            self._answers.popitem(last=False)


def new_epoch() -> str:
    """Return four random characters; they become a log's epoch if the log is new."""
    return "".join(secrets.choice(_EPOCH_CHARS) for _ in range(4))


def pack(value: Any) -> bytes:
    """Return a value as the scripts read it (Any: lists and maps of text, bytes and numbers)."""
    # Redis's own reader of msgpack knows no type for bytes apart from text.
    packed: bytes = msgpack.packb(value, use_bin_type=False, unicode_errors="surrogatepass")
    return packed
