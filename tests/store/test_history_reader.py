"""Reading stored histories."""

from __future__ import annotations

import pytest
from backscroll.kernel.message import user
from backscroll.store.chat_memory import RedisChatMemory
from backscroll.store.connection import RedisClients
from backscroll.store.history import StoredHistory
from backscroll.store.history_reader import HistoryReader
from backscroll.store.keys import Keys, ThreadKey
from backscroll.store.thread_log import ThreadLog

T = ThreadKey("local", "t")


@pytest.fixture
def memory(clients: RedisClients, keys: Keys) -> RedisChatMemory:
    """Give what writes histories."""
    return RedisChatMemory(ThreadLog(clients, keys, "w1"))


@pytest.fixture
def reader(clients: RedisClients, keys: Keys) -> HistoryReader:
    """Give the reader."""
    return HistoryReader(clients, keys)


async def fill(memory: RedisChatMemory, count: int) -> None:
    """Store messages u1 to u<count>."""
    await memory.add("t", [user(str(n), f"u{n}") for n in range(1, count + 1)])


async def test_an_unknown_thread_has_an_empty_history(reader: HistoryReader) -> None:
    """It is the history a first run is decided on."""
    assert await reader.read(T) == StoredHistory()
    assert await reader.total(T) == 0
    assert await reader.stored(T, 1, 10) == []
    assert await reader.by_ids(T, ["u1"]) == []


async def test_reads_by_position(memory: RedisChatMemory, reader: HistoryReader) -> None:
    """From 1, both ends included, superseded ones marked."""
    await fill(memory, 5)
    await memory.supersede("t", 4)

    found = await reader.stored(T, 3, 9)

    assert [(m.position, m.message.id, m.is_live) for m in found] == [
        (3, "u3", True),
        (4, "u4", False),
        (5, "u5", False),
    ]
    assert [m.position for m in await reader.stored(T, -3, 1)] == [1]
    assert await reader.stored(T, 3, 2) == []
    assert await reader.stored(T, 0, 0) == []
    assert await reader.total(T) == 5


async def test_reads_by_id(memory: RedisChatMemory, reader: HistoryReader) -> None:
    """Live messages only, in order of position; unknown ids are left out."""
    await fill(memory, 4)
    await memory.supersede("t", 4)

    found = await reader.by_ids(T, ["u3", "nobody", "u1", "u4"])

    assert [m.message.id for m in found] == ["u1", "u3"]
    assert await reader.by_ids(T, []) == []


async def test_a_known_history_grows_by_its_tail(
    memory: RedisChatMemory, reader: HistoryReader
) -> None:
    """The messages that are known are the same objects; the rest is read."""
    await fill(memory, 2)
    known = await reader.read(T)
    await memory.add("t", [user("more", "u3")])

    read = await reader.read(T, known)

    assert [m.message.id for m in read.messages] == ["u1", "u2", "u3"]
    assert read.messages[0] is known.messages[0]
    assert read.revision == known.revision + 1
    assert read == await reader.read(T)


async def test_a_known_history_that_was_edited_is_read_whole(
    memory: RedisChatMemory, reader: HistoryReader
) -> None:
    """Annotated, superseded or cleared: what is known is worth nothing."""
    await fill(memory, 3)
    known = await reader.read(T)
    await memory.add("t", [user("1", "u1").replace(model_content="x", rewritten_by=("f",))])
    annotated = await reader.read(T, known)
    assert annotated.messages[0].message.model_content == "x"

    await memory.supersede("t", 2)
    superseded = await reader.read(T, annotated)
    assert [m.message.id for m in superseded.live] == ["u1"]

    await memory.clear("t")
    await memory.add("t", [user("new", "u1")])
    assert [m.message.content for m in (await reader.read(T, superseded)).messages] == ["new"]
