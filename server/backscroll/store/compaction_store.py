"""Compaction entries and what was learned about models, shared by all workers."""

from __future__ import annotations

from collections.abc import Sequence

import msgpack

from backscroll.compaction.entry_codec import (
    fact_from_dict,
    fact_to_dict,
    pack_entry,
    unpack_entry,
)
from backscroll.compaction.store import EMPTY, CompactionEntry, ModelFact
from backscroll.kernel.errors import LeaseLost
from backscroll.store.connection import RedisClients, store_errors
from backscroll.store.keys import LOCAL_OWNER, Keys, ThreadKey
from backscroll.store.scripts import Argument, Script, resend
from backscroll.store.thread_log import RunLease

_SWAP = Script("compaction_swap")
_FAIL = Script("compaction_fail")
_TAKE = Script("lease_take")
_DROP = Script("lease_drop")


class RedisCompactionStore:
    """The compaction entries of one owner's conversations, with every optional capability.

    With the lease of a run, that thread's entry is written only while the lease holds; afterwards
    LeaseLost is raised.
    """

    def __init__(
        self,
        clients: RedisClients,
        keys: Keys,
        owner: str = LOCAL_OWNER,
        *,
        lease: RunLease | None = None,
    ) -> None:
        self._clients, self._keys = clients, keys
        self._owner, self._lease = owner, lease

    async def get(self, conversation_id: str) -> CompactionEntry:
        """Return the entry; the empty one for an unknown conversation or a corrupt value."""
        name = self._keys.compaction(self._thread(conversation_id))
        with store_errors("read a compaction entry"):
            entry, failures, opened, generation = await self._clients.read.hmget(
                name, ["entry", "failures", "opened", "gen"]
            )
        return unpack_entry(entry).replace(
            failures=_number(failures) or 0,
            opened_ms=_number(opened),
            generation=_number(generation) or 0,
        )

    async def put(self, conversation_id: str, entry: CompactionEntry) -> None:
        """Replace the entry, whatever is there."""
        await self._write(conversation_id, entry, None)

    async def clear(self, conversation_id: str) -> None:
        """Forget the entry; its generation goes on, so nobody swaps over the empty one."""
        await self.put(conversation_id, EMPTY)

    async def swap(
        self, conversation_id: str, entry: CompactionEntry, generation: int | None
    ) -> bool:
        """Write only if nobody wrote since that generation was read."""
        return await self._write(conversation_id, entry, generation or 0) > 0

    async def count_failure(self, conversation_id: str) -> int:
        """Add one failure of the summariser and say when; returns the new count."""
        return await self._ask(_FAIL, conversation_id, ())

    async def take_lease(self, conversation_id: str, token: str, ttl_s: float) -> bool:
        """Claim the right to summarise for a while; False while someone else holds it."""
        name = self._keys.compaction_lease(self._thread(conversation_id))
        args: list[Argument] = [token, max(1, round(ttl_s * 1000))]
        with store_errors("claim a summary"):
            return bool(await resend(lambda _: _TAKE.run(self._clients.write, [name], args)))

    async def drop_lease(self, conversation_id: str, token: str) -> None:
        """Give the claim back, if it is still ours."""
        name = self._keys.compaction_lease(self._thread(conversation_id))
        with store_errors("give a claim back"):
            await resend(lambda _: _DROP.run(self._clients.write, [name], [token]))

    async def _write(
        self, conversation_id: str, entry: CompactionEntry, generation: int | None
    ) -> int:
        plain = entry.replace(failures=0, opened_ms=None, generation=None)
        args: tuple[Argument, ...] = (
            "" if generation is None else generation,
            pack_entry(plain),
            entry.failures,
            "" if entry.opened_ms is None else entry.opened_ms,
        )
        return await self._ask(_SWAP, conversation_id, args)

    async def _ask(self, script: Script, conversation_id: str, args: Sequence[Argument]) -> int:
        thread = self._thread(conversation_id)
        is_leased = self._lease is not None and self._lease.thread == thread
        fence = self._lease.fence if self._lease and is_leased else 0
        names = [self._keys.compaction(thread), self._keys.meta(thread)]
        fenced: list[Argument] = [fence, *args]
        with store_errors("write a compaction entry"):
            # Not sent again: a lost answer costs a summary or a count, and never correctness.
            word, number = await script.run(self._clients.write, names, fenced)
        if word == b"lost":
            raise LeaseLost(thread.thread_id, fence, int(number))
        return int(number)

    def _thread(self, conversation_id: str) -> ThreadKey:
        return ThreadKey(self._owner, conversation_id)


class RedisModelFacts:
    """What was learned about models, shared by all workers."""

    def __init__(self, clients: RedisClients, keys: Keys) -> None:
        self._clients, self._keys = clients, keys

    async def get(self, key: str) -> ModelFact:
        """Return what is known of that model, or the defaults."""
        with store_errors("read what is known of a model"):
            found = await self._clients.read.hget(self._keys.models(), key)
        try:
            return fact_from_dict(msgpack.unpackb(found)) if found else ModelFact()
        except (ValueError, msgpack.UnpackException):
            return ModelFact()

    async def keys(self) -> list[str]:
        """Return the keys of all models of which something is known."""
        with store_errors("read what is known of models"):
            names = await self._clients.read.hkeys(self._keys.models())
        return [name.decode("utf-8", "surrogatepass") for name in names]

    async def put(self, key: str, fact: ModelFact) -> None:
        """Replace what is known."""
        packed = msgpack.packb(fact_to_dict(fact))
        with store_errors("note what is known of a model"):
            await resend(lambda _: self._clients.write.hset(self._keys.models(), key, packed))


def _number(value: bytes | None) -> int | None:
    return int(value) if value is not None and value.isdigit() else None
