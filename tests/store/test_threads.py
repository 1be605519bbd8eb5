"""Threads as an operator sees them."""

from __future__ import annotations

import pytest
from backscroll.kernel.message import user
from backscroll.store.chat_memory import RedisChatMemory
from backscroll.store.connection import RedisClients
from backscroll.store.entry import NewEntry, unpack_bell
from backscroll.store.history import StoredHistory
from backscroll.store.keys import Keys, ThreadKey
from backscroll.store.run_record import RunStatus, Started, StartRequest
from backscroll.store.runs import RunStore
from backscroll.store.thread_log import RunLease, ThreadLog
from backscroll.store.threads import ThreadRecord, ThreadStore

T = ThreadKey("local", "t")


@pytest.fixture
def log(clients: RedisClients, keys: Keys) -> ThreadLog:
    """Give the log of one worker."""
    return ThreadLog(clients, keys, "w1")


@pytest.fixture
def threads(log: ThreadLog) -> ThreadStore:
    """Give the threads."""
    return ThreadStore(log)


async def start(log: ThreadLog, run_id: str = "r1", thread: ThreadKey = T) -> RunLease:
    """Start a run with one message."""
    change = StoredHistory().change([user("Refund order 42", "u1")])
    answer = await RunStore(log).start(
        StartRequest(thread, run_id, "default", "f", [], change, 30.0, title="Refund order 42")
    )
    assert isinstance(answer, Started)
    return answer.lease


async def test_the_head_of_a_thread(threads: ThreadStore, log: ThreadLog) -> None:
    """Everything the list shows comes from one hash."""
    lease = await start(log)
    entries: list[NewEntry] = [
        NewEntry("compaction", "done", b"{}", "operator", "r1"),
        NewEntry("call", "failed", b"{}", "operator", "r1"),
    ]
    last = await log.append(T, entries, fence=lease.fence, meta={"model": "m-large"})

    record = await threads.record(T)

    head = await log.head(T)
    assert record == ThreadRecord(
        *(T, "default", "Refund order 42", False, "running", "r1", "w1", 1, head.lease),
        *(head.epoch, 0, 3, 1, 1, 1, record.started if record else 0, last.time, "", ""),
        counts={"message": 1, "compaction": 1, "call": 1},
        extra={"model": "m-large"},
    )


@pytest.mark.parametrize(
    ("status", "shown"),
    [("ok", "ok"), ("cancelled", "ok"), ("error", "error"), ("waiting", "waiting")],
)
async def test_an_idle_thread_shows_how_its_last_run_ended(
    threads: ThreadStore, log: ThreadLog, status: RunStatus, shown: str
) -> None:
    """Waiting while it is paused, error if the last run failed, else ok."""
    await RunStore(log).finish(await start(log), [], status=status)

    record = await threads.record(T)

    assert record is not None
    assert (record.status, record.last_run, record.last_status) == (shown, "r1", status)


async def test_an_unknown_thread_has_no_head(threads: ThreadStore) -> None:
    """Nothing is made by asking, renaming or archiving."""
    assert await threads.record(T) is None
    assert not await threads.rename(T, "x")
    assert not await threads.archive(T, True)
    assert await threads.heads() == []


async def test_lists_heads_by_activity(threads: ThreadStore, log: ThreadLog) -> None:
    """Newest first, in pages, of one owner or of all."""
    others = [ThreadKey("local", str(n)) for n in range(3)]
    for n, thread in enumerate([*others, ThreadKey("ann", "t")]):
        await log.append(thread, [], fence=0)
        await log.indexes.touch(thread, 9_000_000_000_000 + n, now=True)

    first = await threads.heads(limit=2)
    rest = await threads.heads(before=(9_000_000_000_002, "2"))

    assert [head.thread.key for head in first] == ["ann/t", "2"]
    assert [head.thread.key for head in rest] == ["1", "0"]
    assert [head.thread.owner for head in await threads.heads("ann")] == ["ann"]


async def test_renames_and_archives(threads: ThreadStore, log: ThreadLog) -> None:
    """Both are kept with the thread; a later run does not take them back."""
    lease = await start(log)

    assert await threads.rename(T, "Größe 会话")
    assert await threads.archive(T, True)
    await RunStore(log).finish(lease, [], status="ok")

    record = await threads.record(T)
    assert record is not None
    assert (record.title, record.archived) == ("Größe 会话", True)
    await threads.archive(T, False)
    record = await threads.record(T)
    assert record is not None and not record.archived


async def test_a_deleted_thread_leaves_no_key(
    threads: ThreadStore, log: ThreadLog, keys: Keys
) -> None:
    """Its run ids are free again, and it may begin anew with another epoch."""
    lease = await start(log)
    await log.append(T, [], fence=lease.fence, blobs={"a": b"x"}, state=b"{}")
    await RunStore(log).finish(lease, [], status="ok")
    other = ThreadKey("local", "other")
    await RedisChatMemory(log).add("other", [user("hi")])

    assert await threads.delete(T) is None

    names = [name.decode() for name in await log.clients.read.keys(f"{keys.prefix}:*")]
    assert {name for name in names if "other" not in name} == {
        keys.threads(),
        keys.threads("local"),
    }
    assert [head.thread for head in await threads.heads()] == [other]
    assert (await start(log)).fence == 1


async def test_a_thread_with_an_active_run_is_not_deleted(
    threads: ThreadStore, log: ThreadLog
) -> None:
    """The run is named, so that it can be stopped first; a lost one is in nobody's way."""
    await start(log)

    assert await threads.delete(T) == "r1"
    assert (await log.head(T)).exists

    await log.clients.write.hset(log.keys.meta(T), "lease", 1)
    assert await threads.delete(T) is None


async def test_watchers_hear_of_a_deletion(
    threads: ThreadStore, log: ThreadLog, keys: Keys
) -> None:
    """The bell rings, and the head they compare with is gone."""
    await log.append(T, [NewEntry("note", "x", b"{}", "operator", "")], fence=0)
    client = log.clients.dedicated()
    async with client.pubsub() as pubsub:
        await pubsub.subscribe(keys.bell(T))
        await pubsub.get_message(timeout=5)
        await threads.delete(T)
        message = await pubsub.get_message(timeout=5)
    await client.aclose()

    bell = unpack_bell(message["data"])
    assert (bell.first, bell.last) == (1, 0)
    assert await log.last_seq(T) == 0
