"""ChatMemory in Redis: every message with its place in the log, stored in one step."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Sequence

from backscroll.conversation.memory import plan_addition, prepare
from backscroll.kernel.errors import LeaseLost, StoreError
from backscroll.kernel.message import Message
from backscroll.kernel.ports import Ids, RandomIds
from backscroll.store.connection import store_errors
from backscroll.store.history import HistoryChange, StoredHistory, stored_form
from backscroll.store.history_reader import HistoryReader
from backscroll.store.keys import LOCAL_OWNER, ThreadKey
from backscroll.store.rewriting import Rewriting, archive_name, is_in_place, plan_rewriting
from backscroll.store.scripts import Script, resend
from backscroll.store.thread_log import LOG_PARTS, MetaChanges, RunLease, ThreadLog, new_epoch

_HISTORY = Script("history", (*LOG_PARTS, "change_history"))
_REWRITE = Script("rewrite_history", LOG_PARTS)
_CLEAR = Script("clear_history")
_ATTEMPTS = 100
_REMEMBERED = 64


class RedisChatMemory:
    """The histories of one owner's conversations; a conversation id is a thread id.

    With a lease it is the memory of one run: it writes that thread only while the lease holds,
    raises LeaseLost afterwards, and keeps what it has read, so that only what is new travels.
    `rewrites` is how often the history of the last `get` had been rewritten.
    """

    def __init__(
        self,
        log: ThreadLog,
        owner: str = LOCAL_OWNER,
        *,
        lease: RunLease | None = None,
        ids: Ids | None = None,
    ) -> None:
        self._log, self._owner, self._lease = log, owner, lease
        self._ids = ids or RandomIds()
        self._reader = HistoryReader(log.clients, log.keys)
        self._known: StoredHistory | None = None
        self._positions: OrderedDict[str, list[int]] = OrderedDict()
        self.rewrites = 0
        self._one_writer = asyncio.Lock()

    async def get(self, conversation_id: str) -> list[Message]:
        """Return the live history in append order."""
        thread = self._thread(conversation_id)
        if self._is_leased(thread):
            history = self._known = await self._reader.read(thread, self._known)
        else:
            history = await self._reader.read(thread)
        live = history.live
        self.rewrites = len(history.rewrites)
        self._positions[conversation_id] = [stored.position for stored in live]
        self._positions.move_to_end(conversation_id)
        if len(self._positions) > _REMEMBERED:
            self._positions.popitem(last=False)
        return [stored.message for stored in live]

    def positions(self, conversation_id: str) -> list[int]:
        """Return the store position of each message of the last `get`."""
        return list(self._positions.get(conversation_id, ()))

    async def add(self, conversation_id: str, messages: Sequence[Message]) -> list[Message]:
        """Append all or nothing and return the stored forms; known ids are not stored again.

        Raises MessageConflict, and LeaseLost for a run whose lease is lost.
        """
        if not messages:
            return []
        thread = self._thread(conversation_id)
        prepared = [stored_form(message) for message in prepare(messages, self._ids)]
        async with self._one_writer:
            for _ in range(_ATTEMPTS):
                lookup = await self._reader.look_up(thread, [m.id or "" for m in prepared])
                addition = plan_addition(lookup.message, prepared)
                change = lookup.change(addition.added, addition.annotated)
                if await self._apply(thread, change):
                    return list(addition.stored)
        raise StoreError(f"the history of {thread.thread_id!r} changed all the time")

    async def supersede(self, conversation_id: str, from_position: int) -> int:
        """Take the messages from a position on out of the live history; returns how many."""
        thread = self._thread(conversation_id)
        async with self._one_writer:
            for _ in range(_ATTEMPTS):
                history = await self._reader.read(thread)
                change = history.change(supersede_from=from_position)
                if await self._apply(thread, change):
                    return len(change.superseded)
        raise StoreError(f"the history of {thread.thread_id!r} changed all the time")

    async def replace(
        self,
        conversation_id: str,
        messages: Sequence[Message],
        *,
        expected: int,
        ids: Sequence[str] | None = None,
        archive: bool = False,
    ) -> bool:
        """Put messages in place of the first `expected` live ones; later ones stay behind them.

        What stays keeps its position. False, and nothing changed, when those are not the messages
        with these ids, or one that is to stay is not among them as it is.
        """
        thread = self._thread(conversation_id)
        prepared = [stored_form(message) for message in prepare(messages, self._ids)]
        async with self._one_writer:
            for _ in range(_ATTEMPTS):
                history = await self._reader.read(thread)
                if is_in_place(history, prepared):
                    return True
                rewriting = plan_rewriting(history, prepared, expected, ids)
                if rewriting is None:
                    return False
                if await self._rewrite(thread, rewriting, archive):
                    return True
        raise StoreError(f"the history of {thread.thread_id!r} changed all the time")

    async def clear(self, conversation_id: str) -> None:
        """Remove one conversation's messages; its log stays."""
        thread, keys = self._thread(conversation_id), self._log.keys
        names = [keys.meta(thread), keys.messages(thread), keys.ids(thread)]
        fence = self._fence(thread)
        with store_errors("clear a history"):
            answer = await resend(lambda _: _CLEAR.run(self._log.clients.write, names, [fence]))
        if answer[0] == b"lost":
            raise LeaseLost(thread.thread_id, fence, int(answer[1]))

    async def _apply(self, thread: ThreadKey, change: HistoryChange) -> bool:
        """Write a change; False when the history is not what it was decided on."""
        if change.is_empty:
            return True
        run, fence = self._run(thread), self._fence(thread)
        entries = change.entries(run)
        args = (
            fence,
            change.revision,
            new_epoch(),
            MetaChanges().pack(entries),
            change.pack(run),
            *self._log.pack(entries),
        )
        keys = self._log.keys
        answer = await self._log.call(
            _HISTORY,
            thread,
            (keys.messages(thread), keys.ids(thread)),
            lambda _: args,
            fence=fence,
        )
        if answer[0] == b"changed":
            return False
        await self._log.indexes.touch(thread, answer[3])
        return True

    async def _rewrite(self, thread: ThreadKey, rewriting: Rewriting, archive: bool) -> bool:
        """Write a shorter history; False when the stored one is not what it was decided on."""
        kept = rewriting.archive() if archive else b""
        name = archive_name(kept) if archive else ""
        run, fence = self._run(thread), self._fence(thread)
        entries = rewriting.entries(run)
        args = (
            fence,
            rewriting.history.revision,
            new_epoch(),
            MetaChanges({"rewritten": rewriting.note(name)}).pack(entries),
            rewriting.pack(run),
            name,
            kept,
            *self._log.pack(entries),
        )
        keys = self._log.keys
        names = (keys.messages(thread), keys.ids(thread), keys.blobs(thread))
        answer = await self._log.call(_REWRITE, thread, names, lambda _: args, fence=fence)
        if answer[0] == b"changed":
            return False
        await self._log.indexes.touch(thread, answer[3])
        return True

    def _run(self, thread: ThreadKey) -> str:
        return self._lease.run if self._lease and self._is_leased(thread) else ""

    def _thread(self, conversation_id: str) -> ThreadKey:
        return ThreadKey(self._owner, conversation_id)

    def _is_leased(self, thread: ThreadKey) -> bool:
        return self._lease is not None and self._lease.thread == thread

    def _fence(self, thread: ThreadKey) -> int:
        return self._lease.fence if self._lease and self._is_leased(thread) else 0
