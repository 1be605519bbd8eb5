"""The one writer of a run's log."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import threading
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest
from agui_stories import SCOPE, CountedIds, asked, called, encoder, said
from backscroll.agent.events import AgentEvent, Reported
from backscroll.compaction.beside import LARGE_CHARS
from backscroll.compaction.decision import CompactionFinished, CompactionStarted
from backscroll.compaction.tokens import Sizes
from backscroll.kernel.errors import LeaseLost, StoreError
from backscroll.kernel.message import user
from backscroll.kernel.model import ModelProfile, ModelRequest
from backscroll.kernel.request import Note
from backscroll.runs.activity import CompactionCards
from backscroll.runs.recorder import Recorder
from backscroll.runs.run_memory import RunMemory
from backscroll.runs.sink import RunSink
from backscroll.store.chat_memory import RedisChatMemory
from backscroll.store.connection import RedisClients, connect
from backscroll.store.entry import Entry
from backscroll.store.history_reader import HistoryReader
from backscroll.store.keys import Keys
from backscroll.store.run_record import Started, StartRequest
from backscroll.store.runs import RunStore
from backscroll.store.thread_log import RunLease, ThreadLog
from cutting_proxy import CuttingProxy, cutting_proxy
from deadlines import scaled
from scripted_model import ScriptedModel
from working import key

LONG_S = 60.0


class Writer:
    """A started run with its sink, and its log as others read it."""

    def __init__(self, log: ThreadLog, reader: ThreadLog, lease: RunLease, **options: Any) -> None:
        self.log, self.reader, self.lease = log, reader, lease
        timeline = options.pop("timeline", "brief")
        self.encoder = encoder(timeline=timeline)
        self.encoder.start()
        self.recorder = Recorder("r1", "w", Sizes(), calls=0, compactions=0)
        memory = RunMemory(RedisChatMemory(log, lease=lease))
        cards = CompactionCards(self.encoder, CountedIds(), has_text=timeline == "full")
        times = {"coalesce_s": LONG_S, "coalesce_deltas": 4, **options}
        self.sink = RunSink(log, lease, self.encoder, self.recorder, memory, cards, **times)

    async def send(self, *events: AgentEvent) -> None:
        """Hand events to the sink, in order."""
        for event in events:
            await self.sink(event)

    async def entries(self) -> list[Entry]:
        """Return what is in the log after the start."""
        return await self.reader.read(self.lease.thread, 0)

    async def deltas(self) -> list[str]:
        """Return the deltas that are in the log."""
        return [json.loads(e.body)["delta"] for e in await self.entries() if b'"delta"' in e.body]

    async def types(self) -> list[str]:
        """Return the types of all entries."""
        return [entry.type for entry in await self.entries()]


async def start(log: ThreadLog, run: str = "r1") -> RunLease:
    """Start a run that has written nothing yet."""
    history = await HistoryReader(log.clients, log.keys).read(key())
    request = StartRequest(key(), run, "a", "mark", (), history.change(), 15)
    started = await RunStore(log).start(request)
    assert isinstance(started, Started)
    return started.lease


@pytest.fixture
async def writer(clients: RedisClients, keys: Keys) -> Writer:
    """Give a writer whose deltas wait for a minute, four at most."""
    log = ThreadLog(clients, keys, "w")
    return Writer(log, log, await start(log))


@asynccontextmanager
async def cut_off(
    url: str, keys: Keys, **options: Any
) -> AsyncIterator[tuple[Writer, CuttingProxy]]:
    """Give a writer whose connections can be cut."""
    near = connect(url)
    async with cutting_proxy(url) as proxy:
        far = connect(proxy.url)
        log, reader = ThreadLog(far, keys, "w"), ThreadLog(near, keys, "w")
        yield Writer(log, reader, await start(reader), **options), proxy
        await far.close()
    await near.close()


def call_started() -> AgentEvent:
    """Return the beginning of a model call."""
    model: Any = ScriptedModel()
    return asked("m1", model)


def words(*texts: str) -> Sequence[AgentEvent]:
    """Return a text message as it streams."""
    return said("m1", *texts)


async def test_the_first_delta_is_written_at_once(writer: Writer) -> None:
    """E8: nobody waits for the beginning of a message."""
    await writer.send(*words("a"))

    assert await writer.deltas() == ["a"]


async def test_later_deltas_wait_until_the_batch_is_full(writer: Writer) -> None:
    """Four deltas that waited are one append of one event."""
    await writer.send(*words("a", "b", "c", "d"))
    before = await writer.deltas()
    await writer.send(*words("e"))

    assert before == ["a"]
    assert await writer.deltas() == ["a", "bcde"]


async def test_what_is_no_delta_writes_what_waits(writer: Writer) -> None:
    """A stored message must come after the events that showed it."""
    await writer.send(*words("a", "b", "c"), *called("m1", "c1", "{}"))

    assert await writer.deltas() == ["a", "bc", "{}"]


async def test_waiting_deltas_are_written_when_their_time_is_up(
    clients: RedisClients, keys: Keys
) -> None:
    """The timer of the sink writes them; it ends with its task."""
    log = ThreadLog(clients, keys, "w")
    writer = Writer(log, log, await start(log), coalesce_s=0.01)
    timer = asyncio.ensure_future(writer.sink.run())
    await writer.send(*words("a", "b", "c"))

    async with asyncio.timeout(scaled(5)):
        while await writer.deltas() != ["a", "bc"]:
            pass
    timer.cancel()
    await asyncio.wait([timer])


async def test_flush_and_nothing_to_write(writer: Writer) -> None:
    """An empty batch is no append."""
    await writer.send(*words("a", "b"))
    await writer.sink.flush()
    await writer.sink.flush()

    assert await writer.deltas() == ["a", "b"]


async def test_a_lost_lease_stops_the_writer(writer: Writer) -> None:
    """Once another worker has the run, nothing is written and every call says so."""
    await writer.send(*words("a"))
    await writer.reader.clients.write.hset(
        writer.reader.keys.meta(writer.lease.thread), "fence", writer.lease.fence + 1
    )

    for _ in range(2):
        with pytest.raises(LeaseLost):
            await writer.send(*words("b"), *called("m1", "c1", "{}"))
    with pytest.raises(LeaseLost):
        await writer.sink.settle()
    assert await writer.deltas() == ["a"]


async def test_a_failed_append_makes_every_later_call_fail(valkey_url: str, keys: Keys) -> None:
    """The timer's failure is told by the next event; nothing is taken in any more."""
    async with cut_off(valkey_url, keys, coalesce_s=0.0) as (writer, proxy):
        await writer.send(*words("a"))
        proxy.cuts = 100
        await writer.send(*words("b"))
        await writer.sink.run()
        with pytest.raises(StoreError):
            await writer.send(*words("c"))
        proxy.cuts = 0
        with pytest.raises(StoreError):
            await writer.sink.flush()


async def test_settling_writes_what_a_failed_append_left(valkey_url: str, keys: Keys) -> None:
    """What was perhaps written is not written twice, and what came after it is not lost."""
    async with cut_off(valkey_url, keys) as (writer, proxy):
        await writer.send(*words("a", "b"))
        proxy.cuts = 100
        with pytest.raises(StoreError):
            await writer.send(*called("m1", "c1", "{}"))
        with pytest.raises(StoreError):
            await writer.sink.settle()
        proxy.cuts = 0
        await writer.sink.settle()
        await writer.sink.settle()

        assert await writer.types() == [
            "TEXT_MESSAGE_START",
            "TEXT_MESSAGE_CONTENT",
            "TEXT_MESSAGE_CONTENT",
            "TEXT_MESSAGE_END",
            "TOOL_CALL_START",
        ]


async def test_what_was_encoded_before_a_fault_of_ours_is_written(writer: Writer) -> None:
    """An exception while events are translated leaves nothing half said."""
    await writer.send(*words("a", "b"))
    broken: Any = Reported(**SCOPE, report=CompactionFinished({"stages": None}))

    with pytest.raises(KeyError):
        await writer.send(broken)
    before = await writer.deltas()
    await writer.sink.settle()

    assert before == ["a"] and await writer.deltas() == ["a", "b"]


async def test_records_stand_before_what_is_shown(writer: Writer) -> None:
    """The call record is in the log when the sink returns, before anything of its reply."""
    await writer.send(call_started(), *words("a"))

    found = await writer.entries()
    assert [e.kind for e in found] == ["call", "event", "event"]
    assert await writer.reader.call_seqs(writer.lease.thread) == [1]


async def test_a_note_of_one_key_is_written_once_in_a_thread(
    clients: RedisClients, keys: Keys
) -> None:
    """Also when a later run on another worker reports it again."""
    note = Note("repair", "moved", "repair:m1")
    first = ThreadLog(clients, keys, "w1")
    writer = Writer(first, first, await start(first))
    await writer.sink.note(note)
    await RunStore(first).finish(writer.lease, [], status="ok")
    second = ThreadLog(clients, keys, "w2")
    later = Writer(second, second, await start(second, "r2"))

    await later.sink.note(note)
    await later.send(Reported(**SCOPE, report=note))
    await later.sink.note(Note("repair", "another", "repair:m2"))

    noted = [e.preview for e in await later.entries() if e.kind == "note"]
    assert noted == ["moved", "another"]


async def test_a_note_comes_after_what_waits(writer: Writer) -> None:
    """Deltas before it are in the log before it."""
    await writer.send(*words("a", "b"))
    await writer.sink.note(Note("plain", "x"))

    assert (await writer.types())[-2:] == ["TEXT_MESSAGE_CONTENT", "plain"]


async def test_a_lookup_that_fails_is_no_failure_of_its_own(valkey_url: str, keys: Keys) -> None:
    """Whether a note was written before cannot be read; then it is written."""
    async with cut_off(valkey_url, keys) as (writer, proxy):
        await writer.log.clients.read.aclose()
        proxy.cuts = 4
        await writer.sink.note(Note("repair", "moved", "repair:m1"))

        assert await writer.types() == ["repair"]


async def test_clients_see_a_compaction_and_its_summary(clients: RedisClients, keys: Keys) -> None:
    """At timeline `full` the text is read from the report, or from the log's blobs."""
    log = ThreadLog(clients, keys, "w")
    writer = Writer(log, log, await start(log), timeline="full")
    amounts = {"before": {"messages": 2, "tokens": 9}, "after": {"messages": 1, "tokens": 5}}
    stages = [{"stage": "summary", "status": "done"}]
    decision = {"trigger": "ratio", "stages": stages, **amounts, "result": "done"}
    made = {**decision, "summary": {"sha256": "s1", "source": "fresh"}}
    again = {**decision, "summary": {"sha256": "s1", "source": "cache"}}
    await writer.send(
        Reported(**SCOPE, report=CompactionStarted("ratio")),
        Reported(**SCOPE, report=CompactionFinished(made, {"s1": b"The story."})),
        Reported(**SCOPE, report=CompactionFinished(again)),
        Reported(**SCOPE, report=CompactionFinished(decision)),
        call_started(),
    )

    found = [json.loads(e.body) for e in await writer.entries() if e.type == "ACTIVITY_SNAPSHOT"]
    assert [f["content"]["status"] for f in found] == ["running", "done", "done", "done"]
    assert [f["content"].get("text") for f in found] == [None, "The story.", "The story.", None]
    assert found[0]["messageId"] == found[1]["messageId"] != found[2]["messageId"]


class Watched:
    """A model that keeps which thread asked what its requests look like."""

    name, provider, profile = "m", "p", ModelProfile()

    def __init__(self) -> None:
        self.threads: list[threading.Thread] = []
        self.may_end = threading.Event()

    def encode(self, request: ModelRequest, stream: bool) -> bytes:
        """Keep the thread, and wait."""
        self.threads.append(threading.current_thread())
        self.may_end.wait(10)
        return b"{}"


def large_call(model: Watched) -> AgentEvent:
    """Return the beginning of a call with a large request."""
    request = ModelRequest((user("x" * (LARGE_CHARS + 1)),))
    return dataclasses.replace(asked("m1"), request=request, model=model)  # type: ignore[type-var]


async def test_a_large_request_is_recorded_off_the_loop(writer: Writer) -> None:
    """The loop is free while its tokens are counted; a small one costs no thread."""
    model, small = Watched(), Watched()
    work = asyncio.ensure_future(writer.send(large_call(model)))
    async with asyncio.timeout(scaled(5)):
        while not model.threads:  # noqa: ASYNC110 - a thread appends
            await asyncio.sleep(0.001)
    model.may_end.set()
    small.may_end.set()
    await work
    await writer.send(dataclasses.replace(asked("m2"), model=small))  # type: ignore[type-var]

    assert model.threads[0] is not threading.main_thread() is small.threads[0]
    assert [e.type for e in await writer.entries() if e.kind == "call"] == ["started"] * 2


async def test_who_is_cancelled_waits_for_the_recorder(writer: Writer) -> None:
    """While the thread has the recorder, nobody else gets it."""
    model = Watched()
    work = asyncio.ensure_future(writer.send(large_call(model)))
    async with asyncio.timeout(scaled(5)):
        while not model.threads:  # noqa: ASYNC110 - a thread appends
            await asyncio.sleep(0.001)
    work.cancel()
    settling = asyncio.ensure_future(writer.sink.settle())
    done, _ = await asyncio.wait([work, settling], timeout=0.1)
    model.may_end.set()
    await settling

    assert done == set() and work.cancelled()
    assert writer.recorder.call == 1
