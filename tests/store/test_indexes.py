"""The indexes over all threads: order, paging, claims, and rebuilding them."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest
from backscroll.store.connection import RedisClients, connect
from backscroll.store.entry import NewEntry
from backscroll.store.history import StoredHistory
from backscroll.store.indexes import Indexes
from backscroll.store.keys import Keys, ThreadKey
from backscroll.store.run_record import StartRequest
from backscroll.store.runs import RunStore
from backscroll.store.thread_log import ThreadLog

T = ThreadKey("local", "t")


def thread(n: int, owner: str = "local") -> ThreadKey:
    """Return the n-th thread of an owner."""
    return ThreadKey(owner, f"t{n}")


@pytest.fixture
def indexes(clients: RedisClients, keys: Keys) -> Indexes:
    """Give the indexes of one process."""
    return Indexes(clients, keys)


async def test_lists_the_newest_first(indexes: Indexes) -> None:
    """All threads, or one owner's."""
    await indexes.touch(thread(1), 10)
    await indexes.touch(thread(2, "ann"), 30)
    await indexes.touch(thread(3), 20)

    assert await indexes.page(None, None, 10) == [
        (thread(2, "ann"), 30),
        (thread(3), 20),
        (thread(1), 10),
    ]
    assert await indexes.page("ann", None, 10) == [(thread(2, "ann"), 30)]


async def test_pages_lose_and_repeat_nothing(indexes: Indexes) -> None:
    """Also where many threads have the same time."""
    for n in range(40):
        await indexes.touch(thread(n), 100 + n % 3)

    seen: list[tuple[ThreadKey, int]] = []
    while page := await indexes.page(None, (seen[-1][1], seen[-1][0].key) if seen else None, 7):
        seen += page

    assert len(seen) == 40
    assert seen == sorted(seen, key=lambda row: (row[1], row[0].key), reverse=True)


async def test_activity_never_goes_back(indexes: Indexes) -> None:
    """A late write of a slower worker does not move a thread down."""
    await indexes.touch(T, 2000, now=True)
    await indexes.touch(T, 1000, now=True)

    assert await indexes.page(None, None, 10) == [(T, 2000)]


async def test_notes_activity_once_a_second(indexes: Indexes) -> None:
    """A stream of deltas does not write the index for each; the end of a run does."""
    await indexes.touch(T, 1000)
    await indexes.touch(T, 1500)
    assert await indexes.page(None, None, 10) == [(T, 1000)]

    await indexes.touch(T, 1600, now=True)
    assert await indexes.page(None, None, 10) == [(T, 1600)]

    await indexes.touch(T, 2600)
    assert await indexes.page(None, None, 10) == [(T, 2600)]


async def test_remembers_a_bounded_number_of_threads(
    indexes: Indexes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a process keeps does not grow with the number of threads."""
    monkeypatch.setattr("backscroll.store.indexes._REMEMBERED", 3)
    for n in range(5):
        await indexes.touch(thread(n), 1000)

    assert list(indexes._touched) == [thread(2), thread(3), thread(4)]


async def test_a_failing_note_is_only_logged(
    keys: Keys, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """What was appended or started stays so; the next note is made at once."""
    indexes = Indexes(connect(str(tmp_path / "none")), keys)
    with caplog.at_level(logging.WARNING):
        await indexes.touch(T, 1000)
        await indexes.keep_run(T, "r1")

    assert "note a thread's activity" in caplog.messages[0]
    assert "keep a run id" in caplog.messages[1]
    assert not indexes._touched


async def test_a_run_id_belongs_to_who_came_first(indexes: Indexes, keys: Keys) -> None:
    """A claim ends by itself, a kept one does not, not even when it is claimed again."""
    assert await indexes.claim_run(thread(1), "r") == thread(1)
    assert await indexes.claim_run(thread(2), "r") == thread(1)
    name = keys.run_index("local", "r")
    assert 0 < await indexes._clients.read.pttl(name) <= 30_000

    await indexes.keep_run(thread(1), "r")
    assert await indexes.claim_run(thread(1), "r") == thread(1)

    assert await indexes._clients.read.pttl(name) == -1
    assert await indexes.find_run("local", "r") == thread(1)
    assert await indexes.find_run("ann", "r") is None


async def test_a_claim_is_renewed_by_its_holder(indexes: Indexes, keys: Keys) -> None:
    """Two starts of one run id on one thread do not let the claim run out under the second."""
    await indexes.claim_run(T, "r")
    await indexes._clients.write.pexpire(keys.run_index("local", "r"), 50)

    await indexes.claim_run(T, "r")

    assert await indexes._clients.read.pttl(keys.run_index("local", "r")) > 1000


async def test_a_lease_is_due_when_it_has_expired(indexes: Indexes) -> None:
    """By Redis's clock; a longer mark replaces a shorter one, never the other way."""
    await indexes.mark_lease(thread(1), 60_000)
    await indexes.mark_lease(thread(1), -1000)
    await indexes.mark_lease(thread(2), -1000)

    ((due, noted),) = await indexes.due_leases()

    assert due == thread(2)
    await indexes.forget_lease(thread(2), noted)
    assert await indexes.due_leases() == []


async def test_a_newer_lease_is_not_forgotten(indexes: Indexes) -> None:
    """It was noted after the expired one had been found."""
    await indexes.mark_lease(T, -5000)
    ((_, noted),) = await indexes.due_leases()
    await indexes.mark_lease(T, -1)

    await indexes.forget_lease(T, noted)

    assert [due for due, _ in await indexes.due_leases()] == [T]


async def test_lost_indexes_are_rebuilt(
    indexes: Indexes, clients: RedisClients, keys: Keys
) -> None:
    """Threads, run ids and leases come back from the threads themselves."""
    log = ThreadLog(clients, keys, "w1")
    one, two = ThreadKey("local", "a*b"), ThreadKey("ann", "会话")
    change = StoredHistory().change()
    await RunStore(log).start(StartRequest(one, "r1", "agent", "f", [], change, 30.0))
    written = await log.append(two, [NewEntry("note", "x", b"{}", "operator", "")], fence=0)
    lost = [name for name in await clients.read.keys(f"{keys.prefix}:*") if b"{" not in name]
    await clients.write.delete(*lost)

    assert await indexes.rebuild() == 2

    assert {found for found, _ in await indexes.page(None, None, 10)} == {one, two}
    assert await indexes.page("ann", None, 10) == [(two, written.time)]
    assert await indexes.find_run("local", "r1") == one
    lease = (await log.head(one)).lease
    assert await clients.read.zscore(keys.leases(), one.key) == lease


async def test_indexes_that_are_there_are_left_alone(indexes: Indexes) -> None:
    """No key is scanned when nothing is lost."""
    await indexes.touch(T, 1000)

    assert await indexes.rebuild() == 0


async def test_a_prefix_is_no_pattern(clients: RedisClients, keys: Keys) -> None:
    """Rebuilding looks at its own prefix only."""
    await ThreadLog(clients, Keys(f"{keys.prefix}x"), "w").append(T, [], fence=0)

    assert await Indexes(clients, Keys(f"{keys.prefix}?")).rebuild() == 0


async def test_a_deleted_thread_is_forgotten(indexes: Indexes, keys: Keys) -> None:
    """It leaves every index."""
    await indexes.touch(T, 1000)
    await indexes.keep_run(T, "r1")
    await indexes.mark_lease(T, 1000)

    await indexes.forget_thread(T, ["r1"])

    assert await indexes._clients.read.keys(f"{keys.prefix}:*") == []


async def test_paused_threads_by_when_they_are_due(indexes: Indexes) -> None:
    """Those first that are due first; one that never is comes last, until it is forgotten."""
    await indexes.mark_pause(thread(1), None)
    await indexes.mark_pause(thread(2), 20)
    await indexes.mark_pause(thread(3), 10)

    every, due = await indexes.paused(), await indexes.paused(15)
    await indexes.forget_pause(thread(3))
    await indexes.forget_thread(thread(2), [])

    assert every == [thread(3), thread(2), thread(1)] and due == [thread(3)]
    assert await indexes.paused(limit=5) == [thread(1)]
