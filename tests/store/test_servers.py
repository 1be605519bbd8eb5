"""The same store on every server that we promise: Valkey, Redis 7.0, and nodes of a cluster."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest
import redis
from backscroll.compaction.store import Cache, CompactionEntry
from backscroll.kernel.message import user
from backscroll.store.chat_memory import RedisChatMemory
from backscroll.store.compaction_store import RedisCompactionStore
from backscroll.store.connection import RedisClients, connect
from backscroll.store.entry import STAMP, NewEntry
from backscroll.store.history_reader import HistoryReader
from backscroll.store.keys import Keys, ThreadKey
from backscroll.store.run_record import Started, StartRequest
from backscroll.store.runs import RunStore
from backscroll.store.thread_log import ThreadLog
from backscroll.store.threads import ThreadStore
from backscroll.store.valkey_process import binary
from backscroll.store.workers import WorkerRegistry
from deadlines import wait_until
from processes import free_port
from redis_server import running_server

SERVERS = [
    "valkey_url",
    "cluster_url",
    pytest.param("debian_redis_url", marks=pytest.mark.needs("redis")),
]
T = ThreadKey("ann", "会话 {1}")
LEASE_S = 30.0


@pytest.fixture(scope="session")
def cluster_url() -> Iterator[str]:
    """Give a cluster of one node: it refuses a script whose keys are on two slots."""
    bus = ("--cluster-enabled", "yes", "--cluster-port", str(free_port()))
    with running_server(str(binary()), *bus) as url:
        with redis.Redis.from_url(url, protocol=2) as client:
            client.execute_command("CLUSTER", "ADDSLOTSRANGE", 0, 16383)
            wait_until(
                lambda: b"cluster_state:ok" in client.execute_command("CLUSTER", "INFO"),
                *(15, "the cluster is up"),
            )
        yield url


@pytest.fixture(params=SERVERS)
async def clients(request: pytest.FixtureRequest) -> AsyncIterator[RedisClients]:
    """Give clients of each server in turn."""
    clients = connect(request.getfixturevalue(request.param))
    yield clients
    await clients.close()


@pytest.fixture
def log(clients: RedisClients, keys: Keys) -> ThreadLog:
    """Give the log of one worker."""
    return ThreadLog(clients, keys, "w1")


def event(type: str) -> NewEntry:
    """Return an event entry whose body is stamped."""
    return NewEntry("event", type, b'{"timestamp":' + STAMP + b"}", "client", "r1", stamp_at=14)


async def start(log: ThreadLog) -> Started:
    """Start run r1 with one message."""
    history = await HistoryReader(log.clients, log.keys).read(T)
    change = history.change([user("hi", "u2")], supersede_from=1)
    answer = await RunStore(log).start(
        StartRequest(T, "r1", "a", "f", [event("RUN_STARTED")], change, LEASE_S, "hi", state=b"{}")
    )
    assert isinstance(answer, Started)
    return answer


async def test_a_run_from_start_to_end(log: ThreadLog) -> None:
    """Every script of log, history and runs."""
    runs, memory = RunStore(log), RedisChatMemory(log, "ann")
    await memory.add(T.thread_id, [user("old", "u1")])
    lease = (await start(log)).lease
    blob = {"sha": b"\xff" * 300}
    await log.append(T, [event("TEXT")] * 20, fence=lease.fence, blobs=blob, state=b"[]")
    await runs.renew(lease, LEASE_S)
    assert await runs.stop(T, "r1")

    await runs.finish(lease, [event("RUN_FINISHED")], status="cancelled")

    entries = await log.read(T, 0)
    assert [entry.seq for entry in entries] == list(range(1, 26))
    assert await log.blobs(T, ["sha"]) == blob
    assert [m.id for m in await memory.get(T.thread_id)] == ["u2"]
    assert [(run.run_id, run.status) for run in await runs.runs(T)] == [("r1", "cancelled")]


async def test_a_lost_run(log: ThreadLog) -> None:
    """It is found, claimed and ended."""
    runs = RunStore(log)
    await start(log)
    await log.clients.write.hset(log.keys.meta(T), "lease", 1)
    await log.clients.write.zadd(log.keys.leases(), {T.key: 1})

    (lease,) = await runs.claim_all_lost(LEASE_S)
    await runs.finish(lease, [event("RUN_ERROR")], status="error", error="worker_lost")

    assert (await log.head(T)).last_status == "error"


async def test_threads_and_workers(log: ThreadLog) -> None:
    """Listing, renaming, deleting, rebuilding, and signs of life."""
    threads, registry = ThreadStore(log), WorkerRegistry(log.clients, log.keys)
    lease = (await start(log)).lease
    await RunStore(log).finish(lease, [], status="ok")
    assert await threads.rename(T, "Neu")
    await log.clients.write.delete(log.keys.threads())
    assert await log.indexes.rebuild() == 1
    assert [head.title for head in await threads.heads()] == ["Neu"]

    assert await threads.delete(T) is None
    await registry.beat("w1", {"runs": 0})

    assert await threads.heads() == []
    assert [worker.worker for worker in await registry.workers()] == ["w1"]


async def test_a_history_is_cleared(log: ThreadLog) -> None:
    """The messages go, the log stays."""
    memory = RedisChatMemory(log, "ann")
    await memory.add("t", [user("hi")])

    await memory.clear("t")

    assert await memory.get("t") == []


async def test_compaction_entries(log: ThreadLog) -> None:
    """Swapped, counted, claimed."""
    store = RedisCompactionStore(log.clients, log.keys, "ann")
    entry = CompactionEntry(cache=Cache(3, "h", "总结"))

    assert await store.swap("t", entry, 0)
    assert await store.count_failure("t") == 1
    assert await store.take_lease("t", "w1", 10)
    await store.drop_lease("t", "w1")

    found = await store.get("t")
    assert (found.cache, found.failures, found.generation) == (entry.cache, 1, 2)
