"""The log: numbers without holes, one step, and a batch never twice."""

from __future__ import annotations

import asyncio
import json

import pytest
from backscroll.kernel.errors import LeaseLost, StoreError
from backscroll.store.connection import RedisClients, connect
from backscroll.store.entry import STAMP, Kind, NewEntry, unpack_bell
from backscroll.store.keys import Keys, ThreadKey
from backscroll.store.thread_log import Appended, LogHead, ThreadLog
from cutting_proxy import cutting_proxy

T = ThreadKey("local", "t1")


def new(type: str = "X", kind: Kind = "event", body: bytes = b"{}") -> NewEntry:
    """Return an entry to append."""
    return NewEntry(kind, type, body, "client", "r1")


@pytest.fixture
def log(clients: RedisClients, keys: Keys) -> ThreadLog:
    """Give the log of one worker."""
    return ThreadLog(clients, keys, "w1")


@pytest.fixture
async def fenced(clients: RedisClients, keys: Keys) -> None:
    """Let fence 3 be the one that counts."""
    await clients.write.hset(keys.meta(T), mapping={"fence": 3})


async def test_numbers_entries_without_holes(log: ThreadLog) -> None:
    """The first is 1, and a batch is contiguous."""
    first = await log.append(T, [new("a"), new("b")], fence=0)
    second = await log.append(T, [new("c")], fence=0)

    assert (first.first, first.last, second.first, second.last) == (1, 2, 3, 3)
    read = await log.read(T, 0)
    assert [(entry.seq, entry.type, entry.worker) for entry in read] == [
        (1, "a", "w1"),
        (2, "b", "w1"),
        (3, "c", "w1"),
    ]
    assert await log.last_seq(T) == 3


async def test_four_writers_lose_nothing(clients: RedisClients, keys: Keys) -> None:
    """Their batches stay whole, and numbers and times only rise."""

    async def write(worker: str) -> None:
        log = ThreadLog(clients, keys, worker)
        for n in range(100):
            await log.append(T, [new(f"{n}a"), new(f"{n}b")], fence=0)

    await asyncio.gather(*(write(f"w{n}") for n in range(4)))

    entries = await ThreadLog(clients, keys, "w").read(T, 0)
    assert [entry.seq for entry in entries] == list(range(1, 801))
    assert [entry.time for entry in entries] == sorted(entry.time for entry in entries)
    for worker in ("w0", "w1", "w2", "w3"):
        types = [entry.type for entry in entries if entry.worker == worker]
        assert types == [f"{n}{half}" for n in range(100) for half in "ab"]
    assert all(a.worker == b.worker for a, b in zip(entries[::2], entries[1::2], strict=True))


async def test_time_is_that_of_redis_and_never_falls(
    log: ThreadLog, clients: RedisClients, keys: Keys
) -> None:
    """An entry is never earlier than the one before, even when the clock goes back."""
    seconds, _ = await clients.read.time()
    first = await log.append(T, [new()], fence=0)
    ahead = first.time + 3_600_000
    await clients.write.hset(keys.meta(T), "time", ahead)

    second = await log.append(T, [new()], fence=0)

    assert 0 <= first.time - seconds * 1000 < 60_000
    assert second.time == ahead
    assert [entry.time for entry in await log.read(T, 0)] == [first.time, ahead]


async def test_stamps_the_time_into_the_body(log: ThreadLog) -> None:
    """E3: an event carries the time of its entry; what stands around it is kept."""
    body = b'{"type":"X","timestamp":' + STAMP + ',"delta":"ü🌍"}'.encode()
    stamped = NewEntry("event", "X", body, "client", "r1", stamp_at=body.index(STAMP) + 1)

    appended = await log.append(T, [stamped, new(body=body)], fence=0)

    first, second = await log.read(T, 0)
    assert json.loads(first.body) == {"type": "X", "timestamp": appended.time, "delta": "ü🌍"}
    assert second.body == body


async def test_refuses_a_lower_fence(log: ThreadLog, fenced: None) -> None:
    """A worker that lost its lease writes nothing any more: no entry, blob or state."""
    with pytest.raises(LeaseLost, match="wrote with fence 2, the log is at 3"):
        await log.append(T, [new()], fence=2, blobs={"a": b"x"}, state=b"{}")

    assert await log.read(T, 0) == []
    assert await log.blobs(T, ["a"]) == {}
    assert await log.state(T) is None


@pytest.mark.parametrize("fence", [0, 3])
async def test_accepts_the_present_fence_and_none(log: ThreadLog, fenced: None, fence: int) -> None:
    """The owner writes, and so does an operator, who has no run."""
    assert (await log.append(T, [new()], fence=fence)).last == 1


async def test_refuses_a_fence_of_a_log_that_was_deleted(
    log: ThreadLog, clients: RedisClients, keys: Keys, fenced: None
) -> None:
    """A run of a deleted thread does not bring it back."""
    await clients.write.delete(keys.meta(T))

    with pytest.raises(LeaseLost):
        await log.append(T, [new()], fence=3)
    assert not (await log.head(T)).exists


async def test_publishes_what_it_stored(log: ThreadLog, clients: RedisClients, keys: Keys) -> None:
    """A subscriber builds the same entries as a reader, without reading."""
    client = clients.dedicated()
    async with client.pubsub() as pubsub:
        await pubsub.subscribe(keys.bell(T))
        assert (await pubsub.get_message(timeout=5))["type"] == "subscribe"

        await log.append(T, [new("a"), new("b", "call", b"y" * 3000)], fence=0)

        message = await pubsub.get_message(timeout=5)
    await client.aclose()
    bell = unpack_bell(message["data"])
    assert (bell.first, bell.last, bell.stop) == (1, 2, "")
    assert list(bell.entries) == await log.read(T, 0)


async def test_rings_without_entries_when_they_are_large(
    log: ThreadLog, clients: RedisClients, keys: Keys
) -> None:
    """A subscriber is told the numbers and reads a large batch from the log."""
    client = clients.dedicated()
    async with client.pubsub() as pubsub:
        await pubsub.subscribe(keys.bell(T))
        await pubsub.get_message(timeout=5)
        await log.append(T, [new(body=b"x" * 600_000)] * 2, fence=0)
        message = await pubsub.get_message(timeout=5)
    await client.aclose()

    bell = unpack_bell(message["data"])
    assert (bell.first, bell.last, bell.entries) == (1, 2, ())


async def test_a_lost_answer_does_not_repeat_a_batch(valkey_url: str, keys: Keys) -> None:
    """The connection breaks between execution and answer: sent again, answered as before."""
    async with cutting_proxy(valkey_url) as proxy:
        clients, direct = connect(proxy.url), connect(valkey_url)
        log, other = ThreadLog(clients, keys, "w1"), ThreadLog(direct, keys, "w2")
        await log.append(T, [new("a")], fence=0)
        proxy.cuts = 1

        appended = await log.append(T, [new("b"), new("c", "call")], fence=0)
        await other.append(T, [new("d")], fence=0)

        assert proxy.answers_swallowed == 1
        assert (appended.first, appended.last) == (2, 3)
        assert [entry.type for entry in await other.read(T, 0)] == ["a", "b", "c", "d"]
        assert await other.call_seqs(T) == [3]
        await clients.close()
        await direct.close()


async def test_a_batch_is_recognised_among_others(valkey_url: str, keys: Keys) -> None:
    """What others wrote meanwhile does not hide it, and a lost lease does not deny it."""
    async with cutting_proxy(valkey_url) as proxy:
        clients, direct = connect(proxy.url), connect(valkey_url)
        log, other = ThreadLog(clients, keys, "w1"), ThreadLog(direct, keys, "w2")
        await direct.write.hset(keys.meta(T), "fence", 3)
        await log.append(T, [new("a")], fence=3)
        proxy.cuts = 5
        with pytest.raises(StoreError):
            await log.append(T, [new("b")], fence=3, batch="mine")
        await other.append(T, [new("c")], fence=0)
        await direct.write.hset(keys.meta(T), "fence", 4)

        appended = await log.append(T, [new("b")], fence=3, batch="mine")

        assert (appended.first, appended.last) == (2, 2)
        assert [entry.type for entry in await other.read(T, 0)] == ["a", "b", "c"]
        await clients.close()
        await direct.close()


async def test_an_answered_batch_is_answered_the_same_way(log: ThreadLog) -> None:
    """The same name again appends nothing; another thread's batch of that name is another."""
    first = await log.append(T, [new()], fence=0, batch="b1")

    assert await log.append(T, [new()], fence=0, batch="b1") == first
    assert await log.last_seq(T) == 1
    assert (await log.append(ThreadKey("local", "t2"), [new()], fence=0, batch="b1")).first == 1


async def test_remembers_a_bounded_number_of_batches(log: ThreadLog) -> None:
    """What it keeps of batches does not grow with the log."""
    for n in range(300):
        await log.append(T, [], fence=0, batch=str(n))

    assert len(log._answers) == 256


async def test_reads_pages_forwards_and_backwards(log: ThreadLog) -> None:
    """Both are oldest first and stop at the limit."""
    await log.append(T, [new(str(n)) for n in range(1, 11)], fence=0)

    assert [entry.seq for entry in await log.read(T, 4, 3)] == [5, 6, 7]
    assert [entry.seq for entry in await log.read(T, -1, 2)] == [1, 2]
    assert await log.read(T, 10) == []
    assert [entry.seq for entry in await log.read_before(T, 8, 3)] == [5, 6, 7]
    assert [entry.seq for entry in await log.read_before(T, 3)] == [1, 2]
    assert await log.read_before(T, 1) == []


async def test_reads_one_entry(log: ThreadLog) -> None:
    """By its number; there is none below the first or above the head."""
    await log.append(T, [new("a"), new("b")], fence=0)

    found = await log.entry(T, 2)
    assert found is not None
    assert found.type == "b"
    assert [await log.entry(T, seq) for seq in (0, 3)] == [None, None]


async def test_reads_entries_by_their_numbers(log: ThreadLog) -> None:
    """In the order asked for; those that are not there are left out."""
    await log.append(T, [new("a"), new("b"), new("c")], fence=0)

    assert [entry.type for entry in await log.entries_at(T, [3, 9, 1])] == ["c", "a"]
    assert await log.entries_at(T, []) == []


async def test_tells_the_time_of_redis(log: ThreadLog) -> None:
    """It is the clock that entries are stamped by."""
    before = await log.now()
    appended = await log.append(T, [new()], fence=0)

    assert before <= appended.time <= await log.now()


async def test_an_unknown_thread_is_empty(log: ThreadLog) -> None:
    """Reading it makes nothing."""
    assert await log.head(T) == LogHead()
    assert await log.read(T, 0) == []
    assert await log.call_seqs(T) == []
    assert await log.last_seq(T) == 0
    assert await log.blobs(T, []) == {}


async def test_the_epoch_is_minted_once(log: ThreadLog) -> None:
    """Four characters that stay while the log exists."""
    await log.append(T, [new()], fence=0)
    head = await log.head(T)
    await log.append(T, [new()], fence=0)

    assert len(head.epoch) == 4
    assert set(head.epoch) <= set("0123456789abcdefghijklmnopqrstuvwxyz")
    assert (await log.head(T)).epoch == head.epoch
    assert head.exists


async def test_counts_and_keeps_what_it_is_told(
    log: ThreadLog, clients: RedisClients, keys: Keys
) -> None:
    """Counts by kind, errors, creation and given fields change in the same step."""
    batch = [new("RUN_ERROR"), new("failed", "call"), new("x", "note"), new("done", "compaction")]
    appended = await log.append(T, [*batch, new("started", "call")], fence=0, meta={"model": "m"})

    meta = await clients.read.hgetall(keys.meta(T))
    names = (b"n_event", b"n_call", b"n_note", b"n_compaction", b"errors", b"model", b"created")
    assert [meta[name] for name in names] == [
        *(b"1", b"2", b"1", b"1", b"2", b"m"),
        str(appended.time).encode(),
    ]
    assert await log.call_seqs(T) == [2, 5]


async def test_keeps_blobs_and_state(log: ThreadLog) -> None:
    """Blobs are bytes of any kind and stored once; state is replaced."""
    await log.append(T, [], fence=0, blobs={"a": b"\x00\xff", "b": b"B" * 100_000}, state=b"1")
    await log.append(T, [], fence=0, blobs={"a": b"other"}, state=b"2")

    assert await log.blobs(T, ["a", "b", "c"]) == {"a": b"\x00\xff", "b": b"B" * 100_000}
    assert await log.state(T) == b"2"


async def test_an_empty_batch_has_no_entries(log: ThreadLog) -> None:
    """It is told where the next entry would be."""
    appended = await log.append(T, [], fence=0, meta={"model": "m"})

    assert appended == Appended(1, 0, appended.time)


async def test_lists_the_thread(log: ThreadLog) -> None:
    """An append makes a thread known to the list of threads."""
    appended = await log.append(T, [new()], fence=0)

    assert await log.indexes.page(None, None, 10) == [(T, appended.time)]


async def test_reports_a_redis_that_is_away(
    keys: Keys, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """A write that cannot be made is a StoreError."""
    monkeypatch.setattr("backscroll.store.scripts.RESEND_AFTER_S", (0.0,))
    log = ThreadLog(connect(str(tmp_path_factory.mktemp("x") / "none")), keys, "w")

    with pytest.raises(StoreError, match="Redis could not write the log"):
        await log.append(T, [new()], fence=0)
