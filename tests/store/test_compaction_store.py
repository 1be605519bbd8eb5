"""Compaction entries in Redis."""

from __future__ import annotations

import asyncio

import msgpack
import pytest
from backscroll.compaction.store import Cache, CompactionEntry, Marks, ModelFact
from backscroll.kernel.errors import LeaseLost
from backscroll.kernel.message import user
from backscroll.store.chat_memory import RedisChatMemory
from backscroll.store.compaction_store import RedisCompactionStore, RedisModelFacts
from backscroll.store.connection import RedisClients
from backscroll.store.keys import Keys, ThreadKey
from backscroll.store.thread_log import RunLease, ThreadLog

T = ThreadKey("local", "t")
ENTRY = CompactionEntry(
    cache=Cache(170, "4be1", "用户想要退款 🌍", {"by": "model"}),
    failures=2,
    marks=Marks(3, 1, 4, "77aa"),
    ring=(Cache(12, "c0de", "older"),),
    opened_ms=1_764_465_600_123,
)


@pytest.fixture
def store(clients: RedisClients, keys: Keys) -> RedisCompactionStore:
    """Give a store without a run."""
    return RedisCompactionStore(clients, keys)


@pytest.fixture
async def of_run(clients: RedisClients, keys: Keys) -> RedisCompactionStore:
    """Give the store of run r1 on thread t, whose fence is 3."""
    await clients.write.hset(keys.meta(T), mapping={"fence": 3, "run": "r1"})
    return RedisCompactionStore(clients, keys, lease=RunLease(T, "r1", 3))


async def test_an_unknown_conversation_has_the_empty_entry(store: RedisCompactionStore) -> None:
    """CS1, STO1: no cache, no failures, generation 0."""
    assert await store.get("t") == CompactionEntry(generation=0)


async def test_an_entry_comes_back_whole(store: RedisCompactionStore) -> None:
    """STO1: CJK, marks, ring, and a generation that rises with every write."""
    await store.put("t", ENTRY)
    assert await store.get("t") == ENTRY.replace(generation=1)

    await store.put("t", ENTRY.replace(failures=0, opened_ms=None))
    found = await store.get("t")
    assert (found.failures, found.opened_ms, found.generation) == (0, None, 2)


async def test_a_cleared_entry_is_the_empty_one(store: RedisCompactionStore) -> None:
    """STO1: nobody can swap over it with what was read before."""
    await store.put("t", ENTRY)
    await store.put("other", ENTRY)

    await store.clear("t")

    assert await store.get("t") == CompactionEntry(generation=2)
    assert not await store.swap("t", ENTRY, 1)
    assert (await store.get("other")).cache == ENTRY.cache


@pytest.mark.parametrize("value", [b"\xc1", b"", msgpack.packb({"v": 99}), msgpack.packb([1])])
async def test_what_cannot_be_read_is_the_empty_entry(
    store: RedisCompactionStore, clients: RedisClients, keys: Keys, value: bytes
) -> None:
    """CS1, STO1: a corrupt value or a newer version costs a summary, never an error."""
    fields = {"entry": value, "failures": b"many", "gen": b"7"}
    await clients.write.hset(keys.compaction(T), mapping=fields)

    assert await store.get("t") == CompactionEntry(generation=7)


async def test_unknown_fields_are_kept(
    store: RedisCompactionStore, clients: RedisClients, keys: Keys
) -> None:
    """STO1: what a later version keeps beside the entry stays."""
    await clients.write.hset(keys.compaction(T), "overrides", b"x")

    await store.put("t", ENTRY)
    await store.clear("t")

    assert await clients.read.hget(keys.compaction(T), "overrides") == b"x"


async def test_of_many_swaps_one_wins(clients: RedisClients, keys: Keys) -> None:
    """Fifty workers that read the same generation."""
    stores = [RedisCompactionStore(clients, keys) for _ in range(50)]

    won = await asyncio.gather(
        *(store.swap("t", ENTRY.replace(failures=n), 0) for n, store in enumerate(stores))
    )

    assert sum(won) == 1
    assert (await stores[0].get("t")).failures == won.index(True)
    assert await stores[0].swap("t", ENTRY, 1)
    assert await stores[0].swap("new", ENTRY, None)


async def test_counts_failures_and_says_when(store: RedisCompactionStore) -> None:
    """By Redis's clock, each once, as a new generation; the cache stays."""
    await store.put("t", ENTRY.replace(failures=0, opened_ms=None))

    counts = await asyncio.gather(*(store.count_failure("t") for _ in range(3)))

    found = await store.get("t")
    assert sorted(counts) == [1, 2, 3]
    assert (found.failures, found.generation, found.cache) == (3, 4, ENTRY.cache)
    assert (found.opened_ms or 0) > 1_700_000_000_000


async def test_one_of_many_may_summarise(store: RedisCompactionStore) -> None:
    """The claim is one worker's until it gives it back; others cannot give it back."""
    claims = await asyncio.gather(*(store.take_lease("t", f"w{n}", 60) for n in range(50)))
    assert sum(claims) == 1
    winner = f"w{claims.index(True)}"

    assert await store.take_lease("t", winner, 60)
    await store.drop_lease("t", "someone")
    assert not await store.take_lease("t", "late", 60)
    await store.drop_lease("t", winner)

    assert await store.take_lease("t", "late", 60)


async def test_a_claim_ends_by_itself(
    store: RedisCompactionStore, clients: RedisClients, keys: Keys
) -> None:
    """STO4: a dead winner holds nobody up for longer than its time."""
    await store.take_lease("t", "w1", 0.5)

    assert 0 < await clients.read.pttl(keys.compaction_lease(T)) <= 500


async def test_a_lost_fence_cannot_write(
    of_run: RedisCompactionStore, clients: RedisClients, keys: Keys
) -> None:
    """STO9: what another worker's run made is not overwritten; other threads are free."""
    await of_run.put("t", ENTRY)
    await clients.write.hset(keys.meta(T), "fence", 4)

    with pytest.raises(LeaseLost, match="wrote with fence 3, the log is at 4"):
        await of_run.put("t", CompactionEntry())
    with pytest.raises(LeaseLost):
        await of_run.swap("t", CompactionEntry(), 1)
    with pytest.raises(LeaseLost):
        await of_run.count_failure("t")
    await of_run.put("other", ENTRY)

    assert await of_run.get("t") == ENTRY.replace(generation=1)


async def test_appending_messages_changes_nothing(
    store: RedisCompactionStore, clients: RedisClients, keys: Keys
) -> None:
    """STO5: entry, failures and expiry stay as they are."""
    await store.put("t", ENTRY)

    await RedisChatMemory(ThreadLog(clients, keys, "w1")).add("t", [user("hi")])

    assert await store.get("t") == ENTRY.replace(generation=1)
    assert await clients.read.ttl(keys.compaction(T)) == -1


async def test_owners_do_not_meet(clients: RedisClients, keys: Keys) -> None:
    """Two owners may use the same conversation id."""
    await RedisCompactionStore(clients, keys, "ann").put("t", ENTRY)

    assert (await RedisCompactionStore(clients, keys, "bob").get("t")).cache is None


async def test_two_workers_read_the_same_facts(clients: RedisClients, keys: Keys) -> None:
    """TOK4: what one learned about a model, all know."""
    fact = ModelFact(1.3, 12, 32768, 1_764_465_600.5, 128_000)
    one, two = RedisModelFacts(clients, keys), RedisModelFacts(clients, keys)
    assert await one.get("openai||m") == ModelFact()

    await one.put("openai||m", fact)

    assert await two.get("openai||m") == fact
    assert await two.get("openai||other") == ModelFact()


@pytest.mark.parametrize("value", [b"\xc1", msgpack.packb([1]), msgpack.packb({"r": "x"})])
async def test_facts_that_cannot_be_read_are_none(
    clients: RedisClients, keys: Keys, value: bytes
) -> None:
    """Losing them costs accuracy only."""
    await clients.write.hset(keys.models(), "m", value)

    assert await RedisModelFacts(clients, keys).get("m") == ModelFact()
