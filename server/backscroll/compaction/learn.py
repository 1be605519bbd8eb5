"""What an answer or a refusal teaches about a model, kept for all its conversations."""

from __future__ import annotations

from dataclasses import dataclass

from backscroll.compaction.call_state import CallState, RunState
from backscroll.compaction.overflow import AFTER_SILENT_CUT, suspect
from backscroll.compaction.plan_value import Plan
from backscroll.compaction.reasons import REASONS
from backscroll.compaction.store import ModelFact, ModelFacts
from backscroll.compaction.tokens import calibrate
from backscroll.kernel.errors import Never
from backscroll.kernel.model import ChatModel, ModelOptions
from backscroll.kernel.ports import Clock
from backscroll.kernel.request import ChatResponse, Note


def model_key(model: ChatModel, options: ModelOptions) -> str:
    """Return what names a model in ModelFacts: its provider, endpoint and name."""
    endpoint = getattr(model, "endpoint", "")
    base = getattr(endpoint, "base", endpoint)
    return f"{model.provider}|{base}|{options.model or model.name}"


def learned_limit(fact: ModelFact, now: float, learned_for: float) -> int | None:
    """Return the limit a provider once stated, while it is to be believed."""
    if fact.limit is None or fact.limit_at is None or now - fact.limit_at >= learned_for:
        return None
    return fact.limit


@dataclass(frozen=True, slots=True)
class Learning:
    """Reads and writes what is known of models; a store that fails costs accuracy only."""

    facts: ModelFacts
    clock: Clock

    async def known(self, key: str, run: RunState) -> ModelFact:
        """Return what is known of a model, as it was when the run began."""
        if key not in run.facts:
            run.facts[key] = await self._get(key)
        return run.facts[key]

    async def limit(self, key: str, run: RunState, planned: Plan) -> None:
        """Keep a limit that a refusal stated; it holds for the rest of the run, too."""
        reaction, reading = planned.reaction, planned.reading
        if reaction is None or reaction.limit is None or reading is None:
            return
        stated = {
            "limit": reaction.limit,
            "limit_at": self.clock.now(),
            "configured": reading.budget.configured,
        }
        run.facts[key] = run.facts.get(key, ModelFact()).replace(**stated)
        await self._put(key, (await self._get(key)).replace(**stated))

    async def answer(
        self, key: str, state: CallState, planned: Plan, response: ChatResponse
    ) -> Note | None:
        """Calibrate by an answer, or say that the prompt seems to have been cut."""
        reading = planned.reading
        if reading is None:
            return None
        budget, usage = reading.budget, response.usage
        found = suspect(budget, planned.prompt, response.finish_reason, usage)
        state.goal_ratio = AFTER_SILENT_CUT if found is not None else None
        if found is not None:
            data = {"why": found.why, **found.data}
            return Note("suspected_truncation", REASONS["suspected_truncation"], data=data)
        reported = usage.input_tokens if usage is not None else None
        if reported:
            await self._calibrate(key, planned.raw_prompt, reported)
        return None

    async def _calibrate(self, key: str, raw: int, reported: int) -> None:
        fact = await self._get(key)
        ratio = calibrate(fact.r, raw, reported)
        if ratio != fact.r:
            await self._put(key, fact.replace(r=ratio, samples=fact.samples + 1))

    async def _get(self, key: str) -> ModelFact:
        try:
            return await self.facts.get(key)
        except Never.CONTAINED:
            raise
        except Exception:
            return ModelFact()

    async def _put(self, key: str, fact: ModelFact) -> None:
        try:
            await self.facts.put(key, fact)
        except Never.CONTAINED:
            raise
        except Exception:
            return
