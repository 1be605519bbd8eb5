"""What every CompactionStore must do; a subclass provides the fixture `store`."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from backscroll.compaction.store import Cache, CompactionEntry, CompactionStore, Marks

PLAIN = CompactionEntry(Cache(170, "4be1" * 16, "用户要退款 🌍\n<facts>\n- 必须\n</facts>"), 2)
WHOLE = PLAIN.replace(
    marks=Marks(180, 171, 180, "77aa" * 16),
    ring=(Cache(12, "c0de" * 16, "older", {"kind": "model", "at": 5}),),
    opened_ms=1_764_465_600_123,
)


class SeedStoreContract:
    """What even a store must do that knows only `cache` and `failures`."""

    async def test_an_unknown_conversation_has_the_empty_entry(
        self, store: CompactionStore
    ) -> None:
        """CS1, STO1: no cache, no failures."""
        entry = await store.get("nobody")
        assert (entry.cache, entry.failures, entry.marks, entry.ring) == (None, 0, None, ())

    async def test_cache_and_failures_come_back(self, store: CompactionStore) -> None:
        """CS1, STO1: with CJK and an emoji, byte for byte."""
        await store.put("会话 1", PLAIN)
        entry = await store.get("会话 1")
        assert (entry.cache, entry.failures) == (PLAIN.cache, 2)

    async def test_conversations_do_not_touch_each_other(self, store: CompactionStore) -> None:
        """Two conversations hold two entries."""
        await store.put("a", PLAIN)
        assert (await store.get("b")).cache is None

    async def test_a_cleared_entry_is_the_empty_one(self, store: CompactionStore) -> None:
        """CS1, STO1: clearing one leaves the other."""
        await store.put("a", PLAIN)
        await store.put("b", PLAIN)

        await store.clear("a")

        assert (await store.get("a")).cache is None
        assert (await store.get("a")).failures == 0
        assert (await store.get("b")).cache == PLAIN.cache


class CompactionStoreContract(SeedStoreContract):
    """What a store with every capability must do beyond that."""

    async def test_every_field_comes_back(self, store: CompactionStore) -> None:
        """STO1: marks, ring and the time of the last failure."""
        await store.put("t", WHOLE)
        found = await store.get("t")
        assert found.replace(generation=None) == WHOLE

    async def test_a_swap_needs_the_generation_that_is_there(self, store: Any) -> None:
        """Of two that read the same entry, one writes."""
        read = await store.get("t")

        assert await store.swap("t", WHOLE, read.generation)
        assert not await store.swap("t", PLAIN, read.generation)

        assert (await store.get("t")).marks == WHOLE.marks

    async def test_many_swaps_at_once_give_one_winner(self, store: Any) -> None:
        """Compare and write are one step."""
        generation = (await store.get("t")).generation
        entries = [CompactionEntry(Cache(n, "aa", str(n))) for n in range(10)]

        done = await asyncio.gather(*(store.swap("t", e, generation) for e in entries))

        assert done.count(True) == 1
        assert (await store.get("t")).cache == entries[done.index(True)].cache

    async def test_failures_are_counted_together(self, store: Any) -> None:
        """SUM10: ten counts at once are ten, each with its time."""
        counts = await asyncio.gather(*(store.count_failure("t") for _ in range(10)))
        found = await store.get("t")
        assert sorted(counts) == list(range(1, 11))
        assert found.failures == 10
        assert found.opened_ms is not None

    async def test_a_count_makes_a_new_generation(self, store: Any) -> None:
        """A mark written by someone who did not see the failure does not undo it."""
        read = await store.get("t")
        await store.count_failure("t")
        assert not await store.swap("t", WHOLE, read.generation)

    async def test_a_count_keeps_the_cache(self, store: Any) -> None:
        """A failure says nothing about the summary that is there."""
        await store.put("t", WHOLE)
        await store.count_failure("t")
        assert (await store.get("t")).cache == WHOLE.cache

    async def test_a_lease_has_one_holder(self, store: Any) -> None:
        """STO3: while one holds it nobody else gets it; the holder may claim it again."""
        assert await store.take_lease("t", "one", 60)
        assert not await store.take_lease("t", "two", 60)
        assert await store.take_lease("t", "one", 60)
        assert await store.take_lease("other", "two", 60)

    async def test_only_the_holder_gives_a_lease_back(self, store: Any) -> None:
        """A late answer of somebody else frees nothing."""
        await store.take_lease("t", "one", 60)
        await store.drop_lease("t", "two")
        assert not await store.take_lease("t", "two", 60)

        await store.drop_lease("t", "one")
        assert await store.take_lease("t", "two", 60)

    async def test_a_lease_of_a_dead_holder_ends(self, store: Any) -> None:
        """STO4: a claim with an end, not a lock."""
        await store.take_lease("t", "dead", 0.05)
        for _ in range(100):
            if await store.take_lease("t", "next", 60):
                return
            await asyncio.sleep(0.01)
        pytest.fail("the lease of a dead holder did not end")
