"""What a call's plan depends on, as it is read."""

from __future__ import annotations

from typing import Any

import pytest
from backscroll.compaction.call_state import CallState
from backscroll.compaction.filter import Compaction
from backscroll.compaction.inputs import Call
from backscroll.compaction.store import (
    Cache,
    CompactionEntry,
    InMemoryCompactionStore,
    InMemoryModelFacts,
    InMemoryPinStore,
    ModelFact,
)
from backscroll.kernel.errors import LeaseLost, StoreError
from backscroll.kernel.model import ModelOptions
from backscroll.kernel.ports import CancelToken
from backscroll.kernel.request import ChatRequest
from backscroll.kernel.tool import ToolSpec
from compaction.edge import EdgeModel, FakeClock
from compaction.planning import talk


async def read(
    compaction: Compaction,
    model: EdgeModel | None = None,
    state: CallState | None = None,
    conversation: str | None = "t",
    **request: Any,
) -> Call:
    """Read the inputs of one call."""
    used = model or EdgeModel()
    context = {"conversation_id": conversation} if conversation else {}
    asked = ChatRequest(tuple(talk(2)), context=context, profile=used.profile, **request)
    return await compaction._inputs.of(asked, used, state or CallState())


async def test_all_that_is_known_goes_into_the_plan() -> None:
    """Request, entry, ratio, limit, pins and the summariser's window."""
    store, facts, pins = InMemoryCompactionStore(), InMemoryModelFacts(), InMemoryPinStore()
    clock = FakeClock()
    await store.put("t", CompactionEntry(Cache(4, "aa", "s")))
    await facts.put("test||edge", ModelFact(1.2, 3, 6_000, clock.now()))
    await pins.pin("t", "m12")
    tool = ToolSpec("read", "Read.", {})
    call = await read(
        Compaction(store=store, model_facts=facts, pins=pins, clock=clock),
        EdgeModel(options=ModelOptions(max_output_tokens=900, seed=1)),
        system=("Be brief.",),
        tools=(tool,),
        notes=("note",),
        options=ModelOptions(seed=2),
    )
    given = call.given
    assert given.entry.cache == Cache(4, "aa", "s")
    assert (given.ratio, given.learned, given.pins) == (1.2, 6_000, {"m12"})
    assert given.asked.options == ModelOptions(max_output_tokens=900, seed=2)
    assert (given.asked.system, given.asked.tools) == (("Be brief.",), (tool,))
    assert given.asked.notes == ("note",)
    assert (given.summariser_window, given.withheld) == (6_000, None)
    assert call.key == "test||edge" and call.summariser is not None


async def test_the_counter_is_that_of_the_model() -> None:
    """Sizes, shapes and facts are counted alike."""
    call = await read(Compaction())
    means = call.given.means
    assert means.sizes.counter.name == "pieces"
    assert means.shaper._sizes is means.sizes


async def test_without_a_conversation_nothing_is_read() -> None:
    """And no summary may be made."""
    call = await read(Compaction(), conversation=None)
    assert call.given.entry == CompactionEntry()
    assert (call.given.withheld, call.given.pins) == ("no_summariser", frozenset())


async def test_summaries_are_withheld_for_a_reason() -> None:
    """None at all, thrashing, a prefix that slides."""
    assert (await read(Compaction(None))).given.withheld == "no_summariser"
    state, token = CallState(), CancelToken()
    assert (await read(Compaction(), state=state, cancel=token)).given.withheld is None
    state.run_of(token).thrashing = True
    thrashing = await read(Compaction(), state=state, cancel=token)
    assert thrashing.given.withheld == "thrashing"
    sliding = CallState(_misses=3)
    assert (await read(Compaction(), state=sliding)).given.withheld == "sliding_prefix"


async def test_the_breaker_pauses_for_its_time() -> None:
    """SUM10: open after three failures, closed again after the cooldown for a trial."""
    store, clock = InMemoryCompactionStore(clock=FakeClock()), FakeClock()
    compaction = Compaction(store=store, clock=clock)
    for _ in range(2):
        await store.count_failure("t")
    assert (await read(compaction)).given.withheld is None
    await store.count_failure("t")
    assert (await read(compaction)).given.withheld == "paused_after_failures"
    entry = await store.get("t")
    until = clock.now() + 300
    assert compaction._inputs.health(entry) == {"failures": 3, "open_until": until}
    clock.time += 300
    assert (await read(compaction)).given.withheld is None
    assert compaction._inputs.health(entry) == {"failures": 3}


async def test_failures_of_an_unknown_time_allow_a_trial() -> None:
    """STO2: a store that lost the time costs a call, no more."""
    store = InMemoryCompactionStore()
    await store.put("t", CompactionEntry(failures=9))
    assert (await read(Compaction(store=store))).given.withheld is None


async def test_a_goal_lowered_by_what_happened_is_part_of_it() -> None:
    """After a silent cut, and below what was refused."""
    state, token = CallState(goal_ratio=0.5), CancelToken()
    state.run_of(token).refused["test||edge"] = 1_000
    call = await read(Compaction(), state=state, cancel=token)
    assert (call.given.goal_ratio, call.given.ceiling) == (0.5, 900)


class Pins(InMemoryPinStore):
    """Pins that cannot be read."""

    def __init__(self, error: Exception) -> None:
        super().__init__()
        self.error = error

    async def pins(self, conversation_id: str) -> frozenset[str]:
        """Fail."""
        raise self.error


async def test_pins_that_cannot_be_read_are_none() -> None:
    """It is counted for the note; a lost lease comes out."""
    compaction = Compaction(pins=Pins(StoreError("gone")))
    assert (await read(compaction)).given.pins == frozenset()
    assert compaction._access.failed == 1
    with pytest.raises(LeaseLost):
        await read(Compaction(pins=Pins(LeaseLost("t", 1, 2))))
