"""Asking a provider how large a request is, once in a run, and only where it could matter."""

from __future__ import annotations

import asyncio
import dataclasses
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from backscroll.compaction.inputs import Call
from backscroll.compaction.plan import plan
from backscroll.compaction.plan_value import Plan
from backscroll.compaction.reasons import REASONS
from backscroll.compaction.store import ModelFact
from backscroll.compaction.tokens import RATIO_MAX, RATIO_MIN
from backscroll.kernel.chat_terminal import model_request
from backscroll.kernel.errors import ModelError, Never
from backscroll.kernel.model import ModelRequest
from backscroll.kernel.request import ChatRequest, Note

PLAUSIBLE = 4
"""A count that differs from the estimate by more than this factor is not believed."""


@runtime_checkable
class CountsTokens(Protocol):
    """A model whose provider counts prompts."""

    async def count_tokens(self, request: ModelRequest) -> int:
        """Return how many tokens the prompt of a request takes."""
        ...


@dataclass(frozen=True, slots=True)
class Counting:
    """Puts the provider's count in the place of the estimate's ratio, for one run."""

    timeout_s: float

    async def counted(self, call: Call, planned: Plan) -> tuple[Call, Plan]:
        """Return the call and its plan with the ratio that a count gave; unchanged without one.

        Raises `cancelled` when the call is; nothing else that a provider does.
        """
        model = call.request.model
        if call.key in call.run.counted or not isinstance(model, CountsTokens):
            return call, planned
        if not could_matter(planned):
            return call, planned
        call.run.counted.add(call.key)
        counted = await self._ask(model, _as_sent(call.request, planned), call.request)
        ratio = counted_ratio(planned, counted)
        if counted is None or ratio is None:
            return call, planned
        known = call.run.facts.get(call.key, ModelFact())
        call.run.facts[call.key] = known.replace(r=ratio)
        given = dataclasses.replace(call.given, ratio=ratio)
        call = dataclasses.replace(call, given=given)
        again = plan(dataclasses.replace(given, counted=counted))
        return call, again

    async def _ask(
        self, model: CountsTokens, sent: ModelRequest, request: ChatRequest
    ) -> int | None:
        """Return the count, None if there is none in time; that is told once."""
        try:
            return await request.cancel.race(_within(model, sent, self.timeout_s))
        except Never.CONTAINED:
            raise
        except Exception as error:
            if isinstance(error, ModelError) and error.kind == "cancelled":
                raise
            why = error.kind if isinstance(error, ModelError) else type(error).__name__
            note = Note("count_unavailable", REASONS["count_unavailable"], data={"error": why})
            await request.report(note)
            return None


def could_matter(planned: Plan) -> bool:
    """Say whether the highest ratio that is believed would make compaction do something."""
    reading = planned.reading
    if reading is None:
        return False
    limit = planned.given.settings.micro_ratio * (reading.budget.hard - reading.budget.safety)
    return planned.raw_prompt * RATIO_MAX > limit


def counted_ratio(planned: Plan, counted: int | None) -> float | None:
    """Return the ratio of a count to the raw size of a plan's request; None for an odd count."""
    raw = planned.raw_prompt
    if counted is None or not raw / PLAUSIBLE <= counted <= raw * PLAUSIBLE:
        return None
    return max(RATIO_MIN, min(counted / raw, RATIO_MAX))


def _as_sent(request: ChatRequest, planned: Plan) -> ModelRequest:
    return model_request(request.replace(messages=planned.view, options=planned.options))


async def _within(model: CountsTokens, sent: ModelRequest, timeout_s: float) -> int:
    async with asyncio.timeout(timeout_s):
        return await model.count_tokens(sent)
