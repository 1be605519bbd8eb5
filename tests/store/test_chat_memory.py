"""ChatMemory in Redis: the contract, runs and their fences, places and marks, cost."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator

import pytest
from backscroll.conversation.memory import ChatMemory
from backscroll.kernel.errors import LeaseLost, StoreError
from backscroll.kernel.message import assistant, user
from backscroll.store.chat_memory import RedisChatMemory
from backscroll.store.connection import RedisClients, connect
from backscroll.store.history_reader import HistoryReader
from backscroll.store.keys import Keys, ThreadKey
from backscroll.store.thread_log import RunLease, ThreadLog
from conversation.chat_memory_contract import ChatMemoryContract
from cutting_proxy import cutting_proxy

T = ThreadKey("local", "t")


@pytest.fixture
def log(clients: RedisClients, keys: Keys) -> ThreadLog:
    """Give the log of one worker."""
    return ThreadLog(clients, keys, "w1")


@pytest.fixture
def memory(log: ThreadLog) -> RedisChatMemory:
    """Give a memory without a run."""
    return RedisChatMemory(log)


@pytest.fixture
async def of_run(log: ThreadLog) -> RedisChatMemory:
    """Give the memory of run r1 on thread t, whose fence is 1."""
    await log.clients.write.hset(log.keys.meta(T), mapping={"fence": 1, "run": "r1"})
    return RedisChatMemory(log, lease=RunLease(T, "r1", 1))


class TestRedis(ChatMemoryContract):
    """Without a run, on the embedded Valkey."""

    async def reopen(self, memory: ChatMemory) -> ChatMemory:
        """Read with another object."""
        assert isinstance(memory, RedisChatMemory)
        return RedisChatMemory(memory._log)


class TestRun(ChatMemoryContract):
    """Bound to a run."""

    @pytest.fixture
    def memory(self, of_run: RedisChatMemory) -> RedisChatMemory:
        """Give the memory of a run."""
        return of_run


@pytest.mark.needs("redis")
class TestDebianRedis(ChatMemoryContract):
    """On the system's redis-server."""

    @pytest.fixture
    async def memory(self, debian_redis_url: str, keys: Keys) -> AsyncIterator[RedisChatMemory]:
        """Give a memory on that server."""
        clients = connect(debian_redis_url)
        yield RedisChatMemory(ThreadLog(clients, keys, "w1"))
        await clients.close()


async def test_owners_do_not_meet(log: ThreadLog) -> None:
    """Two owners may use the same conversation id."""
    await RedisChatMemory(log, "ann").add("t", [user("mine", "u1")])

    assert await RedisChatMemory(log, "bob").get("t") == []


async def test_a_message_has_a_place_in_the_log(memory: RedisChatMemory, log: ThreadLog) -> None:
    """One entry announces each message: position, id, role, sizes, hash."""
    await memory.add("t", [user("hi\nthere", "u1"), assistant("Hello", id="a1")])

    first, second = await log.read(T, 0)
    assert (first.kind, first.type, first.audience, first.ref) == (
        *("message", "added", "operator"),
        "u1",
    )
    assert first.preview == "hi there"
    head = json.loads(second.body)
    assert len(head.pop("sha256")) == 64
    assert head == {"position": 2, "id": "a1", "role": "assistant", "chars": 5, "bytes": 48}
    stored = await HistoryReader(log.clients, log.keys).stored(T, 1, 2)
    assert [(m.seq, m.time) for m in stored] == [(e.seq, e.time) for e in (first, second)]


async def test_nothing_added_is_nothing_written(memory: RedisChatMemory, log: ThreadLog) -> None:
    """MEM6: no entry, no key and no thread; known messages are announced only once."""
    before = [key async for key in log.clients.read.scan_iter(f"{log.keys.prefix}*")]

    await memory.add("t", [])

    assert [key async for key in log.clients.read.scan_iter(f"{log.keys.prefix}*")] == before
    assert not (await log.head(T)).exists
    await memory.add("t", [user("hi", "u1")])
    await memory.add("t", [user("hi", "u1")])
    assert [entry.ref for entry in await log.read(T, 0)] == ["u1"]


async def test_an_annotation_is_logged_once_more(memory: RedisChatMemory, log: ThreadLog) -> None:
    """Position, number and run of the message stay; the entry names the filter."""
    await memory.add("t", [user("hi", "u1")])
    annotated = user("hi", "u1").replace(model_content="HI", rewritten_by=("loud",))

    await memory.add("t", [annotated])

    entries = await log.read(T, 0)
    assert [json.loads(entry.body).get("rewritten_by") for entry in entries] == [None, ["loud"]]
    (stored,) = await HistoryReader(log.clients, log.keys).stored(T, 1, 9)
    assert (stored.message, stored.seq) == (annotated, 1)


async def test_a_lost_lease_writes_nothing(of_run: RedisChatMemory, log: ThreadLog) -> None:
    """A worker with an old fence neither adds, supersedes nor clears."""
    await of_run.add("t", [user("hi", "u1")])
    await log.clients.write.hset(log.keys.meta(T), "fence", 2)

    with pytest.raises(LeaseLost):
        await of_run.add("t", [user("more")])
    with pytest.raises(LeaseLost):
        await of_run.supersede("t", 1)
    with pytest.raises(LeaseLost):
        await of_run.clear("t")
    assert [message.id for message in await of_run.get("t")] == ["u1"]


async def test_a_run_does_not_bind_other_conversations(of_run: RedisChatMemory) -> None:
    """Its lease is for its thread; another conversation is written without one."""
    await of_run.add("other", [user("hi", "u1")])

    assert len(await of_run.get("other")) == 1


async def test_messages_of_a_run_name_it(of_run: RedisChatMemory, log: ThreadLog) -> None:
    """The stored message and its entry carry the run."""
    await of_run.add("t", [user("hi", "u1")])

    (stored,) = await HistoryReader(log.clients, log.keys).stored(T, 1, 1)
    (entry,) = await log.read(T, 0)
    assert (stored.run, entry.run) == ("r1", "r1")


async def test_superseded_messages_leave_the_live_history(
    memory: RedisChatMemory, log: ThreadLog
) -> None:
    """They stay stored and marked, one entry says so, and positions skip them."""
    await memory.add("t", [user("q", "u1"), assistant("old", id="a1"), user("q2", "u2")])

    assert await memory.supersede("t", 2) == 2
    await memory.add("t", [assistant("new", id="a2")])

    assert [message.id for message in await memory.get("t")] == ["u1", "a2"]
    assert memory.positions("t") == [1, 4]
    stored = await HistoryReader(log.clients, log.keys).stored(T, 1, 4)
    assert [m.marks for m in stored] == [(), ("superseded",), ("superseded",), ()]
    entry = await log.entry(T, 4)
    assert entry is not None
    assert (entry.kind, entry.type) == ("message", "superseded")
    assert json.loads(entry.body) == {"from": 2, "to": 3, "ids": ["a1", "u2"]}


async def test_superseding_nothing_writes_nothing(memory: RedisChatMemory, log: ThreadLog) -> None:
    """There is nothing from that position on, or it is superseded already."""
    await memory.add("t", [user("q", "u1"), user("q2", "u2")])
    await memory.supersede("t", 2)

    assert await memory.supersede("t", 2) == 0
    assert await memory.supersede("t", 9) == 0
    assert await log.last_seq(T) == 3


async def test_a_superseded_id_is_free_again(memory: RedisChatMemory) -> None:
    """A user message sent again after an edit moves to its new place, with new content."""
    await memory.add("t", [user("q", "u1"), user("q2", "u2")])
    await memory.supersede("t", 2)

    await memory.add("t", [user("edited", "u2")])

    assert [message.content for message in await memory.get("t")] == ["q", "edited"]
    assert memory.positions("t") == [1, 3]


async def test_a_run_reads_only_what_is_new(of_run: RedisChatMemory, log: ThreadLog) -> None:
    """What it has read stays with it; changes by others are seen all the same."""
    other = RedisChatMemory(log)
    await of_run.add("t", [user("x" * 100_000, "u1")])
    await of_run.get("t")
    await other.add("t", [user("two", "u2")])
    before = (await log.clients.read.info("stats"))["total_net_output_bytes"]

    read = await of_run.get("t")

    after = (await log.clients.read.info("stats"))["total_net_output_bytes"]
    assert [message.id for message in read] == ["u1", "u2"]
    assert after - before < 50_000
    await other.supersede("t", 2)
    assert [message.id for message in await of_run.get("t")] == ["u1"]
    await other.clear("t")
    assert await of_run.get("t") == []


async def test_a_lost_answer_does_not_store_twice(valkey_url: str, keys: Keys) -> None:
    """The connection breaks between execution and answer; the same messages are found stored."""
    async with cutting_proxy(valkey_url) as proxy:
        clients = connect(proxy.url)
        memory = RedisChatMemory(ThreadLog(clients, keys, "w1"))
        await memory.add("t", [user("one", "u1")])
        apply = memory._apply

        async def cut(*args: object) -> bool:
            proxy.cuts = 1
            return await apply(*args)  # type: ignore[arg-type]

        memory._apply = cut  # type: ignore[assignment]
        stored = await memory.add("t", [user("two"), user("three")])

        assert proxy.answers_swallowed == 1
        assert [message.text for message in await memory.get("t")] == ["one", "two", "three"]
        assert [m.id for m in (await memory.get("t"))[1:]] == [m.id for m in stored]
        await clients.close()


async def test_two_workers_add_whole_batches(clients: RedisClients, keys: Keys) -> None:
    """MEM2 over two processes' worth of objects: nothing is lost, batches stay whole."""
    memories = [RedisChatMemory(ThreadLog(clients, keys, f"w{n}")) for n in range(2)]

    await asyncio.gather(
        *(memories[n % 2].add("t", [user(f"{n}a"), user(f"{n}b")]) for n in range(50))
    )

    texts = [message.text for message in await memories[0].get("t")]
    assert sorted(texts) == sorted(f"{n}{half}" for n in range(50) for half in "ab")
    assert all(a[:-1] == b[:-1] for a, b in zip(texts[::2], texts[1::2], strict=True))


@pytest.mark.parametrize("method", ["add", "supersede"])
async def test_gives_up_on_a_history_that_never_rests(
    memory: RedisChatMemory, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    """After a bounded number of tries the caller is told."""

    async def refuse(*_: object) -> bool:
        return False

    monkeypatch.setattr(memory, "_apply", refuse)
    with pytest.raises(StoreError, match="changed all the time"):
        if method == "add":
            await memory.add("t", [user("hi")])
        else:
            await memory.supersede("t", 1)


async def test_remembers_positions_of_a_bounded_number(memory: RedisChatMemory) -> None:
    """The positions of the oldest conversation are forgotten."""
    await memory.add("first", [user("hi")])
    await memory.get("first")
    assert memory.positions("first") == [1]

    for n in range(64):
        await memory.get(str(n))

    assert memory.positions("first") == []


async def _fill(log: ThreadLog, count: int, thread: ThreadKey) -> None:
    batch = [user("x" * 2048) for _ in range(500)]
    memory = RedisChatMemory(log)
    for start in range(0, count, 500):
        await memory.add(thread.thread_id, batch[: count - start])


async def test_an_append_costs_the_same_in_a_long_thread(log: ThreadLog) -> None:
    """memory-05: a message of 2 KiB in 10,000 costs what it does in 100, in time and bytes."""
    quickest, sent = [], []
    for length in (100, 10_000):
        thread = ThreadKey("local", str(length))
        await _fill(log, length, thread)
        memory = RedisChatMemory(log, lease=RunLease(thread, "r", 0))
        await memory.get(thread.thread_id)
        before = (await log.clients.read.info("stats"))["total_net_input_bytes"]
        times = []
        for n in range(100):
            start = time.perf_counter()
            await memory.add(thread.thread_id, [user(f"{n}" + "y" * 2048)])
            times.append(time.perf_counter() - start)
        after = (await log.clients.read.info("stats"))["total_net_input_bytes"]
        quickest.append(min(times))
        sent.append((after - before) / 100)

    assert quickest[1] < 3 * quickest[0]
    assert max(sent) < 20 * 1024
