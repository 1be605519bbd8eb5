"""A provider that counts: asked once in a run, believed where it makes sense, missed by nobody."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from backscroll.compaction.filter import Compaction
from backscroll.compaction.tokens import Sizes
from backscroll.kernel.errors import LeaseLost, ModelError
from backscroll.kernel.model import ModelRequest
from compaction.edge import EdgeModel, Talk
from compaction.histories import u
from compaction.planning import talk

FITS, LONG = talk(26, 60), talk(46, 60)
"""A conversation that is estimated to fit its window, and one that is not."""


class Counter(EdgeModel):
    """A model whose provider counts so many times what the estimate says."""

    def __init__(self, factor: float = 1.0, **more: Any) -> None:
        super().__init__(**more)
        self.factor = factor
        self.counted: list[ModelRequest] = []
        self.was_asked = asyncio.Event()
        self.answer: Any = None

    async def count_tokens(self, request: ModelRequest) -> int:
        """Count, or do what `answer` says."""
        self.counted.append(request)
        self.was_asked.set()
        if isinstance(self.answer, BaseException):
            raise self.answer
        if isinstance(self.answer, asyncio.Event):
            await self.answer.wait()
        if self.answer is not None and not isinstance(self.answer, asyncio.Event):
            return int(self.answer)
        return int(self.factor * Sizes().messages(request.messages))


def counting(factor: float = 1.0, *, count_exactly: bool = True, **numbers: Any) -> Talk:
    """Return a conversation whose compaction asks for counts."""
    return Talk(Counter(factor), Compaction(count_exactly=count_exactly, **numbers))


def model_of(found: Talk) -> Counter:
    """Return the model of a conversation."""
    assert isinstance(found.model, Counter)
    return found.model


async def test_a_smaller_count_saves_a_summary() -> None:
    """What the estimate would have had summarised goes out whole, since it fits."""
    estimated, counted = counting(count_exactly=False), counting(0.72)

    await estimated.ask(LONG)
    await counted.ask(LONG)

    assert len(estimated.model.summaries) == 1 and model_of(estimated).counted == []
    assert counted.model.summaries == [] and counted.sent == tuple(LONG)
    assert counted.watcher.decisions == []


async def test_a_larger_count_shortens_in_time() -> None:
    """What the estimate would have sent whole, and the provider refused, is made to fit."""
    found = counting(1.9)

    await found.ask(FITS)

    (view,) = found.watcher.views
    estimate = view.facts["estimate"]
    assert estimate["counted"] == int(1.9 * Sizes().messages(FITS))
    assert estimate["ratio"] == pytest.approx(1.9, abs=0.01)
    assert len(found.model.summaries) == 1
    assert 1.9 * Sizes().messages(found.sent) <= view.facts["budget"]["hard"]


async def test_what_is_counted_is_what_would_be_sent() -> None:
    """The question holds the request as it was planned, notes and options with it."""
    found = counting()

    await found.ask(FITS, system=("Be brief.",), notes=("Hurry.",))

    (asked,) = model_of(found).counted
    assert asked == found.model.requests[0]


async def test_it_is_asked_once_in_a_run() -> None:
    """The ratio it gave stays for the run; the next run asks again."""
    found = counting(1.9)

    for history in (FITS, [*FITS, u(998)], [*FITS, u(998), u(999)]):
        await found.ask(history)
    ratios = {view.facts["estimate"]["ratio"] for view in found.watcher.views}
    found.next_run()
    await found.ask([*FITS, u(998), u(999)])

    assert len(ratios) == 1 and len(model_of(found).counted) == 2
    counts = ["counted" in view.facts["estimate"] for view in found.watcher.views]
    assert counts == [True, False, False, True]


async def test_nobody_is_asked_where_it_could_not_matter() -> None:
    """A short conversation costs no question, nor does a model whose provider does not count."""
    short, plain = counting(), Talk(EdgeModel(), Compaction(count_exactly=True))

    await short.ask(talk(3))
    await plain.ask(FITS)

    assert model_of(short).counted == [] and plain.sent == tuple(FITS)


@pytest.mark.parametrize(
    "answer",
    [ModelError("auth", "no"), RuntimeError("odd"), asyncio.Event()],
    ids=["refused", "broken", "slow"],
)
async def test_a_count_that_fails_leaves_the_estimate(answer: Any) -> None:
    """Refused, broken or too slow: the call goes on as without, told once, not asked again."""
    found, plain = counting(1.9, count_timeout=0.02), counting(count_exactly=False)
    model_of(found).answer = answer

    for history in (LONG, [*LONG, u(999)]):
        await found.ask(history)
        await plain.ask(history)

    assert found.sent == plain.sent and len(model_of(found).counted) == 1
    assert found.watcher.notes == ["count_unavailable"]
    assert "counted" not in found.watcher.views[0].facts["estimate"]


@pytest.mark.parametrize("odd", [0, 3, 10_000_000])
async def test_a_count_that_cannot_be_is_not_believed(odd: int) -> None:
    """Zero, or a number far from any estimate, changes nothing."""
    found = counting()
    model_of(found).answer = odd

    await found.ask(FITS)

    assert found.sent == tuple(FITS) and found.watcher.decisions == []
    assert found.watcher.views[0].facts["estimate"]["ratio"] == 1.0


async def test_a_cancelled_call_does_not_wait_for_its_count() -> None:
    """The wish to stop ends the question at once."""
    found = counting(count_timeout=60)
    model_of(found).answer = asyncio.Event()
    asking = asyncio.ensure_future(found.ask(FITS))
    async with asyncio.timeout(5):
        await model_of(found).was_asked.wait()

    found.run.cancel()
    with pytest.raises(ModelError, match="cancelled"):
        await asking

    assert found.model.requests == []


async def test_a_lost_lease_is_not_contained() -> None:
    """What no layer contains passes through here, too."""
    found = counting()
    model_of(found).answer = LeaseLost("t", 1, 2)

    with pytest.raises(LeaseLost):
        await found.ask(FITS)
