"""What an operator does about the compaction of one conversation."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest
from backscroll.compaction.choosing import ActionRefused
from backscroll.compaction.filter import Compaction
from backscroll.compaction.report import text_hash
from backscroll.compaction.store import CompactionEntry, InMemoryCompactionStore
from backscroll.kernel.errors import AssemblyError, ModelError
from backscroll.kernel.message import Message, tool_result
from backscroll.kernel.request import ChatRequest
from compaction.edge import EdgeModel, Talk, overflow, talk_with
from compaction.histories import a, u
from compaction.planning import talk

LONG = talk(46, 60)
SHORT = talk(13, 190)


def next_request(found: Talk, history: Sequence[Message]) -> ChatRequest:
    """Return the request that the next call would hand to compaction."""
    context = {"conversation_id": "t"}
    model = found.model
    return ChatRequest(tuple(history), context=context, model=model, profile=model.profile)


def texts(messages: Sequence[Message]) -> list[str]:
    """Return what is said in messages."""
    return [message.text for message in messages]


async def entry_of(found: Talk) -> CompactionEntry:
    """Return what is stored of the conversation."""
    return await found.compaction._access.store.get("t")


async def test_compact_now_makes_a_summary_below_the_trigger() -> None:
    """The next call uses it; the decision names who asked, and for what."""
    found = talk_with()
    done = await found.compaction.compact(next_request(found, SHORT), focus="the parts", by="ann")
    await found.ask([*SHORT, u(999, "go on")])

    decision = done.decision
    assert (decision["trigger"], decision["action"], decision["by"]) == ("manual", "compact", "ann")
    assert decision["result"] == "done" and decision["summary"]["source"] == "fresh"
    assert "the parts" in found.model.summaries[0].messages[0].text + str(
        found.model.summaries[0].system
    )
    assert len(found.model.summaries) == 1
    assert "keep going with the parts" in found.sent[0].text


async def test_compact_now_covers_no_call_that_is_waited_for() -> None:
    """GRP5: nor anything behind it, though messages came since; a dry run says the same."""
    asked = [a(900, "I ask first.", "c9"), tool_result("c9", "read", "no result yet")]
    history = [*SHORT, *asked, *talk(20, 190, start=1_000)]
    found = talk_with()
    rehearsal = await found.compaction.dry_run(next_request(found, history), pending={"c9"})
    done = await found.compaction.compact(next_request(found, history), pending={"c9"})
    await found.ask(history)

    assert done.decision["covers"][1] <= len(SHORT)
    assert "I ask first." in texts(found.sent) and "I ask first." in texts(rehearsal.view)
    other = talk_with()
    done = await other.compaction.compact(next_request(other, history))
    assert done.decision["covers"][1] > len(SHORT) + 1


async def test_compact_now_with_the_breaker_open_makes_one_call() -> None:
    """OPR5, SUM10: it succeeds, and the failures are forgotten."""
    found = talk_with()
    await found.compaction._access.store.put("t", CompactionEntry(failures=3, opened_ms=2**50))

    done = await found.compaction.compact(next_request(found, LONG))

    assert len(found.model.summaries) == 1 and done.decision["result"] == "done"
    assert (await entry_of(found)).failures == 0 and done.decision["health"] == {"failures": 0}


async def test_compact_now_that_fails_counts_and_keeps_everything() -> None:
    """Nothing is dropped for it, and the entry says why there is no summary."""
    found = Talk(EdgeModel(notes=[ModelError("network", "no line")]), Compaction())

    done = await found.compaction.compact(next_request(found, SHORT))

    entry = await entry_of(found)
    assert (entry.failures, entry.cache) == (1, None)
    assert done.decision["reason"] == "summariser_failed"
    assert "drop" not in [stage["stage"] for stage in done.decision["stages"]]


async def test_compact_now_asks_nobody_when_nothing_is_new() -> None:
    """SUM12: the no-op rule holds for operators too, and without a summariser."""
    found = talk_with()
    await found.compaction.compact(next_request(found, SHORT))
    again = await found.compaction.compact(next_request(found, SHORT))
    empty = await found.compaction.compact(next_request(found, ()))
    none = await Compaction(None).compact(next_request(found, LONG))

    assert len(found.model.summaries) == 1
    reasons = [done.decision["reason"] for done in (again, empty, none)]
    assert reasons == ["nothing_to_summarise", "nothing_to_summarise", "no_summariser"]


async def test_of_two_who_compact_at_once_one_makes_the_summary() -> None:
    """OPR8: the other is told that somebody else was at it."""
    found = talk_with()
    request = next_request(found, LONG)

    first, second = await asyncio.gather(
        found.compaction.compact(request), found.compaction.compact(request)
    )

    assert len(found.model.summaries) == 1
    assert first.decision["summary"]["source"] == "fresh"
    assert second.decision["reason"] == "lease_wait_over"


async def test_a_pinned_group_is_in_every_later_view() -> None:
    """OPR2, GRP6: the result with its call; after unpinning it is compacted again."""
    found = talk_with()
    await found.compaction.pin(next_request(found, LONG), "m12", by="ann")
    await found.ask(LONG)
    pinned = found.sent
    done = await found.compaction.unpin(next_request(found, LONG), "m11")
    await found.ask([*LONG, u(999)])

    assert [m for m in LONG if m.id in ("m11", "m12")] == [
        m for m in pinned if m.id in ("m11", "m12")
    ]
    assert not [m for m in found.sent if m.id in ("m11", "m12")]
    assert done.decision["action"] == "unpin" and done.decision["message"] == "m11"


async def test_pins_over_their_share_are_refused_with_the_number() -> None:
    """Nothing is pinned by it; an unknown message is refused, too."""
    found = talk_with()
    large = talk(1, 6_000)
    request = next_request(found, large)

    with pytest.raises(ActionRefused) as error:
        await found.compaction.pin(request, "m12")
    with pytest.raises(ActionRefused, match="no message m99"):
        await found.compaction.pin(request, "m99")
    with pytest.raises(ActionRefused, match="not pinned"):
        await found.compaction.unpin(request, "m12")

    assert error.value.code == "pins_over_budget"
    assert error.value.details["tokens"] > error.value.details["limit"]
    assert await found.compaction._inputs.pins.pins("t") == frozenset()


async def test_an_edited_summary_is_sent_with_fresh_facts() -> None:
    """OPR3: the text is in the next request, the facts beside it; a stale hash is refused."""
    found = talk_with()
    await found.ask(LONG)
    cache = (await entry_of(found)).cache
    assert cache is not None
    sha256, request = text_hash(cache.summary), next_request(found, LONG)

    done = await found.compaction.edit(request, "Only this matters.", sha256, by="ann")
    with pytest.raises(ActionRefused) as error:
        await found.compaction.edit(request, "No, this.", sha256)
    await found.ask([*LONG, u(999)])

    assert "Only this matters." in found.sent[0].text
    assert "keep going with the parts" not in found.sent[0].text.partition("<facts>")[0]
    assert "Question 1: what about part 1?" in found.sent[0].text.partition("<facts>")[2]
    summary = done.decision["summary"]
    assert (summary["kind"], summary["previous"]) == ("edited", sha256)
    assert error.value.code == "summary_changed"
    assert error.value.details["sha256"] == summary["sha256"] and summary["sha256"] in done.blobs


async def test_undo_and_redo_ask_nobody() -> None:
    """OPR4: to the whole history, and to the summary again."""
    found = talk_with()
    await found.compaction.compact(next_request(found, SHORT))
    cache = (await entry_of(found)).cache
    assert cache is not None

    undone = await found.compaction.undo(next_request(found, SHORT), by="ann")
    await found.ask(SHORT)
    whole = found.sent
    redone = await found.compaction.undo(next_request(found, SHORT), text_hash(cache.summary))
    await found.ask(SHORT)

    assert texts(whole) == texts(SHORT)
    assert "keep going with the parts" in found.sent[0].text
    assert len(found.model.summaries) == 1
    assert undone.decision["because"] == "went back to the whole history"
    assert redone.decision["because"] == "went back to an older summary"


async def test_forget_and_reset() -> None:
    """Summaries and failures are two things; each is forgotten by itself."""
    found = talk_with()
    await found.ask(LONG)
    entry = await entry_of(found)
    await found.compaction._access.store.put("t", entry.replace(failures=3, opened_ms=1))

    forgot = await found.compaction.forget("t", by="ann")
    entry = await entry_of(found)
    reset = await found.compaction.reset("t")

    assert (entry.cache, entry.ring, entry.marks, entry.failures) == (None, (), None, 3)
    assert (await entry_of(found)).failures == 0
    assert [forgot.decision["action"], reset.decision["action"]] == ["forget", "reset"]


async def test_off_is_off_on_overflow_too() -> None:
    """OPR6, PLN14: no summariser call, no resend, the error comes out; on again it works."""
    found = Talk(EdgeModel(overflow(limit=4_000)), Compaction())
    await found.compaction.configure("t", {"enabled": False}, by="ann")

    with pytest.raises(ModelError) as error:
        await found.ask(LONG)
    await found.compaction.configure("t", {"enabled": None})
    with pytest.raises(ModelError):
        await found.ask(LONG)

    assert error.value.kind == "context_overflow"
    assert len(found.model.requests) == 3 and texts(found.model.requests[0].messages) == texts(LONG)


async def test_numbers_of_a_conversation_hold_for_its_calls() -> None:
    """The trigger of this conversation moves, that of others does not; nonsense is refused."""
    found = talk_with()
    done = await found.compaction.configure("t", {"trigger_ratio": 1.0, "keep_tool_groups": 9})
    with pytest.raises(AssemblyError):
        await found.compaction.configure("t", {"trigger_ratio": 2})
    await found.ask(LONG)

    budget = found.watcher.views[0].facts["budget"]
    assert budget["trigger"] == budget["available"]
    assert done.decision["settings"] == {"trigger_ratio": 1.0, "keep_tool_groups": 9}
    assert done.decision["because"] == "set keep_tool_groups 9, trigger_ratio 1.0"


class Raced(InMemoryCompactionStore):
    """A store to which somebody else always writes first."""

    async def swap(self, conversation_id: str, entry: CompactionEntry, generation: Any) -> bool:
        """Refuse."""
        return False


class Plain:
    """A store that knows no more than it must."""

    def __init__(self) -> None:
        self.entry = CompactionEntry(failures=3)

    async def get(self, conversation_id: str) -> CompactionEntry:
        """Return the entry."""
        return self.entry

    async def put(self, conversation_id: str, entry: CompactionEntry) -> None:
        """Replace it."""
        self.entry = entry

    async def clear(self, conversation_id: str) -> None:
        """Forget it."""


async def test_who_comes_second_is_told() -> None:
    """OPR8: the action changes nothing then; a plain store takes what comes last."""
    store = Plain()
    with pytest.raises(ActionRefused, match="Somebody else"):
        await Compaction(store=Raced()).reset("t")
    await Compaction(store=store).reset("t")

    assert store.entry.failures == 0


async def test_a_request_without_model_or_conversation_is_refused() -> None:
    """There is nothing to plan, or nothing to keep it under."""
    found = talk_with()
    request = next_request(found, LONG)

    with pytest.raises(ActionRefused, match="no model"):
        await found.compaction.dry_run(request.replace(model=None))
    with pytest.raises(ActionRefused, match="no conversation"):
        await found.compaction.undo(request.replace(context={}))
