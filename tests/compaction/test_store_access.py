"""Any store with every capability, and what happens when it fails."""

from __future__ import annotations

from typing import Any

import pytest
from backscroll.compaction.store import (
    EMPTY,
    Cache,
    CompactionEntry,
    InMemoryCompactionStore,
    Marks,
)
from backscroll.compaction.store_access import Held, StoreAccess, joined
from backscroll.kernel.errors import LeaseLost, StoreError
from backscroll.kernel.ports import SystemClock
from compaction.compaction_store_contract import CompactionStoreContract, SeedStoreContract

ENTRY = CompactionEntry(Cache(4, "aa", "summary"), marks=Marks(6, 0, 6, "bb"))


class Seed:
    """Knows cache and failures, and nothing but get and put."""

    def __init__(self) -> None:
        self.kept: dict[str, tuple[Any, int]] = {}

    async def get(self, conversation_id: str) -> CompactionEntry:
        """Return what is kept."""
        return CompactionEntry(*self.kept.get(conversation_id, (None, 0)))

    async def put(self, conversation_id: str, entry: CompactionEntry) -> None:
        """Keep two fields."""
        self.kept[conversation_id] = (entry.cache, entry.failures)


class Broken(InMemoryCompactionStore):
    """Fails while it is down."""

    down: tuple[str, ...] = ()
    error: Exception = StoreError("gone")

    def _maybe(self, name: str) -> None:
        if name in self.down:
            raise self.error

    async def get(self, conversation_id: str) -> CompactionEntry:
        """Fail or answer."""
        self._maybe("get")
        return await super().get(conversation_id)

    async def swap(self, conversation_id: str, entry: CompactionEntry, generation: Any) -> bool:
        """Fail or answer."""
        self._maybe("put")
        return await super().swap(conversation_id, entry, generation)

    async def count_failure(self, conversation_id: str) -> int:
        """Fail or answer."""
        self._maybe("put")
        return await super().count_failure(conversation_id)


def access(store: Any, held: Held | None = None) -> StoreAccess:
    """Return access to a store."""
    return StoreAccess(store, SystemClock(), held)


async def test_a_small_store_gets_what_it_lacks() -> None:
    """STO2: swap, counting, leases and clear over get and put."""
    store = Seed()
    small = access(store)
    assert await small.swap("t", ENTRY, None)
    assert (await small.get("t")).cache == ENTRY.cache
    assert await small.take_lease("t", "one", 60) and await small.take_lease("t", "two", 60)
    await small.drop_lease("t", "one")
    assert [await small.count_failure("t") for _ in range(2)] == [1, 2]
    assert (await small.get("t")).opened_ms is not None
    await small.clear("t")
    assert await small.get("t") == EMPTY
    assert store.kept["t"] == (None, 0) and small.failed == 0


async def test_a_whole_store_is_used_as_it_is() -> None:
    """Generations and leases are the store's own."""
    whole = access(InMemoryCompactionStore())
    read = await whole.get("t")
    assert await whole.swap("t", ENTRY, read.generation)
    assert not await whole.swap("t", EMPTY, read.generation)
    assert await whole.take_lease("t", "one", 60)
    assert not await whole.take_lease("t", "two", 60)
    await whole.drop_lease("t", "one")
    assert await whole.take_lease("t", "two", 60)
    assert await whole.count_failure("t") == 1
    await whole.clear("t")
    assert (await whole.get("t")).cache is None


async def test_what_cannot_be_stored_is_kept_in_the_process() -> None:
    """STO8: put is down, then get too, then all works again."""
    store = Broken()
    store.down = ("put",)
    broken = access(store)
    assert await broken.swap("t", ENTRY, 0)
    assert (await broken.get("t")).cache == ENTRY.cache
    assert broken.failed == 1

    store.down = ("get", "put")
    assert (await broken.get("t")).cache == ENTRY.cache
    assert await broken.get("u") == EMPTY

    store.down = ()
    found = await broken.get("t")
    assert found.cache == ENTRY.cache
    assert await broken.swap("t", found, found.generation)
    assert (await store.get("t")).cache == ENTRY.cache


async def test_a_store_that_cannot_be_read_is_answered_from_what_was_known() -> None:
    """STO8: get is down, put works; nothing is behind, and nothing is lost."""
    store = Broken()
    broken = access(store)
    await broken.swap("t", ENTRY, 0)
    store.down = ("get",)
    assert (await broken.get("t")).cache == ENTRY.cache
    assert not broken.is_behind("t")
    store.down = ("put",)
    await broken.swap("t", ENTRY, 1)
    assert broken.is_behind("t")


async def test_what_is_held_is_shared_by_several_accesses() -> None:
    """STO8: the next run of this process has it, too."""
    store, held = Broken(), Held()
    store.down = ("get", "put")
    await access(store, held).swap("t", ENTRY, 0)
    assert (await access(store, held).get("t")).cache == ENTRY.cache


async def test_failures_are_counted_though_the_store_is_down() -> None:
    """STO8, SUM10: the breaker works without it."""
    store = Broken()
    store.down = ("get", "put")
    broken = access(store)
    assert [await broken.count_failure("t") for _ in range(3)] == [1, 2, 3]
    assert (await broken.get("t")).failures == 3


async def test_a_lost_lease_comes_out() -> None:
    """STO9: nothing contains it."""
    store = Broken()
    store.down, store.error = ("put",), LeaseLost("t", 1, 2)
    with pytest.raises(LeaseLost):
        await access(store).swap("t", ENTRY, 0)


async def test_waiting_for_another_ends_with_its_entry_or_the_deadline() -> None:
    """STO3, STO4: a newer summary or failure, else what is there when time is up."""
    clock, store = SystemClock(), InMemoryCompactionStore()
    waiting = StoreAccess(store, clock)
    known = await waiting.get("t")

    async def wait(within_s: float) -> CompactionEntry | None:
        deadline = clock.monotonic() + within_s
        return await waiting.await_turn("t", known, deadline, lambda: _answer(False))

    assert await wait(0) == known
    await store.put("t", EMPTY.replace(marks=Marks(1, 0, 1, "x")))
    late = await wait(0.15)
    assert late is not None and late.cache is None and late.marks is not None
    ready = EMPTY.replace(ring=(Cache(4, "aa", "ready"),))
    for changed in (ENTRY, ready, EMPTY.replace(failures=1)):
        await store.put("t", changed)
        found = await wait(60)
        assert found is not None and found.replace(generation=None) == changed


async def test_a_claim_that_was_given_back_is_taken_over() -> None:
    """STO3: whoever stopped without an outcome keeps nobody waiting until the deadline."""
    clock, store = SystemClock(), InMemoryCompactionStore()
    waiting, answers = StoreAccess(store, clock), [False, True]
    known = await waiting.get("t")

    found = await waiting.await_turn(
        "t", known, clock.monotonic() + 60, lambda: _answer(answers.pop(0))
    )

    assert found is None and answers == []


async def _answer(value: bool) -> bool:
    return value


async def test_only_the_conversations_used_last_are_held(monkeypatch: Any) -> None:
    """CS2: what is kept in the process has a bound."""
    monkeypatch.setattr("backscroll.compaction.store_access.LRU", 1)
    store = Broken()
    store.down = ("get", "put")
    broken = access(store)
    await broken.swap("a", ENTRY, 0)
    await broken.swap("b", ENTRY, 0)
    assert await broken.get("a") == EMPTY


def cache(n: int, name: str) -> Cache:
    """Return a cache of that length and branch."""
    return Cache(n, name, f"{name} {n}")


def test_of_two_summaries_of_one_history_the_longer_wins() -> None:
    """Swap lost: ours is discarded if theirs covers at least as much."""
    ours, theirs = CompactionEntry(cache(4, "a")), CompactionEntry(cache(8, "b"))
    assert joined(ours, theirs, lambda _: True) is None
    merged = joined(theirs, ours, lambda _: True)
    assert merged is not None
    assert merged.cache == theirs.cache and merged.ring == (ours.cache,)


def test_a_summary_of_another_branch_goes_to_the_ring() -> None:
    """STO7: both are kept; what nobody had yet is taken."""
    ours, theirs = CompactionEntry(cache(4, "a")), CompactionEntry(cache(2, "b"), failures=2)
    merged = joined(ours, theirs, lambda _: False)
    assert merged is not None
    assert merged.cache == theirs.cache and merged.ring == (ours.cache,)
    assert merged.failures == 2
    first = joined(ours, EMPTY, lambda _: True)
    assert first is not None and first.cache == ours.cache


def test_the_later_marks_and_both_rings_stay() -> None:
    """Marks of the longer history; ring entries of both sides, once each."""
    ours = CompactionEntry(marks=Marks(4, 0, 9, "x"), ring=(cache(1, "a"), cache(2, "b")))
    theirs = CompactionEntry(marks=Marks(2, 0, 5, "y"), ring=(cache(2, "b"),))
    merged = joined(ours, theirs, lambda _: True)
    assert merged is not None
    assert merged.marks == ours.marks
    assert {c.prefix_hash for c in merged.ring} == {"a", "b"}
    back = joined(theirs, merged, lambda _: True)
    assert back is None


@pytest.mark.parametrize("ring", [0, 2, 8])
def test_a_joined_ring_is_as_long_as_asked(ring: int) -> None:
    """What two wrote goes to one ring of the configured length, the newest first."""
    ours = CompactionEntry(cache(9, "z"), ring=tuple(cache(n, f"o{n}") for n in range(5)))
    theirs = CompactionEntry(cache(8, "y"), ring=tuple(cache(n, f"t{n}") for n in range(5)))
    merged = joined(ours, theirs, lambda _: True, ring)
    assert merged is not None and merged.cache == ours.cache
    assert len(merged.ring) == ring and merged.ring[:1] == (theirs.cache,)[:ring]


class Through:
    """A store seen through its access."""

    def __init__(self, inner: Any) -> None:
        self._access = access(inner)
        self.get, self.clear = self._access.get, self._access.clear
        self.swap, self.count_failure = self._access.swap, self._access.count_failure
        self.take_lease, self.drop_lease = self._access.take_lease, self._access.drop_lease

    async def put(self, conversation_id: str, entry: CompactionEntry) -> None:
        """Write over whatever is there."""
        assert await self.swap(conversation_id, entry, (await self.get(conversation_id)).generation)


class TestOverASeedStore(SeedStoreContract):
    """STO2: seen through the access it behaves like any store."""

    @pytest.fixture
    def store(self) -> Any:
        """Give it."""
        return Through(Seed())


class TestOverAWholeStore(CompactionStoreContract):
    """The access takes nothing away."""

    @pytest.fixture
    def store(self) -> Any:
        """Give it."""
        return Through(InMemoryCompactionStore())
