"""The values compaction keeps, and the stores that keep them in the process."""

from __future__ import annotations

import pytest
from backscroll.compaction.settings import Settings
from backscroll.compaction.store import (
    EMPTY,
    Cache,
    CompactionEntry,
    CompactionStore,
    InMemoryCompactionStore,
    InMemoryModelFacts,
    InMemoryPinStore,
    ModelFact,
    with_ring,
)
from compaction.compaction_store_contract import (
    PLAIN,
    CompactionStoreContract,
    SeedStoreContract,
)


class SeedStore:
    """Knows only the three fields it was made for, and no capability."""

    def __init__(self) -> None:
        self.kept: dict[str, tuple[Cache | None, int]] = {}

    async def get(self, conversation_id: str) -> CompactionEntry:
        """Return what is kept."""
        return CompactionEntry(*self.kept.get(conversation_id, (None, 0)))

    async def put(self, conversation_id: str, entry: CompactionEntry) -> None:
        """Keep cache and failures, and lose the rest."""
        self.kept[conversation_id] = (entry.cache, entry.failures)

    async def clear(self, conversation_id: str) -> None:
        """Forget it."""
        self.kept.pop(conversation_id, None)


class TestSeedStore(SeedStoreContract):
    """STO2: a store of three fields passes what is asked of all."""

    @pytest.fixture
    def store(self) -> CompactionStore:
        """Give an empty store."""
        return SeedStore()


class TestInMemory(CompactionStoreContract):
    """The store that is used when none is given."""

    @pytest.fixture
    def store(self) -> CompactionStore:
        """Give an empty store."""
        return InMemoryCompactionStore()


async def test_the_oldest_conversation_gives_way() -> None:
    """CS2: the one not used for longest is forgotten, the others stay."""
    store = InMemoryCompactionStore(limit=2)
    for name in ("a", "b"):
        await store.put(name, PLAIN)
    await store.get("a")

    await store.put("c", PLAIN)

    assert (await store.get("b")).cache is None
    assert (await store.get("a")).cache == (await store.get("c")).cache == PLAIN.cache


async def test_clearing_what_is_not_there_makes_nothing() -> None:
    """No entry comes into being by clearing."""
    store = InMemoryCompactionStore(limit=1)
    await store.put("a", PLAIN)
    await store.clear("nobody")
    assert (await store.get("a")).cache == PLAIN.cache


def test_a_cache_made_ahead_of_need_says_so() -> None:
    """STO10: it is told apart by what it was made with."""
    assert Cache(1, "aa", "s", {"ready": True}).ready
    assert not Cache(1, "aa", "s").ready


def test_a_ring_holds_each_prefix_once_and_four_at_most() -> None:
    """The newest comes first, the oldest falls out."""
    entry = EMPTY
    for n in (1, 2, 3, 2, 4, 5):
        entry = with_ring(entry, Cache(n, f"hash {n}", f"summary {n}"))
    assert [cache.prefix_n for cache in entry.ring] == [5, 4, 2, 3]


async def test_what_is_known_of_a_model_is_kept_by_its_key() -> None:
    """Defaults until something was learned."""
    facts = InMemoryModelFacts()
    await facts.put("openai||m", ModelFact(1.2, 3))
    assert (await facts.get("openai||m")).replace(samples=4) == ModelFact(1.2, 4)
    assert await facts.get("openai||n") == ModelFact()


async def test_pins_are_set_and_taken_off() -> None:
    """GRP6: by message, per conversation, within a bound."""
    pins = InMemoryPinStore(limit=1)
    await pins.pin("t", "m1")
    await pins.pin("t", "m2")
    await pins.unpin("t", "m1")
    assert await pins.pins("t") == {"m2"}

    await pins.pin("u", "m9")
    assert await pins.pins("t") == frozenset()


async def test_pins_that_are_read_stay() -> None:
    """The conversation whose pins were not looked at for longest loses them."""
    pins = InMemoryPinStore(limit=2)
    for name in ("a", "b"):
        await pins.pin(name, "m1")
    await pins.pins("a")

    await pins.pin("c", "m1")

    assert [await pins.pins(name) for name in ("a", "b", "c")] == [{"m1"}, set(), {"m1"}]


def test_a_pause_begins_with_enough_failures() -> None:
    """It lasts for the cooldown after the last of them."""
    settings = Settings(failures_open=2, cooldown=1.5)
    two = CompactionEntry(failures=2, opened_ms=1_000)

    assert two.paused_until_ms(settings) == 2_500
    assert two.replace(failures=1).paused_until_ms(settings) is None
    assert two.replace(opened_ms=None).paused_until_ms(settings) is None
    assert two.replace(failures=1).paused_until_ms(Settings(failures_open=0)) == 301_000
