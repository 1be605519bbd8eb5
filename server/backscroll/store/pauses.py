"""Pauses in Redis: kept with the thread, decided about item by item, taken once."""

from __future__ import annotations

import logging
import secrets
from collections.abc import Sequence

from backscroll.kernel.errors import ResumeRefused
from backscroll.kernel.pause_codec import read_pause
from backscroll.kernel.turn import Pause
from backscroll.store.connection import store_errors
from backscroll.store.entry import NewEntry
from backscroll.store.keys import LOCAL_OWNER, ThreadKey
from backscroll.store.pause_record import PauseChange, PauseRecord, read_pauses
from backscroll.store.scripts import Argument, Script, resend
from backscroll.store.thread_log import (
    LOG_PARTS,
    Appended,
    MetaChanges,
    ThreadLog,
    new_epoch,
)

logger = logging.getLogger(__name__)

_DECIDE = Script("decide", (*LOG_PARTS, "change_pause"))
_PAUSE = Script("pause", ("change_pause",))


class ThreadPauses:
    """The pauses of all threads, as a server keeps them: written together with the log."""

    def __init__(self, log: ThreadLog) -> None:
        self._log, self._clients, self._keys = log, log.clients, log.keys

    async def read(self, thread: ThreadKey, *, gives_up: bool = False) -> PauseRecord:
        """Return what a thread remembers of its pauses; raises `pause_unreadable`.

        Not for whoever gives up what the thread waits for.
        """
        with store_errors("read a pause"):
            fields = await self._clients.read.hgetall(self._keys.pause(thread))
        return read_pauses(fields, gives_up=gives_up)

    async def read_many(self, threads: Sequence[ThreadKey]) -> dict[ThreadKey, PauseRecord]:
        """Return what threads remember of their pauses; one that cannot be read is left out."""
        with store_errors("read pauses"):
            async with self._clients.read.pipeline(transaction=False) as pipe:
                for thread in threads:
                    pipe.hgetall(self._keys.pause(thread))
                rows = await pipe.execute()
        found = {}
        for thread, fields in zip(threads, rows, strict=True):
            try:
                found[thread] = read_pauses(fields)
            except ResumeRefused as error:
                logger.error("the pause of %s cannot be read: %s", thread.key, error)
        return found

    async def decide(
        self, thread: ThreadKey, change: PauseChange, entries: Sequence[NewEntry]
    ) -> Appended | None:
        """Write decisions and the entries that tell of them in one step.

        None, and nothing is written, when the pause is not what the change was decided on.
        """
        batch, packed = secrets.token_hex(8), self._log.pack(entries)
        meta = MetaChanges(set=change.meta()).pack(entries)
        tail = (new_epoch(), meta, change.pack(), *packed)
        answer = await self._log.call(
            _DECIDE,
            thread,
            [self._keys.pause(thread)],
            lambda again: (batch, int(again), *tail),
            fence=0,
        )
        if answer[0] == b"changed":
            return None
        appended = Appended(*answer[1:])
        await self._log.indexes.touch(thread, appended.time, now=True)
        return appended


class RedisPauseStore:
    """A PauseStore in Redis, for agents that run without a server around them."""

    def __init__(self, log: ThreadLog, owner: str = LOCAL_OWNER) -> None:
        self._log, self._owner = log, owner

    async def save(self, pause: Pause) -> None:
        """Keep a pause in place of any other of its conversation."""
        await self._change(pause.conversation_id, "", PauseChange(asked=pause))

    async def load(self, conversation_id: str) -> Pause | None:
        """Return the pause of a conversation; raises `pause_unreadable`, never guesses."""
        with store_errors("read a pause"):
            text = await self._log.clients.read.hget(self._name(conversation_id), "open")
        return None if text is None else read_pause(text)

    async def take(self, conversation_id: str, pause_id: str) -> Pause | None:
        """Remove and return that pause, in one step: of several takers one gets it."""
        found = await self.load(conversation_id)
        if found is None or found.id != pause_id:
            return None
        taken = PauseChange(taken=pause_id)
        return found if await self._change(conversation_id, pause_id, taken) else None

    async def clear(self, conversation_id: str) -> None:
        """Remove the pause of a conversation, if there is one."""
        found = await self.load(conversation_id)
        if found is not None:
            await self._change(conversation_id, found.id, PauseChange(taken=found.id))

    async def _change(self, conversation_id: str, pause_id: str, change: PauseChange) -> bool:
        """Change a pause; with an id only while that pause is open."""
        token = secrets.token_hex(8)
        args: list[Argument] = [pause_id, token, change.pack()]
        names = [self._name(conversation_id)]
        with store_errors("change a pause"):
            return bool(await resend(lambda _: _PAUSE.run(self._log.clients.write, names, args)))

    def _name(self, conversation_id: str) -> str:
        return self._log.keys.pause(ThreadKey(self._owner, conversation_id))
