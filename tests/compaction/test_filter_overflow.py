"""A refusal for size at the edge: one forced view, one resend, and no more."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from backscroll.compaction.store import ModelFact
from backscroll.kernel.content import FilePart, TextPart
from backscroll.kernel.errors import ModelError, Refusal
from backscroll.kernel.message import assistant, user
from backscroll.kernel.model import ModelOptions, ModelResponse
from backscroll.kernel.usage import FinishReason, Usage
from backscroll.providers.overflow import recognise
from compaction.edge import FakeClock, overflow, stream_of, talk_with
from compaction.histories import u
from compaction.planning import prose, talk

LONG = talk(16, 150)
FIXTURES = json.loads(
    (Path(__file__).parent.parent / "data" / "overflow-fixtures.json").read_text("utf-8")
)
REFUSALS = [
    item for item in FIXTURES if item["expected_class"] in ("overflow", "sum", "overflow_bytes")
]


async def test_one_forced_view_and_one_resend() -> None:
    """OVF2: the second request is smaller, and its answer is the answer."""
    found = talk_with(overflow(), "done")
    response = await found.ask(LONG)
    first, second = found.model.requests
    assert response.text == "done"
    before, after = (view.facts["estimate"]["view"] for view in found.watcher.views)
    assert after <= 0.95 * before and second.messages[-1] == first.messages[-1] == LONG[-1]
    decision = found.watcher.decisions[-1]
    assert (decision["trigger"], decision["attempt"]) == ("overflow", 2)
    assert decision["overflow"]["resend"] is True
    assert len(found.watcher.views) == 2


@pytest.mark.parametrize("fixture", REFUSALS, ids=[item["name"] for item in REFUSALS])
async def test_every_known_refusal_is_answered_once(fixture: dict[str, Any]) -> None:
    """OVF2: whoever refuses, in whatever words: one other request, and the turn has its answer."""
    refusal = recognise(fixture["http_status"], fixture.get("body"), fixture.get("stream_event"))
    found = talk_with(ModelError("context_overflow", "too long", refusal=refusal), "done")
    assert (await found.ask(LONG, options=ModelOptions(max_output_tokens=2_000))).text == "done"
    first, second = found.model.requests
    assert second != first and second.messages[-1] == LONG[-1]
    assert [d["attempt"] for d in found.watcher.decisions if "overflow" in d] == [2]


async def test_a_second_refusal_is_final() -> None:
    """OVF3: exactly two calls, no failure counted, and the thread works again later."""
    found = talk_with(overflow(), overflow(), "fine again")
    with pytest.raises(ModelError) as caught:
        await found.ask(LONG)
    assert caught.value.kind == "context_overflow"
    assert len(found.model.requests) == 2
    assert found.watcher.decisions[-1]["health"] == {"failures": 0}
    assert (await found.ask(LONG)).text == "fine again"


def over_tpm() -> ModelError:
    """Return a refusal of a request that is larger than a budget of tokens a minute."""
    refusal = Refusal("over_tpm", used=9_000, limit=4_000)
    return ModelError("rate_limit", "too large for the rate", refusal=refusal, retryable=False)


async def test_a_rate_is_shrunk_for_only_where_that_is_wanted() -> None:
    """Once, below the rate; its limit is not learned, and no later call is held to it."""
    left = talk_with(over_tpm(), "done")
    with pytest.raises(ModelError) as caught:
        await left.ask(LONG)
    assert caught.value.kind == "rate_limit" and len(left.model.requests) == 1

    found = talk_with(over_tpm(), "done", shrink_on_tpm=True)
    assert (await found.ask(LONG)).text == "done"
    decision = found.watcher.decisions[-1]
    assert decision["overflow"]["class"] == "over_tpm" and decision["attempt"] == 2
    assert decision["after"]["tokens"] <= 3_200 < decision["before"]["tokens"]
    assert not any(w["reason"] == "limit_learned" for w in decision.get("warnings", ()))
    before = len(found.watcher.decisions)
    await found.ask(LONG[:-4])
    assert found.watcher.decisions[before:] == []


async def test_a_rate_that_cannot_be_kept_to_stays_a_rate() -> None:
    """A view that cannot shrink is not sent again, and the error keeps its kind."""
    found = talk_with(over_tpm(), shrink_on_tpm=True)
    with pytest.raises(ModelError) as caught:
        await found.ask([u(1, "hi")])
    assert caught.value.kind == "rate_limit" and len(found.model.requests) == 1


async def test_a_delivered_delta_forbids_the_resend() -> None:
    """OVF4: the error comes out as it is."""
    stream = stream_of()

    async def late(request: Any) -> Any:
        stream.started = True
        return overflow()

    found = talk_with(late)
    with pytest.raises(ModelError) as caught:
        await found.ask(LONG, stream=stream)
    assert caught.value.kind == "context_overflow"
    assert len(found.model.requests) == 1 and len(found.watcher.views) == 1


async def test_off_means_that_a_refusal_comes_out() -> None:
    """PLN14: no summariser call, no resend."""
    found = talk_with(overflow(), enabled=False)
    with pytest.raises(ModelError) as caught:
        await found.ask(LONG)
    assert caught.value.kind == "context_overflow"
    assert len(found.model.requests) == 1 and found.model.summaries == []


async def test_a_stated_limit_is_learned_for_a_day() -> None:
    """OVF5: later calls meet no refusal, both numbers are shown, then the configured one again."""
    clock, limit = FakeClock(), 6_000
    sizes: list[int] = []

    def strict(request: Any) -> Any:
        tokens = sum(len(message.text) for message in request.messages) // 5
        sizes.append(tokens)
        return "fine" if tokens < limit else overflow(used=tokens, limit=limit)

    found = talk_with(strict, window=64_000, clock=clock)
    history = talk(30, 400)
    await found.ask(history)
    warning = found.watcher.decisions[-1]["warnings"][0]
    assert warning == {"reason": "limit_learned", "configured": 64_000, "observed": limit}
    assert len(sizes) == 2

    found.next_run()
    await found.ask([*history, u(999)])
    budget = found.watcher.views[-1].facts["budget"]
    assert (budget["window"], budget["learned"], budget["configured"]) == (limit, limit, 64_000)
    assert len(sizes) == 3

    clock.time += 86_400
    found.next_run()
    await found.ask([*history, u(999)])
    assert len(sizes) == 5


async def test_output_is_lowered_where_only_the_sum_is_too_large() -> None:
    """OVF6: the same view."""
    refusal = overflow(cls="sum", used=6_300, output=3_000, limit=8_192)
    found = talk_with(refusal, "done", options=ModelOptions(max_output_tokens=3_000), window=16_000)
    await found.ask(LONG)
    first, second = found.model.requests
    assert second.messages == first.messages
    assert second.options.max_output_tokens == 8_192 - 6_300 - 320
    assert found.watcher.decisions[-1]["result"] == "done"


async def test_too_many_bytes_leave_files_out_first() -> None:
    """OVF7: text unchanged."""
    image = FilePart("image/png", data="A" * 300_000)
    history = [user((TextPart("see"), image), "m1"), *talk(2), u(99)]
    found = talk_with(overflow(cls="overflow_bytes"), "done", window=32_000)
    await found.ask(history)
    assert found.sent[1:] == tuple(history[1:])
    assert "image/png left out" in found.sent[0].text


async def test_the_breaker_decides_whether_a_forced_view_has_a_summary() -> None:
    """OVF8: closed, with one; open, without."""
    history = talk(46, 60)
    closed = talk_with(overflow(), "done", window=16_000)
    await closed.ask(history)
    assert len(closed.model.summaries) >= 1 and closed.watcher.begun == 1
    assert closed.watcher.decisions[-1]["summary"]["source"] == "fresh"

    clock = FakeClock()
    opened = talk_with(overflow(), "done", window=16_000, clock=clock, failures_open=1)
    await opened.compaction._access.count_failure("t")
    await opened.ask(history)
    assert opened.model.summaries == []
    assert opened.watcher.decisions[-1]["reason"] == "paused_after_failures"


async def test_an_answer_cut_near_the_window_is_reported_and_not_repeated() -> None:
    """OVF9: the next call is smaller; the sample does not calibrate."""
    cut = ModelResponse(assistant("He"), Usage(7_900, 60), FinishReason.MAX_TOKENS)
    facts = FactsOf()
    found = talk_with(cut, "fine", model_facts=facts)
    await found.ask(LONG)
    assert found.watcher.notes == ["suspected_truncation"]
    assert len(found.model.requests) == 1 and facts.puts == 0

    await found.ask(LONG)
    first, second = (view.facts["estimate"]["view"] for view in found.watcher.views)
    available = found.watcher.views[-1].facts["budget"]["available"]
    assert second <= available / 2 < first


class FactsOf:
    """Model facts that count what is written."""

    puts = 0

    async def get(self, key: str) -> ModelFact:
        """Know nothing."""
        return ModelFact()

    async def put(self, key: str, fact: ModelFact) -> None:
        """Count."""
        self.puts += 1


async def test_an_empty_answer_to_a_full_window_is_forced_once() -> None:
    """OVF9: it counts as an overflow; elsewhere it stays what it was."""
    empty = ModelError("incomplete_stream", "nothing came", retryable=False)
    once = ModelOptions(retry=False)
    numbers = {"reserve_output": 100, "trigger_ratio": 1.0, "micro_ratio": 1.0}
    full = talk_with(empty, "done", options=once, **numbers)
    assert (await full.ask([u(1, prose(6_900)), *talk(1)])).text == "done"
    assert full.watcher.decisions[-1]["overflow"]["rule"] == "empty_answer"

    small = talk_with(empty, options=once)
    with pytest.raises(ModelError) as caught:
        await small.ask(talk(2))
    assert caught.value is empty


async def test_a_list_of_our_own_making_is_healed_once() -> None:
    """OVF10: the plain history, with `invariant` on record."""
    malformed = ModelError("invalid_request", "roles", refusal=Refusal("heal"))
    found = talk_with(malformed, "done")
    await found.ask(talk(14, 400))
    assert found.watcher.decisions[-1]["reason"] == "invariant"
    assert all("shortened" not in message.text for message in found.sent)

    untouched = talk_with(malformed)
    with pytest.raises(ModelError) as caught:
        await untouched.ask(talk(2))
    assert caught.value.kind == "invalid_request"


async def test_a_view_that_cannot_shrink_is_not_sent_again() -> None:
    """A `context_overflow` with the decision, and one request."""
    refusal = ModelError("provider", "too large", status=500, refusal=Refusal("overflow"))
    refusal.retryable = False
    found = talk_with(refusal)
    with pytest.raises(ModelError) as caught:
        await found.ask([u(1, "hi")])
    assert (caught.value.kind, caught.value.status) == ("context_overflow", 500)
    assert caught.value.cause is refusal
    assert len(found.model.requests) == 1 and len(found.watcher.views) == 1
    decision = found.watcher.decisions[-1]
    assert decision["result"] == "failed" and decision["overflow"]["resend"] is False

    plain = talk_with(overflow())
    with pytest.raises(ModelError) as caught:
        await plain.ask([u(1, "hi")])
    assert caught.value.cause is None


async def test_other_errors_are_none_of_ours() -> None:
    """They come out as they are."""
    error = ModelError("auth", "bad key")
    found = talk_with(error)
    with pytest.raises(ModelError) as caught:
        await found.ask(talk(2))
    assert caught.value is error


async def test_a_refusal_without_numbers_is_met_once_a_run() -> None:
    """What was refused is not sent again a moment later; the next run may try."""

    def strict(request: Any) -> Any:
        tokens = sum(len(message.text) for message in request.messages) // 5
        return "fine" if tokens < 3_000 else overflow()

    found = talk_with(strict, window=32_000)
    history = talk(12, 400)
    for extra in range(3):
        await found.ask([*history, *talk(extra, 20, start=90)])
    assert len(found.model.requests) == 4
    found.next_run()
    await found.ask(history)
    assert len(found.model.requests) == 6
