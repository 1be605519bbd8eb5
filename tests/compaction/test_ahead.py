"""Summaries between runs."""

from __future__ import annotations

import asyncio
from typing import Any

from backscroll.compaction.decision import CompactionFinished
from backscroll.compaction.store import CompactionEntry, InMemoryCompactionStore
from backscroll.conversation.repair import repair
from backscroll.kernel.errors import StoreError
from backscroll.kernel.message import Message, assistant
from backscroll.kernel.model import ModelResponse
from backscroll.kernel.ports import CancelToken
from backscroll.kernel.request import ChatRequest
from backscroll.kernel.usage import Usage
from compaction.edge import NOTES, Talk, talk_with
from compaction.histories import a, u
from compaction.planning import talk, until

FULL = talk(35, 60)


def request(found: Talk, history: list[Message], conversation: str | None = "t") -> ChatRequest:
    """Return the request that the next call would make."""
    context = {"conversation_id": conversation} if conversation else {}
    model = found.model
    return ChatRequest(tuple(history), context=context, model=model, profile=model.profile)


async def prepared(found: Talk, history: list[Message], **more: Any) -> CompactionFinished | None:
    """Make a summary ahead of need."""
    return await found.compaction.prepare(request(found, history), **more)


async def test_a_nearly_full_view_gets_its_summary_between_runs() -> None:
    """It is kept as ready; the view before the trigger is unchanged, then nobody waits."""
    store = InMemoryCompactionStore()
    found = talk_with(store=store, background=True)
    assert found.compaction.background
    await found.ask(FULL)
    before = found.sent

    done = await prepared(found, FULL)

    assert done is not None
    assert (done.decision["trigger"], done.decision["result"]) == ("background", "done")
    assert done.decision["summary"]["sha256"] in done.blobs
    (ready,) = (await store.get("t")).ring
    assert ready.ready and (await store.get("t")).cache is None
    found.next_run()
    await found.ask(FULL)
    assert found.sent == before

    await found.ask(talk(46, 60))
    assert len(found.model.summaries) == 1 and found.watcher.begun == 0
    assert found.watcher.decisions[-1]["summary"]["source"] == "adopted"
    assert "keep going" in found.sent[0].text


async def test_its_range_counts_no_message_that_repair_made_up() -> None:
    """References are those of the history, as for every other decision."""
    found = talk_with()
    history = list(repair([u(1), a(2, None, "gone"), *FULL], "No result.")[0])
    assert sum(message.id is None for message in history) == 1
    done = await prepared(found, history)
    assert done is not None
    (ready,) = (await found.compaction._access.store.get("t")).ring
    assert list(done.decision["covers"]) == [1, ready.prefix_n - 1]


async def test_write_back_waits_until_it_is_in_use() -> None:
    """WBK1: called once, when the ready summary is adopted; neither before nor on later hits."""
    calls: list[int] = []

    def hook(conversation_id: str, compacted: list[Message], original: list[Message]) -> None:
        calls.append(len(original))

    found, above = talk_with(write_back=hook), talk(46, 60)
    await prepared(found, FULL)
    await found.compaction.dry_run(request(found, above))
    assert calls == []
    await found.ask(above)
    await found.ask([*above, u(999)])
    assert calls == [len(above)] and len(found.model.summaries) == 1


async def test_nothing_is_made_where_nothing_is_needed() -> None:
    """Too small, made already, no conversation, no summariser, or paused."""
    found = talk_with()
    assert await prepared(found, talk(9, 60)) is None
    assert await prepared(found, FULL) is not None
    assert await prepared(found, FULL) is None
    nobody = request(found, FULL, conversation=None)
    assert await found.compaction.prepare(nobody) is None
    assert await prepared(talk_with(summariser=None), FULL) is None
    assert len(found.model.summaries) == 1


async def test_a_failure_counts_and_is_told() -> None:
    """The breaker knows of it; nothing is kept."""
    store = InMemoryCompactionStore()
    blank = ModelResponse(assistant(""), Usage(900, 7))
    done = await prepared(talk_with(notes=[blank], store=store), FULL)
    assert done is not None
    assert (done.decision["result"], done.decision["reason"]) == ("failed", "summariser_failed")
    assert done.decision["spent"]["usage"] == {"input_tokens": 900, "output_tokens": 7}
    entry = await store.get("t")
    assert (entry.failures, entry.ring) == (1, ())


async def test_it_stops_when_a_run_starts() -> None:
    """Cancelled at once, nothing counted, the lease is free."""
    store, cancel, begun = InMemoryCompactionStore(), CancelToken(), asyncio.Event()

    async def forever(request: Any) -> str:
        begun.set()
        await asyncio.sleep(60)
        return NOTES

    found = talk_with(notes=[forever], store=store)
    making = asyncio.create_task(prepared(found, FULL, cancel=cancel))
    await until(begun.is_set)
    cancel.cancel("a run starts")
    assert await making is None
    assert (await store.get("t")).failures == 0
    assert await store.take_lease("t", "next", 60)


async def test_whoever_holds_the_lease_makes_it() -> None:
    """STO3: one summariser call per range."""
    store = InMemoryCompactionStore()
    await store.take_lease("t", "other", 60)
    found = talk_with(store=store)
    assert await prepared(found, FULL) is None
    assert found.model.summaries == []


async def test_it_joins_what_somebody_else_wrote_meanwhile() -> None:
    """Swap lost: read again; given up after three times."""

    class Racing(InMemoryCompactionStore):
        times = 1

        async def swap(self, conversation_id: str, entry: Any, generation: Any) -> bool:
            if self.times:
                self.times -= 1
                await super().put(conversation_id, CompactionEntry(failures=1))
            return await super().swap(conversation_id, entry, generation)

    store = Racing()
    assert await prepared(talk_with(store=store), FULL) is not None
    assert len((await store.get("t")).ring) == 1

    store = Racing()
    store.times = 9
    assert await prepared(talk_with(store=store), FULL) is not None
    assert (await store.get("t")).ring == ()


async def test_a_store_that_is_down_is_no_error() -> None:
    """What cannot be stored is kept in the process."""

    class Down(InMemoryCompactionStore):
        async def get(self, conversation_id: str) -> CompactionEntry:
            raise StoreError("gone")

        async def swap(self, conversation_id: str, entry: Any, generation: Any) -> bool:
            raise StoreError("gone")

    found = talk_with(store=Down())
    assert await prepared(found, FULL) is not None
    await found.ask(talk(46, 60))
    assert found.watcher.decisions[-1]["summary"]["source"] == "adopted"


async def test_a_partial_summary_ahead_of_need_is_kept_with_its_failure() -> None:
    """SUM4: up to where the last good pass ended."""
    store = InMemoryCompactionStore()
    found = talk_with(notes=[NOTES, ""], store=store)
    long = talk(90, 60)
    done = await prepared(found, long)
    assert done is not None and done.decision["summary"]["source"] == "partial"
    assert (await store.get("t")).failures == 1


class Claimed(InMemoryCompactionStore):
    """Counts who asks for the right to summarise."""

    claims = 0

    async def take_lease(self, conversation_id: str, token: str, ttl_s: float) -> bool:
        """Count, then answer."""
        self.claims += 1
        return await super().take_lease(conversation_id, token, ttl_s)


async def test_a_call_that_waits_for_it_uses_it() -> None:
    """concurrency-05: the filter adopts what is made ahead of need while it waits."""
    store, gate, begun = Claimed(), asyncio.Event(), asyncio.Event()

    async def slowly(request: Any) -> str:
        begun.set()
        await gate.wait()
        return NOTES

    found, other = talk_with(notes=[slowly], store=store), talk_with(notes=["no"], store=store)
    making = asyncio.create_task(prepared(found, talk(46, 60)))
    await until(begun.is_set)
    asking = asyncio.create_task(other.ask(talk(46, 60)))
    await until(lambda: store.claims > 1)
    gate.set()
    await asyncio.gather(making, asking)
    assert other.model.summaries == [] and "keep going" in other.sent[0].text
    assert other.watcher.decisions[-1]["summary"]["source"] == "adopted"


async def test_a_call_that_waits_for_one_that_stops_makes_it_itself() -> None:
    """It does not wait for its own deadline."""
    store, cancel, begun = Claimed(), CancelToken(), asyncio.Event()

    async def forever(request: Any) -> str:
        begun.set()
        await asyncio.sleep(600)
        return NOTES

    found, other = talk_with(notes=[forever], store=store), talk_with(store=store)
    making = asyncio.create_task(prepared(found, talk(46, 60), cancel=cancel))
    await until(begun.is_set)
    asking = asyncio.create_task(other.ask(talk(46, 60)))
    await until(lambda: store.claims > 1)
    cancel.cancel("a run starts")
    async with asyncio.timeout(20):
        await asyncio.gather(making, asking)
    assert len(other.model.summaries) == 1
    assert other.watcher.decisions[-1]["summary"]["source"] == "fresh"
