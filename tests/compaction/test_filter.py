"""The filter as a whole: what the model receives, what operators are told, what is kept."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from backscroll.compaction.beside import LARGE_CHARS
from backscroll.compaction.extractive import ExtractiveSummariser
from backscroll.compaction.filter import Compaction
from backscroll.compaction.pieces import PieceCounter
from backscroll.compaction.store import (
    CompactionEntry,
    InMemoryCompactionStore,
    InMemoryModelFacts,
    InMemoryPinStore,
)
from backscroll.compaction.texts import CompactionTexts
from backscroll.kernel.errors import AssemblyError, StoreError
from backscroll.kernel.message import Message, Role
from backscroll.kernel.request import ChatRequest
from compaction.edge import EdgeModel, Talk, talk_with
from compaction.histories import a, rounds, t, u
from compaction.planning import prose, talk

LONG = talk(46, 60)


class Down(InMemoryCompactionStore):
    """A store that fails in what is named."""

    def __init__(self, *names: str) -> None:
        super().__init__()
        self.names = names

    async def get(self, conversation_id: str) -> CompactionEntry:
        """Fail or answer."""
        if "get" in self.names:
            raise StoreError("gone")
        return await super().get(conversation_id)

    async def swap(self, conversation_id: str, entry: CompactionEntry, generation: Any) -> bool:
        """Fail or answer."""
        if "put" in self.names:
            raise StoreError("gone")
        return await super().swap(conversation_id, entry, generation)


async def test_a_short_conversation_is_sent_as_it_is() -> None:
    """PLN6: no summariser, no decision, nothing stored."""
    store = InMemoryCompactionStore()
    found = talk_with(store=store)
    await found.ask(talk(3))
    assert found.sent == tuple(talk(3))
    assert found.watcher.decisions == [] and found.model.summaries == []
    assert await store.get("t") == CompactionEntry(generation=0)


async def test_a_long_one_is_summarised_once_and_then_read_from_the_store() -> None:
    """The second call asks nobody, and its view begins with the first."""
    found = talk_with()
    await found.ask(LONG)
    first = found.sent
    await found.ask([*LONG, u(999, "go on")])
    assert len(found.model.summaries) == 1 and found.watcher.begun == 1
    assert found.sent[:-1] == first and found.sent[-1].content == "go on"
    assert "keep going with the parts" in first[0].text
    assert [d["summary"]["source"] for d in found.watcher.decisions] == ["fresh"]


async def test_the_view_and_its_numbers_are_reported_before_each_call() -> None:
    """Claims, budget, estimate, cache, and what of the former request is reused."""
    found = talk_with()
    await found.ask(LONG)
    await found.ask([*LONG, u(999)])
    one, two = found.watcher.views
    assert one.facts["prefix"] is None
    assert two.facts["prefix"]["messages"] == len(found.model.requests[0].messages)
    assert two.facts["prefix"]["broke"] is None
    assert two.facts["cache"]["result"] == "hit"
    assert len([c for c in two.claims if c.index is not None]) == 185


async def test_nothing_made_by_us_is_part_of_the_history() -> None:
    """PLN13, compaction-13: what is synthetic has no id and is marked as such."""
    found = talk_with()
    history: list[Message] = []
    for turn in range(1, 30):
        history += talk(1, 200, start=turn)
        before = list(history)
        await found.ask(history)
        assert history == before
        for message in found.sent:
            assert message.id is not None or message.origin == "filter:compaction"
    assert all(m.role is Role.USER for m in found.sent if m.origin == "filter:compaction")


async def test_off_is_off() -> None:
    """PLN14: the whole list goes out, whatever its size."""
    found = talk_with(enabled=False)
    await found.ask(LONG)
    assert found.sent == tuple(LONG) and not found.watcher.reports


async def test_without_a_model_the_chain_says_what_is_wrong() -> None:
    """It is not for compaction to judge."""
    with pytest.raises(ValueError, match="asked"):
        await Compaction().chat(ChatRequest(()), raises)


async def raises(request: ChatRequest) -> Any:
    """Say that it was asked."""
    raise ValueError("asked")


async def test_without_a_conversation_nothing_is_kept() -> None:
    """Caps, micro and drop; no summary and no store."""
    store = Down("get", "put")
    found = talk_with(store=store)
    found.conversation = None
    await found.ask(LONG)
    assert found.model.summaries == [] and found.watcher.notes == []
    assert found.watcher.decisions[0]["reason"] == "no_summariser"
    assert sum(m.origin == "filter:compaction" for m in found.sent) == 1


@pytest.mark.parametrize("names", [("get",), ("put",), ("get", "put")])
async def test_a_store_that_is_down_costs_a_note_and_no_turn(names: tuple[str, ...]) -> None:
    """STO8, CS3: told once a run; an entry in the process takes over."""
    found = talk_with(store=Down(*names))
    await found.ask(LONG)
    await found.ask([*LONG, u(999)])
    assert found.watcher.notes == ["store_unavailable"]
    assert len(found.model.summaries) == 1
    found.next_run()
    await found.ask([*LONG, u(999), a(1_000)])
    assert found.watcher.notes == ["store_unavailable"] * 2


async def test_pins_hold_their_group_in_every_view() -> None:
    """GRP6: until they are taken off; a pin store that fails is noted."""
    pins = InMemoryPinStore()
    await pins.pin("t", "m12")
    found = talk_with(pins=pins)
    await found.ask(LONG)
    assert [m.id for m in found.sent[1:3]] == ["m11", "m12"]
    await pins.unpin("t", "m12")
    await found.ask(LONG)
    assert "m12" not in [m.id for m in found.sent]


async def test_a_pin_store_that_fails_is_noted() -> None:
    """The call goes out without pins."""

    class Broken(InMemoryPinStore):
        async def pins(self, conversation_id: str) -> frozenset[str]:
            raise StoreError("gone")

    found = talk_with(pins=Broken())
    await found.ask(talk(2))
    assert found.watcher.notes == ["store_unavailable"]


async def test_excluded_tools_and_the_newest_result_keep_their_text() -> None:
    """MIC3, MIC6: one is never cut, the other is cut with its size named."""
    long = prose(6_000)
    history = [u(1), a(2, None, "c1"), t(3, "c1", long, name="keep"), *rounds(1, long, start=5)]
    found = talk_with(exclude_tools=["keep"], window=32_000)
    await found.ask(history)
    assert found.sent[2].content == long
    assert "the middle is left out" in found.sent[4].text
    assert found.model.summaries == []


async def test_what_was_shortened_can_be_asked_for() -> None:
    """A filter that answers "already read" asks first."""
    found = talk_with()
    await found.ask(talk(14, 400))
    assert found.compaction.is_shortened("t", "m12")
    assert not found.compaction.is_shortened("t", "m142")
    assert not found.compaction.is_shortened("other", "m12")


async def test_forgetting_starts_from_the_history_again() -> None:
    """CS4: the entry is gone; the history was never touched."""
    store = InMemoryCompactionStore()
    found = talk_with(store=store)
    await found.ask(LONG)
    await found.compaction.forget("t")
    assert (await store.get("t")).cache is None
    assert not found.compaction.is_shortened("t", "m12")
    await found.ask(LONG)
    assert len(found.model.summaries) == 2


async def test_a_host_fills_in_only_what_was_left_open() -> None:
    """`bind`: own stores stay; memory and flights are shared."""
    own, hosts = InMemoryCompactionStore(), InMemoryCompactionStore()
    facts, pins = InMemoryModelFacts(), InMemoryPinStore()
    await pins.pin("t", "m12")
    model = EdgeModel()
    bound = Compaction(store=own).bind(hosts, facts, pins)
    await Talk(model, bound).ask(LONG)
    assert (await own.get("t")).cache is not None
    assert (await hosts.get("t")).cache is None
    assert "m12" in [m.id for m in model.requests[-1].messages]

    open_ = Compaction().bind(store=hosts)
    await Talk(model, open_).ask(LONG)
    assert (await hosts.get("t")).cache is not None
    await Talk(model, open_.bind()).ask(LONG)
    assert len(model.summaries) == 2


async def test_an_extractive_summary_needs_no_model() -> None:
    """SUM14: the demo's summariser; what it writes is in the material."""
    found = talk_with(summariser=ExtractiveSummariser())
    await found.ask([u(1, "We decided to use port 8080 for the gateway."), *LONG])
    assert found.model.summaries == []
    assert found.watcher.decisions[0]["summary"]["kind"] == "extractive"


async def test_no_summariser_drops_and_says_so() -> None:
    """Step 3 with a digest; never worded like a summary."""
    found = talk_with(summariser=None)
    await found.ask(LONG)
    (decision,) = found.watcher.decisions
    assert decision["reason"] == "no_summariser" and "summary" not in decision
    assert "there is no summary of them" in found.sent[0].text
    await found.ask([*LONG, u(999)])
    assert len(found.watcher.decisions) == 1


async def test_texts_may_be_replaced() -> None:
    """TXT3: every text of a view is the configuration's."""
    texts = CompactionTexts(placeholder="[{name}, {tokens}, #{ref}]")
    found = talk_with(texts=texts)
    await found.ask(talk(14, 400))
    assert found.sent[2].text.startswith("[read, ")


async def test_closing_lets_the_summariser_go() -> None:
    """The model of the call is somebody else's."""

    class Closing(EdgeModel):
        closed = False

        async def aclose(self) -> None:
            self.closed = True

    small = Closing()
    await Compaction(small).aclose()
    assert small.closed


@pytest.mark.parametrize("options", [{"mood": 1}, {"micro_ratio": 0.9, "trigger_ratio": 0.8}])
def test_wrong_settings_are_refused_at_assembly(options: dict[str, Any]) -> None:
    """BUD3: naming the setting."""
    with pytest.raises(AssemblyError) as caught:
        Compaction(**options)
    assert caught.value.where == next(iter(options))


async def test_a_large_request_is_planned_off_the_loop() -> None:
    """The loop is free while its tokens are counted and its lines chosen; a small one stays."""
    threads: dict[int, threading.Thread] = {}

    class Keeping(PieceCounter):
        def count(self, text: str) -> int:
            threads.setdefault(len(text), threading.current_thread())
            return super().count(text)

    found = talk_with(counter=Keeping())
    await found.ask([u(1, "ab " * 5)])
    await found.ask([u(1, "ab " * 5), a(2, "x y " * (LARGE_CHARS // 4 + 1))])

    assert threads[15] is threading.current_thread()
    assert threads[max(threads)] is not threading.current_thread()
