"""Carrying a plan out: one summary at a time, under a lease, and the entry stored."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from backscroll.compaction.filter import Compaction
from backscroll.compaction.store import (
    CompactionEntry,
    InMemoryCompactionStore,
)
from backscroll.kernel.errors import ModelError
from backscroll.kernel.message import assistant
from backscroll.kernel.model import ModelResponse
from backscroll.kernel.usage import Usage
from compaction.edge import NOTES, EdgeModel, FakeClock, Talk, overflow, talk_with
from compaction.planning import Says, talk, until
from compaction.test_store import SeedStore

LONG = talk(46, 60)
SOON = {"summary_timeout": 0.2}


class Gate:
    """A summariser that waits until it is let go."""

    def __init__(self, answer: Any = NOTES) -> None:
        self.go, self.begun, self.ended = asyncio.Event(), 0, 0
        self.answer = answer

    async def __call__(self, request: Any) -> Any:
        """Wait, then answer."""
        self.begun += 1
        try:
            await self.go.wait()
        finally:
            self.ended += 1
        return self.answer


async def test_calls_at_once_make_one_summary() -> None:
    """STO3: in one process; all use it."""
    gate = Gate()
    found = talk_with(notes=[gate])
    asking = [asyncio.create_task(found.ask(LONG)) for _ in range(3)]
    await until(lambda: gate.begun == 1)
    gate.go.set()
    await asyncio.gather(*asking)
    assert gate.begun == 1
    assert {request.messages[0].text for request in found.model.requests} == {found.sent[0].text}
    assert "keep going" in found.sent[0].text


async def test_two_workers_make_one_summary() -> None:
    """STO3: the second waits for the entry of the first."""
    gate, store = Gate(), InMemoryCompactionStore()
    one = talk_with(notes=[gate], store=store)
    two = talk_with(notes=["must not be asked"], store=store)
    first = asyncio.create_task(one.ask(LONG))
    await until(lambda: gate.begun == 1)
    second = asyncio.create_task(two.ask(LONG))
    gate.go.set()
    await asyncio.gather(first, second)
    assert two.model.summaries == []
    assert two.sent == one.sent


async def test_one_that_comes_late_uses_what_is_there() -> None:
    """STO3: whoever gets the lease looks again before it asks a model."""
    store = InMemoryCompactionStore()
    one, two = talk_with(store=store), talk_with(store=store)
    read = two.compaction._access.get

    async def stale(conversation_id: str) -> CompactionEntry:
        two.compaction._access.get = read  # type: ignore[method-assign]  # once
        return CompactionEntry(generation=0)

    await one.ask(LONG)
    two.compaction._access.get = stale  # type: ignore[method-assign]  # what it read before
    await two.ask(LONG)
    assert two.model.summaries == [] and two.sent == one.sent


async def test_a_dead_winner_costs_the_losers_their_deadline() -> None:
    """STO4: they drop within it; the next call makes one summary."""
    store = InMemoryCompactionStore()
    await store.take_lease("t", "dead", 60)
    found = talk_with(store=store, **SOON)
    await found.ask(LONG)
    assert found.model.summaries == []
    assert found.watcher.decisions[-1]["reason"] == "lease_wait_over"
    await store.drop_lease("t", "dead")
    found.next_run()
    history = [*LONG, *talk(40, 60, start=90)]
    await found.ask(history)
    assert len(found.model.summaries) >= 1


async def test_a_waiter_in_the_same_process_has_a_deadline_too() -> None:
    """SUM6: it drops and goes on, the winner is not disturbed."""
    gate = Gate()
    slow = Compaction("own", summary_timeout=30.0)
    one = Talk(EdgeModel(notes=[gate]), slow)
    first = asyncio.create_task(one.ask(LONG))
    await until(lambda: gate.begun == 1)
    hasty = Talk(EdgeModel(), slow.bind())
    hasty.compaction.settings = slow.settings.replace(summary_timeout=0.05)
    hasty.compaction._open(slow._access.store, slow._learning.facts, slow._inputs.pins)
    await hasty.ask(LONG)
    assert hasty.watcher.decisions[-1]["reason"] == "lease_wait_over"
    gate.go.set()
    await first
    assert "keep going" in one.sent[0].text


async def test_the_deadline_passes_and_the_call_goes_on() -> None:
    """SUM6: with a digest; the late answer changes nothing."""
    gate, store = Gate(), InMemoryCompactionStore()
    found = talk_with(notes=[gate], store=store, **SOON)
    await found.ask(LONG)
    decision = found.watcher.decisions[-1]
    assert decision["reason"] == "summariser_timeout" and "summary" not in decision
    assert "there is no summary of them" in found.sent[0].text
    assert gate.ended == 1
    assert (await store.get("t")).failures == 1
    assert (await store.get("t")).cache is None


@pytest.mark.parametrize(
    "answer", ["", "   \n", ModelError("auth", "bad key"), '{"error": "no"}', "word " * 9_000]
)
async def test_a_failure_counts_once_and_the_call_goes_out(answer: Any) -> None:
    """SUM1, SUM5: with a digest, nothing stored, and the reason on record."""
    store = InMemoryCompactionStore()
    found = talk_with(notes=[answer], store=store)
    assert (await found.ask(LONG)).text == "fine"
    entry = await store.get("t")
    assert (entry.cache, entry.failures) == (None, 1)
    assert len(found.model.summaries) == 1
    stages = {stage["stage"]: stage for stage in found.watcher.decisions[-1]["stages"]}
    assert stages["summary"]["status"] == "failed" and stages["summary"]["why"]
    assert stages["drop"]["status"] == "done"


async def test_a_summary_that_is_not_accepted_has_its_price() -> None:
    """What it cost is in the decision, and no summary is."""
    blank = ModelResponse(assistant(" "), Usage(900, 7), model="small", provider="p")
    found = talk_with(notes=[blank])
    await found.ask(LONG)
    decision = found.watcher.decisions[-1]
    usage = {"input_tokens": 900, "output_tokens": 7}
    assert decision["spent"] == {"model": "small", "provider": "p", "usage": usage}
    assert "summary" not in decision and decision["reason"] == "summariser_failed"


async def test_the_breaker_opens_and_closes_again() -> None:
    """SUM10: calls in turns 1 to 3, none in 4 to 6, a trial after the cooldown."""
    clock = FakeClock()
    store = InMemoryCompactionStore(clock=clock)
    found = talk_with(notes=["", "", "", NOTES], store=store, clock=clock)
    history = list(LONG)
    for turn in range(6):
        await found.ask(history)
        history += talk(46, 60, start=100 * (turn + 1))
        assert len(found.model.summaries) == min(turn + 1, 3)
    assert found.watcher.decisions[-1]["reason"] == "paused_after_failures"
    clock.time += 300
    await found.ask(LONG)
    assert (await store.get("t")).failures == 0


async def test_partial_success_counts_its_failure() -> None:
    """SUM4: the summary is used, and one failure is counted; also by a small store."""
    for store in (InMemoryCompactionStore(), SeedStore()):
        summariser = Says(NOTES, NOTES, "", window=2_800)
        found = talk_with(summariser=summariser, store=store)
        await found.ask(talk(60, 60))
        entry = await store.get("t")
        assert entry.failures == 1 and entry.cache is not None
        assert found.watcher.decisions[-1]["summary"]["source"] == "partial"
        assert "keep going" in found.sent[0].text


async def test_a_client_that_leaves_is_no_failure() -> None:
    """SUM13: cancelled at once, nothing counted, the lease is free."""
    gate, store = Gate(), InMemoryCompactionStore()
    found = talk_with(notes=[gate], store=store)
    asking = asyncio.create_task(found.ask(LONG))
    await until(lambda: gate.begun == 1)
    found.run.cancel("the user left")
    with pytest.raises(ModelError) as caught:
        await asking
    assert caught.value.kind == "cancelled"
    assert gate.ended == 1
    assert (await store.get("t")).failures == 0
    assert await store.take_lease("t", "next", 60)
    assert found.watcher.decisions[-1]["result"] == "cancelled"
    assert "reason" not in found.watcher.decisions[-1]


async def test_one_that_leaves_while_waiting_is_cancelled_alone() -> None:
    """The one that makes the summary goes on."""
    gate = Gate()
    found = talk_with(notes=[gate])
    first = asyncio.create_task(found.ask(LONG))
    await until(lambda: gate.begun == 1)
    other = Talk(found.model, found.compaction)
    second = asyncio.create_task(other.ask(LONG))
    await until(lambda: found.compaction._flights._flights["t"].waiters == 2)
    other.run.cancel()
    with pytest.raises(ModelError):
        await second
    gate.go.set()
    assert (await first).text == "fine"


async def test_thrashing_ends_summaries_for_the_run() -> None:
    """PLN10: and begins anew with the next one."""
    found = talk_with()
    run = found.compaction._states.of("t").run_of(found.run)
    run.thrashing = True
    await found.ask(LONG)
    assert found.model.summaries == []
    assert found.watcher.decisions[-1]["reason"] == "thrashing"

    again = talk_with()
    state = again.compaction._states.of("t").run_of(again.run)
    state._summarised_at, state._thin = 10_000, 2
    await again.ask(LONG)
    assert again.model.summaries == []
    assert again.watcher.decisions[-1]["reason"] == "thrashing"


async def test_a_forced_view_waits_for_nobody_twice() -> None:
    """STO4: behind another worker it drops, and is sent once."""
    store = InMemoryCompactionStore()
    await store.take_lease("t", "other", 60)
    found = talk_with(overflow(), "done", store=store, window=16_000, **SOON)
    assert (await found.ask(LONG)).text == "done"
    assert found.watcher.decisions[-1]["reason"] == "lease_wait_over"
