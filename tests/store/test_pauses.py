"""Pauses in Redis: the contract, decisions item by item, starts and ends that carry a pause."""

from __future__ import annotations

import asyncio

import pytest
from agent.pause_store_contract import PauseStoreContract
from backscroll.kernel.errors import ResumeRefused
from backscroll.kernel.message import user
from backscroll.kernel.turn import Pause, PauseItem
from backscroll.store.connection import RedisClients
from backscroll.store.entry import NewEntry
from backscroll.store.history_reader import HistoryReader
from backscroll.store.keys import Keys, ThreadKey
from backscroll.store.pause_record import Decision, PauseChange
from backscroll.store.pauses import RedisPauseStore, ThreadPauses
from backscroll.store.run_record import Changed, Started, StartRequest
from backscroll.store.runs import RunStore
from backscroll.store.thread_log import RunLease, ThreadLog
from backscroll.store.threads import ThreadStore

T = ThreadKey("local", "t")
YES = Decision("resolved", {"approved": True}, "ann")
NO = Decision("cancelled", {"reason": "no"}, "bob")
PAY = PauseItem("c1", "approval", "pay", {"to": "ann"}, "why", ("approve", "reject", "reply"))
MAIL = PauseItem("c2", "approval", "mail", {}, "why", ("approve", "reject", "reply"))
PICK = PauseItem("c3", "client", "pick", {}, "", ("reply", "reject"))


def pause(*items: PauseItem, id: str = "p1", expires_at: float | None = None) -> Pause:
    """Return a pause of thread t."""
    return Pause(id, "t", items or (PAY, MAIL, PICK), 1.0, expires_at)


def note(text: str = "decided") -> NewEntry:
    """Return what tells operators of a decision."""
    return NewEntry("note", text, b"{}", "operator", "")


@pytest.fixture
def log(clients: RedisClients, keys: Keys) -> ThreadLog:
    """Give the log of one worker."""
    return ThreadLog(clients, keys, "w1")


@pytest.fixture
def pauses_of(log: ThreadLog) -> ThreadPauses:
    """Give the pauses of all threads."""
    return ThreadPauses(log)


class TestRedis(PauseStoreContract):
    """The store in Redis does what every store does."""

    @pytest.fixture
    def pauses(self, log: ThreadLog) -> RedisPauseStore:
        """Return an empty store."""
        return RedisPauseStore(log)


async def start(log: ThreadLog, run: str, change: PauseChange | None = None) -> object:
    """Start a run on thread t that adds no message."""
    history = (await HistoryReader(log.clients, log.keys).read(T)).change()
    request = StartRequest(T, run, "a", "f", [note("s")], history, 30.0, pause=change)
    return await RunStore(log).start(request)


async def paused(log: ThreadLog, it: Pause | None = None, run: str = "r1") -> None:
    """Let a run end on thread t with a pause."""
    started = await start(log, run)
    assert isinstance(started, Started)
    change = PauseChange(asked=it or pause(), asked_by=run)
    lease = RunLease(T, run, started.lease.fence)
    await RunStore(log).finish(lease, [note("f")], status="waiting", pause=change)


async def test_a_pause_comes_with_the_end_of_its_run(
    log: ThreadLog, pauses_of: ThreadPauses
) -> None:
    """What was asked is there with the terminal entry: its items, its run, its time."""
    await paused(log, pause(expires_at=99.5))

    found = await pauses_of.read(T)
    record = await ThreadStore(log).record(T)

    assert found.pause is not None and found.pause.items == (PAY, MAIL, PICK)
    assert found.open_items == (PAY, MAIL, PICK) and found.open_questions == (PAY, MAIL)
    asked = found.questions["c1"]
    assert (asked.kind, asked.tool, asked.input, asked.run) == ("approval", "pay", PAY.args, "r1")
    assert asked.asked > 10**12 and asked.expires == 99_500 and asked.decision is None
    assert record is not None
    assert (record.status, record.pause, record.questions) == ("waiting", "p1", 3)
    assert await log.indexes.paused(99_500) == [T] and await log.indexes.paused(99_499) == []


async def test_an_item_is_decided_once(log: ThreadLog, pauses_of: ThreadPauses) -> None:
    """hitl-07: of fifty decisions made on the same state one is written, with its note."""
    await paused(log)
    revision = (await pauses_of.read(T)).revision

    def decide(n: int) -> PauseChange:
        return PauseChange(revision, {"c1": YES if n % 2 else NO}, open_items=2)

    written = await asyncio.gather(*(pauses_of.decide(T, decide(n), [note()]) for n in range(50)))
    found = await pauses_of.read(T)
    (winner,) = (n for n, answer in enumerate(written) if answer is not None)
    record = await ThreadStore(log).record(T)

    assert found.decisions["c1"].is_same(YES if winner % 2 else NO)
    assert found.open_questions == (MAIL,) and found.decisions["c1"].time > 10**12
    assert record is not None and (record.questions, record.counts["note"]) == (2, 3)


async def test_a_start_takes_the_pause(log: ThreadLog, pauses_of: ThreadPauses) -> None:
    """The run that goes on is named by every decision; the questions stay known."""
    await paused(log)
    revision = (await pauses_of.read(T)).revision

    change = PauseChange(revision, {"c1": YES, "c2": NO}, taken="p1", taken_by="r2")
    assert isinstance(await start(log, "r2", change), Started)
    found = await pauses_of.read(T)
    record = await ThreadStore(log).record(T)

    assert found.pause is None and found.open_items == () and found.decisions == {}
    asked = found.questions["c1"].decision
    assert asked is not None and (asked.run, asked.by, asked.payload) == ("r2", "ann", YES.payload)
    assert record is not None and (record.status, record.questions) == ("running", 0)
    assert await log.indexes.paused() == []


async def test_a_start_on_another_state_is_told_so(log: ThreadLog, pauses_of: ThreadPauses) -> None:
    """Nothing of it is written: it is decided again on what is there."""
    await paused(log)
    revision = (await pauses_of.read(T)).revision
    await pauses_of.decide(T, PauseChange(revision, {"c1": NO}, open_items=2), [])

    taken = PauseChange(revision, {"c1": YES}, taken="p1", taken_by="r2")

    assert await start(log, "r2", taken) == Changed()
    found = await pauses_of.read(T)
    assert found.pause is not None and found.decisions["c1"].is_same(NO)


async def test_a_call_asked_about_again_is_open_again(
    log: ThreadLog, pauses_of: ThreadPauses
) -> None:
    """HITL15: a retried call that fails pauses under the same id; the old decision is gone."""
    await paused(log)
    revision = (await pauses_of.read(T)).revision
    change = PauseChange(revision, {"c1": YES}, taken="p1", taken_by="r2")
    started = await start(log, "r2", change)
    assert isinstance(started, Started)
    again = PauseChange(asked=pause(PAY, id="p2"), asked_by="r2", said=(user("and?", "u2"),))

    await RunStore(log).finish(started.lease, [note()], status="waiting", pause=again)

    found = await pauses_of.read(T)
    assert found.open_questions == (PAY,) and found.questions["c1"].pause_id == "p2"
    assert [message.id for message in found.said] == ["u2"]


async def test_a_pause_nobody_can_read_is_no_missing_pause(
    log: ThreadLog, pauses_of: ThreadPauses
) -> None:
    """AGENT 18: a newer version raises, it never counts as not paused."""
    await log.clients.write.hset(log.keys.pause(T), "open", b'{"version":99}')

    with pytest.raises(ResumeRefused) as caught:
        await pauses_of.read(T)
    assert caught.value.code == "pause_unreadable"


async def test_lost_indexes_find_pauses_again(log: ThreadLog) -> None:
    """A restored thread is looked at soon, whenever its pause is due."""
    await paused(log)
    await log.clients.write.delete(log.keys.pauses(), log.keys.threads())

    await log.indexes.rebuild()

    assert await log.indexes.paused(2**52) == [T]


async def test_many_are_read_at_once(
    log: ThreadLog, pauses_of: ThreadPauses, caplog: pytest.LogCaptureFixture
) -> None:
    """One that cannot be read is left out and logged; the others are there."""
    await paused(log)
    broken, none = ThreadKey("local", "broken"), ThreadKey("local", "none")
    await log.clients.write.hset(log.keys.pause(broken), "open", b"{}")

    found = await pauses_of.read_many([broken, T, none])

    assert set(found) == {T, none} and found[T].open_questions == (PAY, MAIL)
    assert "broken" in caplog.text
