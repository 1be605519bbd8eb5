"""Runs: one at a time per thread, one per run id, never two terminal events, no lost lease."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

import pytest
from backscroll.kernel.errors import LeaseLost
from backscroll.kernel.message import Message, assistant, user
from backscroll.store.chat_memory import RedisChatMemory
from backscroll.store.connection import RedisClients, connect
from backscroll.store.entry import STAMP, NewEntry, unpack_bell
from backscroll.store.history import StoredHistory
from backscroll.store.history_reader import HistoryReader
from backscroll.store.keys import Keys, ThreadKey
from backscroll.store.run_record import (
    Busy,
    Changed,
    Known,
    RunInfo,
    Started,
    StartRequest,
)
from backscroll.store.runs import RunStore
from backscroll.store.thread_log import RunLease, ThreadLog
from cutting_proxy import cutting_proxy

T = ThreadKey("local", "t")


def event(type: str, run: str = "r1") -> NewEntry:
    """Return an event entry whose body is stamped."""
    body = b'{"timestamp":' + STAMP + b"}"
    return NewEntry("event", type, body, "client", run, stamp_at=14)


def request(run_id: str = "r1", thread: ThreadKey = T, **changes: Any) -> StartRequest:
    """Return the start of a run that adds no message."""
    values: dict[str, Any] = {
        "agent": "default",
        "fingerprint": "f1",
        "entries": [event("RUN_STARTED", run_id)],
        "change": StoredHistory().change(),
        "lease_s": 30.0,
    }
    return StartRequest(thread=thread, run_id=run_id, **{**values, **changes})


async def changed(log: ThreadLog, *messages: Message, **options: Any) -> Any:
    """Return the change that adds messages to the thread as it is now."""
    history = await HistoryReader(log.clients, log.keys).read(T)
    return history.change(messages, **options)


@pytest.fixture
def log(clients: RedisClients, keys: Keys) -> ThreadLog:
    """Give the log of one worker."""
    return ThreadLog(clients, keys, "w1")


@pytest.fixture
def runs(log: ThreadLog) -> RunStore:
    """Give the runs of one worker."""
    return RunStore(log)


async def started(runs: RunStore, start: StartRequest) -> Started:
    """Start a run that must start."""
    answer = await runs.start(start)
    assert isinstance(answer, Started), answer
    return answer


async def expire(log: ThreadLog) -> None:
    """Let the lease of the thread be over."""
    await log.clients.write.hset(log.keys.meta(T), "lease", 1)
    await log.clients.write.zadd(log.keys.leases(), {T.key: 1})


async def test_a_start_is_one_step(runs: RunStore, log: ThreadLog) -> None:
    """Entries, messages, lease, state and what a takeover needs become true together."""
    change = await changed(log, user("hi", "u1"), assistant("x", id="a1"))
    note = NewEntry("note", "stripped", b"{}", "operator", "r1")
    entries = [event("RUN_STARTED"), note]

    answer = await started(
        runs, request(entries=entries, change=change, title="Hi", state=b"{}", takeover=b"input")
    )

    assert (answer.lease, answer.first, answer.last) == (RunLease(T, "r1", 1), 1, 4)
    log_entries = await log.read(T, 0)
    assert [(e.kind, e.type) for e in log_entries] == [
        ("event", "RUN_STARTED"),
        ("note", "stripped"),
        ("message", "added"),
        ("message", "added"),
    ]
    assert str(answer.time).encode() in log_entries[0].body
    stored = await HistoryReader(log.clients, log.keys).stored(T, 1, 2)
    assert [(m.message.id, m.seq, m.run) for m in stored] == [("u1", 3, "r1"), ("a1", 4, "r1")]
    assert await log.state(T) == b"{}"
    assert await runs.takeover(T) == b"input"


async def test_the_head_names_the_active_run(runs: RunStore, log: ThreadLog) -> None:
    """Run, fence, worker, lease and the thread's agent are known to every worker."""
    answer = await started(runs, request(lease_s=30))

    head = await log.head(T)
    assert (head.run, head.fence, head.worker, head.agent) == ("r1", 1, "w1", "default")
    assert head.lease == answer.time + 30_000
    await runs.finish(answer.lease, [event("RUN_FINISHED")], status="ok")
    head = await log.head(T)
    assert (head.run, head.lease, head.last_run, head.last_status) == ("", 0, "r1", "ok")


async def test_a_second_run_is_told_who_is_active(runs: RunStore, log: ThreadLog) -> None:
    """Nothing of it is stored; when the first has ended it may start, with the next fence."""
    first = await started(runs, request("r1"))

    assert await runs.start(request("r2")) == Busy("r1", False)
    assert await log.last_seq(T) == 1
    await runs.finish(first.lease, [event("RUN_FINISHED")], status="ok")
    second = await started(runs, request("r2", change=await changed(log)))
    assert second.lease.fence == 2


async def test_of_many_starts_at_once_one_wins(clients: RedisClients, keys: Keys) -> None:
    """concurrency-01: fifty different runs at the same instant on four workers."""
    workers = [RunStore(ThreadLog(clients, keys, f"w{n}")) for n in range(4)]

    answers = await asyncio.gather(*(workers[n % 4].start(request(f"r{n}")) for n in range(50)))

    kinds = Counter(type(answer) for answer in answers)
    assert kinds == {Started: 1, Busy: 49}
    assert await ThreadLog(clients, keys, "w").last_seq(T) == 1


async def test_of_many_starts_of_one_run_id_one_wins(clients: RedisClients, keys: Keys) -> None:
    """The same run id at the same instant, on one thread and on others, runs once."""
    runs = RunStore(ThreadLog(clients, keys, "w1"))
    threads = [ThreadKey("local", f"t{n % 5}") for n in range(50)]

    answers = await asyncio.gather(*(runs.start(request("r1", thread)) for thread in threads))

    kinds = Counter(type(answer) for answer in answers)
    assert kinds == {Started: 1, Known: 49}


async def test_a_known_run_id_is_told_what_it_was(runs: RunStore, log: ThreadLog) -> None:
    """While it runs and for ever after, also with another fingerprint or on another thread."""
    first = await started(runs, request("r1"))
    again = await runs.start(request("r1", fingerprint="f2"))
    assert isinstance(again, Known)
    assert (again.run.fingerprint, again.run.status, again.run.first) == ("f1", "running", 1)

    await runs.finish(first.lease, [event("RUN_FINISHED")], status="ok")

    for thread in (T, ThreadKey("local", "t2")):
        known = await runs.start(request("r1", thread))
        assert isinstance(known, Known)
        assert (known.run.thread, known.run.status, known.run.last) == (T, "ok", 2)
    assert await log.last_seq(T) == 2


async def test_owners_have_their_own_run_ids(runs: RunStore) -> None:
    """Two owners may use the same run id."""
    await started(runs, request("r1"))
    await started(runs, request("r1", ThreadKey("ann", "t")))

    mine = await runs.run_info("local", "r1")
    theirs = await runs.run_info("ann", "r1")
    assert mine is not None and theirs is not None
    assert (mine.thread.owner, theirs.thread.owner) == ("local", "ann")
    assert await runs.run_info("bob", "r1") is None


async def test_a_refused_run_id_is_not_used_up(runs: RunStore, log: ThreadLog) -> None:
    """A run refused as busy may be started later under the same id."""
    first = await started(runs, request("r1"))
    assert isinstance(await runs.start(request("r2")), Busy)
    assert await runs.run_info("local", "r2") is None

    await runs.finish(first.lease, [event("RUN_FINISHED")], status="ok")

    await started(runs, request("r2", change=await changed(log)))


async def test_a_run_id_claimed_elsewhere_is_not_started(runs: RunStore, log: ThreadLog) -> None:
    """Another thread is about to start it: which content it has is not known yet."""
    await log.indexes.claim_run(ThreadKey("local", "t2"), "r1")

    assert await runs.start(request("r1")) == Known(RunInfo("r1", ThreadKey("local", "t2")))


async def test_a_decision_on_an_old_history_is_refused(runs: RunStore, log: ThreadLog) -> None:
    """What was decided before another message came must be decided again."""
    change = await changed(log, user("hi", "u1"))
    await RedisChatMemory(log).add("t", [user("first", "u0")])

    assert await runs.start(request(change=change)) == Changed()
    assert await log.last_seq(T) == 1
    again = await changed(log, user("hi", "u1"))
    assert isinstance(await runs.start(request(change=again)), Started)


async def test_a_start_may_supersede(runs: RunStore, log: ThreadLog) -> None:
    """Answer again: what followed the question leaves the live history in the same step."""
    memory = RedisChatMemory(log)
    await memory.add("t", [user("q", "u1"), assistant("old", id="a1")])
    change = await changed(log, user("new", "u2"), supersede_from=2)

    await started(runs, request(change=change))

    assert [message.id for message in await memory.get("t")] == ["u1", "u2"]
    entries = await log.read(T, 2)
    assert [(e.kind, e.type) for e in entries] == [
        ("event", "RUN_STARTED"),
        ("message", "superseded"),
        ("message", "added"),
    ]
    assert (await HistoryReader(log.clients, log.keys).stored(T, 3, 3))[0].seq == entries[2].seq


async def test_a_lost_answer_to_a_start_starts_once(valkey_url: str, keys: Keys) -> None:
    """The connection breaks between execution and answer: it is our own run that is found."""
    async with cutting_proxy(valkey_url) as proxy:
        clients = connect(proxy.url)
        runs = RunStore(ThreadLog(clients, keys, "w1"))
        script = runs._start

        async def cut(*args: Any) -> Any:
            proxy.cuts = 1
            return await script(*args)

        runs._start = cut  # type: ignore[method-assign]
        answer = await started(runs, request())

        assert proxy.answers_swallowed == 1
        assert (answer.lease.fence, answer.first, answer.last) == (1, 1, 1)
        assert (await ThreadLog(clients, keys, "w").read(T, 0))[0].time == answer.time
        await clients.close()


async def test_a_lost_answer_to_an_end_ends_once(valkey_url: str, keys: Keys) -> None:
    """The terminal event is in the log once, and the caller is told where."""
    async with cutting_proxy(valkey_url) as proxy:
        clients = connect(proxy.url)
        log = ThreadLog(clients, keys, "w1")
        runs = RunStore(log)
        answer = await started(runs, request())
        proxy.cuts = 1

        ended = await runs.finish(answer.lease, [event("RUN_FINISHED")], status="ok")

        assert proxy.answers_swallowed == 1
        assert (ended.first, ended.last) == (2, 2)
        assert [entry.type for entry in await log.read(T, 0)] == ["RUN_STARTED", "RUN_FINISHED"]
        await clients.close()


async def test_a_run_ends_once(runs: RunStore, log: ThreadLog) -> None:
    """Neither the same worker nor one with an old fence ends it again."""
    answer = await started(runs, request())
    await runs.finish(answer.lease, [event("RUN_FINISHED")], status="ok")

    with pytest.raises(LeaseLost):
        await runs.finish(answer.lease, [event("RUN_ERROR")], status="error")
    with pytest.raises(LeaseLost):
        await runs.renew(answer.lease, 30)
    assert await log.last_seq(T) == 2


async def test_remembers_how_runs_ended(runs: RunStore, log: ThreadLog) -> None:
    """Status, error, times, numbers and details, oldest run first."""
    first = await started(runs, request("r1", parent_run="r0"))
    ended = await runs.finish(
        first.lease,
        [event("RUN_ERROR")],
        status="error",
        error="provider",
        details={"usage": {"input_tokens": 3}},
        meta={"model": "m"},
    )
    await started(runs, request("r2", change=await changed(log)))

    one, two = await runs.runs(T)
    assert one == RunInfo(
        *("r1", T, "default", "f1", "r0", "error", 1, 1, 2, first.time, ended.time, "provider"),
        {"usage": {"input_tokens": 3}},
    )
    assert (two.run_id, two.status, two.ended, two.first) == ("r2", "running", None, 3)
    assert await runs.takeover(T) is None


async def test_a_renewed_lease_lasts_longer(runs: RunStore, log: ThreadLog) -> None:
    """It counts from now, by Redis's clock."""
    answer = await started(runs, request(lease_s=1))

    renewed = await runs.renew(answer.lease, 60)

    assert (await log.head(T)).lease == renewed.until
    assert 60_000 <= renewed.until - answer.time < 70_000
    assert not renewed.stop


async def test_a_stop_reaches_the_run(runs: RunStore, log: ThreadLog, keys: Keys) -> None:
    """The bell names the run; the next renewal says it again; a new run is not stopped."""
    answer = await started(runs, request())
    client = log.clients.dedicated()
    async with client.pubsub() as pubsub:
        await pubsub.subscribe(keys.bell(T))
        await pubsub.get_message(timeout=5)

        assert await runs.stop(T, "r1")

        bell = unpack_bell((await pubsub.get_message(timeout=5))["data"])
    await client.aclose()
    assert (bell.stop, bell.entries, bell.first, bell.last) == ("r1", (), 2, 1)
    assert await runs.stop_requested(answer.lease)
    assert (await runs.renew(answer.lease, 30)).stop
    await runs.finish(answer.lease, [event("RUN_FINISHED")], status="cancelled")
    second = await started(runs, request("r2", change=await changed(log)))
    assert not await runs.stop_requested(second.lease)


async def test_only_the_active_run_can_be_stopped(runs: RunStore) -> None:
    """A run that has ended, or never was, is not."""
    assert not await runs.stop(T, "r1")
    await started(runs, request("r1"))
    assert not await runs.stop(T, "r0")


async def test_a_lost_run_is_claimed_once(clients: RedisClients, keys: Keys) -> None:
    """reconnect-05: of fifty workers that find it, one gets the lease; the lost one is shut out."""
    log = ThreadLog(clients, keys, "w1")
    lost = await started(RunStore(log), request())
    await expire(log)
    finders = [RunStore(ThreadLog(clients, keys, f"w{n}")) for n in range(2, 52)]

    claims = await asyncio.gather(*(finder.claim_lost(T, 30) for finder in finders))

    (claimed,) = [claim for claim in claims if claim]
    assert claimed == RunLease(T, "r1", 2)
    with pytest.raises(LeaseLost):
        await log.append(T, [event("TEXT")], fence=lost.lease.fence)
    await finders[0].finish(claimed, [event("RUN_ERROR")], status="error", error="worker_lost")
    with pytest.raises(LeaseLost):
        await RunStore(log).finish(lost.lease, [event("RUN_FINISHED")], status="ok")
    assert [entry.type for entry in await log.read(T, 0)] == ["RUN_STARTED", "RUN_ERROR"]


async def test_a_start_on_a_lost_run_says_so(runs: RunStore, log: ThreadLog) -> None:
    """Whoever finds it ends it first, and then the thread is free."""
    await started(runs, request())
    await expire(log)

    assert await runs.start(request("r2")) == Busy("r1", True)


async def test_finds_all_lost_runs(runs: RunStore, log: ThreadLog, keys: Keys) -> None:
    """Every expired lease is claimed, live ones are left alone, and ended ones forgotten."""
    await started(runs, request("r1"))
    await started(runs, request("r2", ThreadKey("local", "live")))
    ended = await started(runs, request("r3", ThreadKey("local", "ended")))
    await runs.finish(ended.lease, [event("RUN_FINISHED")], status="ok")
    await expire(log)
    for name in ("live", "ended"):
        await log.clients.write.zadd(keys.leases(), {name: 1})

    claimed = await runs.claim_all_lost(30)

    assert [lease.run for lease in claimed] == ["r1"]
    marks = dict(await log.clients.read.zrange(keys.leases(), 0, -1, withscores=True))
    assert set(marks) == {b"t", b"live"}
    assert min(marks.values()) > 1_000_000
    assert await runs.claim_all_lost(30) == []


async def test_nothing_is_claimed_that_lives(runs: RunStore, log: ThreadLog) -> None:
    """Neither an idle thread nor one whose lease holds."""
    assert await runs.claim_lost(T, 30) is None
    await started(runs, request())
    assert await runs.claim_lost(T, 30) is None


async def test_a_lease_is_noted_before_the_run_starts(
    runs: RunStore, log: ThreadLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker that dies right after the start is found all the same."""

    async def die(thread: ThreadKey, run_id: str) -> None:
        raise asyncio.CancelledError

    monkeypatch.setattr(log.indexes, "keep_run", die)
    with pytest.raises(asyncio.CancelledError):
        await runs.start(request(lease_s=0.0))

    assert [lease.run for lease in await runs.claim_all_lost(30)] == ["r1"]


async def test_titles_and_agent_are_kept_from_the_first_run(runs: RunStore, log: ThreadLog) -> None:
    """A later run changes neither."""
    first = await started(runs, request("r1", title="First", agent="a"))
    await runs.finish(first.lease, [event("RUN_FINISHED")], status="ok")
    change = await changed(log)
    await started(runs, request("r2", title="Second", agent="b", change=change))

    meta = await log.clients.read.hgetall(log.keys.meta(T))
    assert (meta[b"title"], meta[b"agent"], meta[b"runs"]) == (b"First", b"a", b"2")
