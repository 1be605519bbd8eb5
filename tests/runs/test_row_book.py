"""Folded rows, kept between requests."""

from __future__ import annotations

import pytest
from backscroll.runs import row_book as module
from backscroll.runs.entry_json import entry_for_fold
from backscroll.runs.fold import Fold
from backscroll.runs.row_book import RowBook
from backscroll.store.entry import Entry
from backscroll.store.keys import ThreadKey
from backscroll.store.thread_log import ThreadLog
from working import agent_of, key, run, working


class CountingLog(ThreadLog):
    """A log that counts how many entries it gives out."""

    given = 0

    async def read(self, thread: ThreadKey, after: int, limit: int = 1000) -> list[Entry]:
        """Read, and count what was read."""
        found = await super().read(thread, after, limit)
        self.given += len(found)
        return found


async def test_only_what_is_new_is_folded(valkey_url: str, prefix: str) -> None:
    """The second time nothing is read, and after a run only that run."""
    async with working(agent_of("a", "b"), valkey_url, prefix) as worker:
        log = CountingLog(worker.clients, worker.keys, "w")
        book = RowBook(log)
        await run(worker, "t", "r1", "hi")
        first = await book.rows(key())
        given, head = [log.given], [first.head]
        await book.rows(key())
        given.append(log.given)
        await run(worker, "t", "r2", "hi", "more")
        later = await book.rows(key())
        given.append(log.given)
        head.append(later.head)

    assert later is first and given == [head[0], head[0], head[1]]
    assert sum(row.entries for row in later.rows) == head[1]


async def test_the_rows_are_those_of_the_whole_log(
    valkey_url: str, prefix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Read in pages or at once, the fold is the same."""
    monkeypatch.setattr(module, "PAGE", 3)
    async with working(agent_of("a"), valkey_url, prefix) as worker:
        await run(worker, "t", "r1", "hi")
        found = await RowBook(worker.log).rows(key())
        whole = Fold()
        whole.extend(map(entry_for_fold, await worker.log.read(key(), 0)))

    assert [r.to_dict() for r in found.rows] == [r.to_dict() for r in whole.rows]


async def test_a_thread_nobody_knows_has_no_rows(valkey_url: str, prefix: str) -> None:
    """There is nothing to fold."""
    async with working(agent_of("a"), valkey_url, prefix) as worker:
        found = await RowBook(worker.log).rows(key("nope"))

    assert (found.rows, found.head) == ([], 0)


async def test_a_new_log_or_floor_is_folded_anew(valkey_url: str, prefix: str) -> None:
    """A deleted and remade thread has another epoch; a raised floor takes rows away."""
    async with working(agent_of("a"), valkey_url, prefix) as worker:
        await run(worker, "t", "r1", "hi")
        book = RowBook(worker.log)
        first = await book.rows(key())
        await worker.clients.write.hset(worker.keys.meta(key()), "epoch", "zzzz")
        second = await book.rows(key())
        await worker.clients.write.hset(worker.keys.meta(key()), "floor", 2)
        third = await book.rows(key())

    assert second is not first and third is not second
    assert [r.to_dict() for r in second.rows] == [r.to_dict() for r in first.rows]


async def test_a_few_threads_are_remembered(
    valkey_url: str, prefix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The least recently asked one is forgotten."""
    monkeypatch.setattr(module, "THREADS", 1)
    async with working(agent_of("a", "b"), valkey_url, prefix) as worker:
        await run(worker, "t1", "r1", "hi")
        await run(worker, "t2", "r2", "hi")
        book = RowBook(worker.log)
        one = await book.rows(key("t1"))
        await book.rows(key("t2"))

        assert await book.rows(key("t1")) is not one
