"""A plan carried out without a model: what the next call would do."""

from __future__ import annotations

from typing import Any

import pytest
from backscroll.compaction.extractive import ExtractiveSummariser
from backscroll.compaction.filter import Compaction
from backscroll.compaction.plan import Plan
from backscroll.compaction.store import InMemoryCompactionStore
from backscroll.kernel.message import Message
from backscroll.kernel.request import ChatRequest
from compaction.edge import EdgeModel, Talk, overflow, talk_with
from compaction.planning import talk

LONG = talk(46, 60)


async def dry_run(found: Talk, history: list[Message], **changes: Any) -> Plan:
    """Return what the next call over a history would do."""
    model = found.model
    context = {"conversation_id": "t"}
    request = ChatRequest(tuple(history), context=context, model=model, profile=model.profile)
    return await found.compaction.dry_run(request, **changes)


def shape(messages: Any) -> list[tuple[str | None, str | None]]:
    """Return ids and origins of messages."""
    return [(message.id, message.origin) for message in messages]


@pytest.mark.parametrize("turns", [2, 14, 46])
async def test_rules_without_a_model_give_the_very_next_view(turns: int) -> None:
    """OPR1: view, claims and options equal those of the call that follows; nothing is written."""
    store = InMemoryCompactionStore()
    found = Talk(EdgeModel(), Compaction(ExtractiveSummariser(), store=store))
    history = talk(turns, 300)

    planned = await dry_run(found, history)
    untouched = await store.get("t")
    await found.ask(history)

    assert untouched.cache is None and untouched.generation == 0
    assert planned.view == found.sent
    assert planned.claims == found.watcher.views[0].claims
    assert planned.facts["budget"] == found.watcher.views[0].facts["budget"]


async def test_a_summary_of_a_model_is_planned_and_not_made() -> None:
    """OPR1: the same cut and the same messages behind it, no call, and no text is pretended."""
    found = talk_with()

    planned = await dry_run(found, LONG)
    asked = list(found.model.summaries)
    await found.ask(LONG)

    decision, real = planned.decision, found.watcher.decisions[0]
    assert decision is not None and asked == [] and planned.blobs == {}
    assert decision.summary is not None and decision.summary["source"] == "planned"
    assert decision.to_dict()["cut"] == real["cut"]
    assert shape(planned.view) == shape(found.sent)


async def test_another_window_and_other_settings() -> None:
    """OPR1: what would be at a size that is not in force."""
    found = talk_with()

    wide = await dry_run(found, LONG, window=200_000)
    early = await dry_run(found, talk(10, 200), settings={"trigger_ratio": 0.71})
    off = await dry_run(found, LONG, settings={"enabled": False})

    assert wide.view == tuple(LONG) and wide.facts["budget"]["window"] == 200_000
    assert early.facts["budget"]["trigger"] < early.facts["budget"]["available"] * 0.72
    assert off.view == tuple(LONG) and off.facts["budget"]["window"] == 8_000
    assert off.decision is None and found.model.summaries == []


async def test_the_attempt_after_a_refusal() -> None:
    """OPR1: forced, it is what a refused call sends the second time."""
    found = Talk(EdgeModel(overflow(), "fine"), Compaction(ExtractiveSummariser()))
    history = talk(10, 200)

    planned = await dry_run(found, history, forced=True)
    await found.ask(history)

    assert planned.view == found.sent and len(found.model.requests) == 2
    assert planned.decision is not None and planned.decision.trigger == "overflow"


async def test_without_a_summariser_the_fallback_is_shown() -> None:
    """A breaker that is open, or no summariser: what would be dropped."""
    found = Talk(EdgeModel(), Compaction(None))

    planned = await dry_run(found, LONG)

    assert planned.decision is not None and planned.decision.reason == "no_summariser"
    assert "drop" in [stage.stage for stage in planned.decision.stages]
