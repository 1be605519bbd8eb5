"""A stored history rewritten by write-back: what is put where, and how it was before."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from backscroll.kernel.errors import LeaseLost, StoreError
from backscroll.kernel.message import Message, assistant, user
from backscroll.store.chat_memory import RedisChatMemory
from backscroll.store.connection import RedisClients, connect
from backscroll.store.history import Rewrite, StoredHistory, StoredMessage
from backscroll.store.history_reader import HistoryReader
from backscroll.store.keys import Keys, ThreadKey
from backscroll.store.rewriting import as_of, plan_rewriting
from backscroll.store.thread_log import RunLease, ThreadLog
from cutting_proxy import cutting_proxy
from hypothesis import given
from hypothesis import strategies as st

T = ThreadKey("local", "t")
SUMMARY = assistant("a, b and d", id="s").replace(origin="filter:compaction")
FIVE = [user(text, text) for text in "abcde"]
SHORT = [user("c", "c"), SUMMARY]


def history(*names: str, gone: str = "") -> StoredHistory:
    """Return a history of user messages that are named as they say; some are superseded."""
    stored = [
        StoredMessage(n, user(name, name), marks=("superseded",) if name in gone else ())
        for n, name in enumerate(names, start=1)
    ]
    return StoredHistory(tuple(stored), total=len(names))


@pytest.fixture
def log(clients: RedisClients, keys: Keys) -> ThreadLog:
    """Give the log of one worker."""
    return ThreadLog(clients, keys, "w1")


@pytest.fixture
async def memory(log: ThreadLog) -> RedisChatMemory:
    """Give a memory that holds five messages."""
    memory = RedisChatMemory(log)
    await memory.add("t", FIVE)
    return memory


def test_a_summary_takes_the_last_place_of_what_it_stands_for() -> None:
    """What stays keeps its position, superseded messages keep theirs, too."""
    found = plan_rewriting(history(*"axbcde", gone="x"), SHORT, 4, [*"abcd"])
    assert found is not None
    assert (found.put, found.ranges) == (((5, SUMMARY),), ((1, 1), (3, 3), (5, 5)))


@pytest.mark.parametrize(
    ("messages", "expected", "ids"),
    [
        (SHORT, 9, None),
        (SHORT, 4, [*"abce"]),
        ([user("other", "c"), SUMMARY], 4, None),
        ([SUMMARY, user("e", "e")], 4, None),
        ([user("c", "c"), SUMMARY, user("a", "a")], 4, None),
        ([SUMMARY, user("a", "a")], 4, None),
    ],
)
def test_what_was_not_read_is_not_replaced(
    messages: list[Message], expected: int, ids: list[str] | None
) -> None:
    """WBK3: too few, other ones, another text, a later one, another order, no place."""
    assert plan_rewriting(history(*"abcde"), messages, expected, ids) is None


@given(st.data())
def test_every_earlier_state_can_be_read_again(data: st.DataObject) -> None:
    """Property: over several rewritings each archive gives back what was there before it."""
    names = [f"m{n}" for n in range(data.draw(st.integers(2, 12)))]
    now, archives, states = history(*names), {}, []
    for n in range(data.draw(st.integers(1, 3))):
        live = [stored.message for stored in now.live]
        cut = data.draw(st.integers(1, len(live)))
        keep = [m for m in live[: cut - 1] if data.draw(st.booleans())]
        found = plan_rewriting(now, [*keep, user(f"s{n}", f"s{n}")], cut, None)
        assert found is not None
        states.append([(s.position, s.message) for s in now.messages])
        archives[f"b{n}"] = found.archive()
        gone = {s.position for s in found.replaced}
        left = [s for s in now.messages if s.position not in gone]
        put = [StoredMessage(position, message) for position, message in found.put]
        both = tuple(sorted([*left, *put], key=lambda stored: stored.position))
        rewrites = (*now.rewrites, Rewrite(found.ranges, f"b{n}"))
        now = StoredHistory(both, rewrites=rewrites, total=now.total)
    assert [as_of(now, n, archives) for n in range(len(states))] == states


async def test_a_history_is_replaced_in_one_step(memory: RedisChatMemory, log: ThreadLog) -> None:
    """WBK4: ids and positions of what stays; the place of what is gone is empty."""
    assert await memory.replace("t", SHORT, expected=4, ids=[*"abcd"], archive=True)

    assert [m.id for m in await memory.get("t")] == ["c", "s", "e"]
    assert (memory.positions("t"), memory.rewrites) == ([3, 4, 5], 1)
    reader = HistoryReader(log.clients, log.keys)
    assert [s.position for s in await reader.by_ids(T, [*"abcdse"])] == [3, 4, 5]
    assert (await reader.total(T), len((await reader.read(T)).live)) == (5, 3)
    shown = [(s.message.id, s.marks) for s in await reader.stored(T, 1, 4)]
    assert shown == [("a", ("archived",)), ("b", ("archived",)), ("c", ()), ("s", ())]
    entry = (await log.read(T, 0))[-1]
    told = json.loads(entry.body)
    assert (told["position"], told["id"], told["replaces"]) == (4, "s", "1-2,4-4")
    await memory.add("t", [user("f", "f")])
    assert memory.positions("t") == [3, 4, 5]
    assert await memory.get("t") and memory.positions("t") == [3, 4, 5, 6]


async def test_what_was_there_before_is_archived(memory: RedisChatMemory, log: ThreadLog) -> None:
    """WBK5: also over a second time; without an archive the places are empty."""
    reader = HistoryReader(log.clients, log.keys)
    await memory.replace("t", SHORT, expected=4, archive=True)
    second = SUMMARY.replace(id="s2")
    await memory.replace("t", [second], expected=2)

    now = await reader.read(T)
    assert [m.id for _, m in await reader.past(T, now, 2)] == ["s2", "e"]
    assert await reader.past(T, now, 1) == [(5, FIVE[4])]
    assert [(p, m.id) for p, m in await reader.past(T, now, 0)] == [
        *((1, "a"), (2, "b"), (4, "d"), (5, "e"))
    ]


async def test_what_comes_meanwhile_stays_behind(memory: RedisChatMemory, log: ThreadLog) -> None:
    """WBK3: between reading and writing another worker appends; it is decided anew."""
    rewrite, other = memory._rewrite, RedisChatMemory(log)

    async def late(*args: Any) -> bool:
        await other.add("t", [user(f"late {n}", f"l{n}") for n in range(5)])
        return await rewrite(*args)

    memory._rewrite = late  # type: ignore[method-assign]
    assert await memory.replace("t", SHORT, expected=4, ids=[*"abcd"])

    assert [m.id for m in await other.get("t")] == ["c", "s", "e", *(f"l{n}" for n in range(5))]


async def test_an_edit_meanwhile_is_not_overwritten(
    memory: RedisChatMemory, log: ThreadLog
) -> None:
    """WBK3: between reading and writing another worker supersedes; nothing is replaced."""
    rewrite, other = memory._rewrite, RedisChatMemory(log)

    async def late(*args: Any) -> bool:
        await other.supersede("t", 3)
        return await rewrite(*args)

    memory._rewrite = late  # type: ignore[method-assign]
    assert not await memory.replace("t", SHORT, expected=4, ids=[*"abcd"])

    assert await other.get("t") == FIVE[:2]


async def test_a_run_that_lost_its_lease_replaces_nothing(log: ThreadLog) -> None:
    """STO9: nor does anybody when the messages are other ones."""
    await RedisChatMemory(log).add("t", FIVE)
    await log.clients.write.hset(log.keys.meta(T), mapping={"fence": 2, "run": "r2"})
    memory = RedisChatMemory(log, lease=RunLease(T, "r1", 1))

    with pytest.raises(LeaseLost):
        await memory.replace("t", SHORT, expected=4)
    assert not await RedisChatMemory(log).replace("t", SHORT, expected=4, ids=[*"abcx"])
    assert await memory.get("t") == FIVE


async def test_a_lost_answer_is_no_refusal(valkey_url: str, keys: Keys) -> None:
    """The connection breaks between execution and answer; it is found done."""
    async with cutting_proxy(valkey_url) as proxy:
        clients = connect(proxy.url)
        memory = RedisChatMemory(ThreadLog(clients, keys, "w1"))
        await memory.add("t", FIVE)
        rewrite = memory._rewrite

        async def cut(*args: Any) -> bool:
            proxy.cuts = 1
            return await rewrite(*args)

        memory._rewrite = cut  # type: ignore[method-assign]
        assert await memory.replace("t", SHORT, expected=4, ids=[*"abcd"], archive=True)
        assert proxy.answers_swallowed == 1
        assert [m.id for m in await memory.get("t")] == ["c", "s", "e"]
        await clients.close()


async def test_a_history_that_never_rests_is_given_up(memory: RedisChatMemory) -> None:
    """After a bounded number of tries the caller is told."""

    async def refuse(*_: Any) -> bool:
        return False

    memory._rewrite = refuse  # type: ignore[method-assign]
    with pytest.raises(StoreError, match="changed all the time"):
        async with asyncio.timeout(30):
            await memory.replace("t", SHORT, expected=4)


async def test_clearing_forgets_what_was_rewritten(memory: RedisChatMemory) -> None:
    """A conversation that begins anew has no past."""
    await memory.replace("t", SHORT, expected=4)
    assert len(await HistoryReader(memory._log.clients, memory._log.keys).stored(T, 1, 5)) == 3
    await memory.clear("t")
    await memory.add("t", FIVE)

    assert await memory.get("t") == FIVE and memory.rewrites == 0
