"""What answers and refusals teach about a model."""

from __future__ import annotations

import pytest
from backscroll.compaction.call_state import CallState, RunState
from backscroll.compaction.learn import Learning, learned_limit, model_key
from backscroll.compaction.plan import Plan, force, plan
from backscroll.compaction.store import InMemoryModelFacts, ModelFact
from backscroll.kernel.errors import LeaseLost, Refusal, StoreError
from backscroll.kernel.message import assistant
from backscroll.kernel.model import ModelOptions, ModelResponse
from backscroll.kernel.request import ChatResponse
from backscroll.kernel.usage import FinishReason, Usage
from backscroll.providers.openai import OpenAIModel
from compaction.edge import EdgeModel, FakeClock, talk_with
from compaction.planning import given, talk

CLOCK = FakeClock()


def learning(facts: InMemoryModelFacts | None = None) -> Learning:
    """Return what learns, on a clock that stands still."""
    return Learning(facts or InMemoryModelFacts(), CLOCK)


def answer(tokens: int | None, finish: FinishReason | None = None) -> ChatResponse:
    """Return an answer with this count of the prompt."""
    return ChatResponse(assistant("x"), Usage(tokens, 5), finish)


def large() -> Plan:
    """Return the plan of a request above the least that calibrates."""
    return plan(given(talk(16, 150)))


def test_a_model_is_known_by_provider_endpoint_and_name() -> None:
    """Another server is another model; a name in the options counts."""
    model = OpenAIModel("m", base_url="http://127.0.0.1:1/v1", provider="generic")
    assert model_key(model, ModelOptions()) == "generic|http://127.0.0.1:1/v1|m"
    assert model_key(EdgeModel(), ModelOptions(model="other")) == "test||other"


def test_a_limit_is_believed_for_its_time() -> None:
    """OVF5: a day, by the clock given."""
    fact = ModelFact(limit=8_192, limit_at=1_000.0)
    assert learned_limit(fact, 1_000 + 86_399, 86_400) == 8_192
    assert learned_limit(fact, 1_000 + 86_400, 86_400) is None
    assert learned_limit(ModelFact(), 0, 86_400) is None


async def test_answers_calibrate_the_next_run() -> None:
    """TOK3: a mean that follows; the reported count is of the whole request."""
    facts, first = InMemoryModelFacts(), large()
    await learning(facts).answer("m", CallState(), first, answer(round(first.prompt * 1.3)))
    fact = await facts.get("m")
    assert fact.samples == 1 and 1.08 < fact.r < 1.1


async def test_what_cannot_be_used_calibrates_nothing() -> None:
    """TOK3: no usage, nought, or a small request."""
    facts, small = InMemoryModelFacts(), plan(given(talk(1)))
    for planned, response in (
        (large(), answer(None)),
        (large(), answer(0)),
        (small, answer(600)),
        (large(), ChatResponse(assistant("x"))),
    ):
        assert await learning(facts).answer("m", CallState(), planned, response) is None
    assert await facts.get("m") == ModelFact()


async def test_a_suspected_cut_lowers_the_next_goal_once() -> None:
    """OVF9: noted with its numbers; an ordinary answer lifts it."""
    state, learns = CallState(), learning()
    note = await learns.answer("m", state, large(), answer(100, FinishReason.CONTEXT_WINDOW))
    assert note is not None and note.kind == "suspected_truncation"
    assert note.data["why"] == "the answer ended with the window" and note.data["window"] == 8_000
    assert state.goal_ratio == 0.5
    assert await learns.answer("m", state, large(), answer(4_000)) is None
    assert state.goal_ratio is None


async def test_a_run_sees_what_was_known_when_it_began() -> None:
    """TOK4: one read a run; another run reads again."""
    facts, run = InMemoryModelFacts(), RunState(object())
    learns = learning(facts)
    assert (await learns.known("m", run)).r == 1.0
    await facts.put("m", ModelFact(1.5))
    assert (await learns.known("m", run)).r == 1.0
    assert (await learns.known("m", RunState(object()))).r == 1.5


async def test_a_stated_limit_is_kept_beside_the_ratio() -> None:
    """OVF5: for this run and for later ones, with what was configured."""
    facts, run = InMemoryModelFacts(), RunState(object())
    await facts.put("m", ModelFact(1.5, 7))
    forced = force(large(), Refusal("overflow", limit=4_000))
    await learning(facts).limit("m", run, forced)
    assert await facts.get("m") == ModelFact(1.5, 7, 4_000, CLOCK.now(), 8_000)
    assert run.facts["m"].limit == 4_000
    await learning(facts).limit("m", run, large())
    assert (await facts.get("m")).samples == 7


class Down:
    """Facts that cannot be read or written."""

    error: Exception = StoreError("gone")

    async def get(self, key: str) -> ModelFact:
        """Fail."""
        raise self.error

    async def put(self, key: str, fact: ModelFact) -> None:
        """Fail."""
        raise self.error


async def test_facts_that_are_down_cost_accuracy_only() -> None:
    """STO8: defaults, and no error; a lost lease comes out."""
    learns = Learning(Down(), CLOCK)
    assert await learns.known("m", RunState(object())) == ModelFact()
    first = large()
    await learns.answer("m", CallState(), first, answer(round(first.prompt * 1.3)))

    lost = Down()
    lost.error = LeaseLost("t", 1, 2)
    with pytest.raises(LeaseLost):
        await Learning(lost, CLOCK).known("m", RunState(object()))


class ReadOnly(InMemoryModelFacts):
    """Facts that can be read and not written."""

    error: Exception = StoreError("gone")

    async def put(self, key: str, fact: ModelFact) -> None:
        """Fail."""
        raise self.error


async def test_what_cannot_be_written_is_let_go() -> None:
    """But never what nobody contains."""
    first, facts = large(), ReadOnly()
    learns = Learning(facts, CLOCK)
    await learns.answer("m", CallState(), first, answer(round(first.prompt * 1.3)))
    facts.error = LeaseLost("t", 1, 2)
    with pytest.raises(LeaseLost):
        await learns.answer("m", CallState(), first, answer(round(first.prompt * 1.3)))


async def test_a_provider_that_counts_more_is_met_after_ten_calls() -> None:
    """TOK3: within 5 % of what it reports."""
    facts, history = InMemoryModelFacts(), talk(16, 150)
    found = talk_with(model_facts=facts, window=32_000)
    raw = plan(given(history)).raw

    def counting(request: object) -> object:
        return ModelResponse(assistant("x"), Usage(round(raw * 1.3), 5))

    found.model.answers = [counting]
    for _ in range(10):
        found.next_run()
        await found.ask(history)
    assert abs((await facts.get("test||edge")).r - 1.3) < 0.05 * 1.3


async def test_a_plan_that_failed_teaches_nothing() -> None:
    """There is nothing to compare the answer with."""
    broken = plan(given([object()]))  # type: ignore[list-item]  # a bug of ours
    assert await learning().answer("m", CallState(), broken, answer(5_000)) is None
    await learning().limit("m", RunState(object()), broken)
