"""What a call's plan depends on, read from stores and from what the process remembers."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from backscroll.compaction.budget import Asked
from backscroll.compaction.call_state import CallState, RunState
from backscroll.compaction.learn import Learning, learned_limit, model_key
from backscroll.compaction.overrides import OverrideStore, settings_under
from backscroll.compaction.reading import Means, PlanInput
from backscroll.compaction.reasons import Reason
from backscroll.compaction.settings import Settings
from backscroll.compaction.store import EMPTY, CompactionEntry, PinStore
from backscroll.compaction.store_access import StoreAccess
from backscroll.compaction.summariser import Summariser
from backscroll.compaction.summarisers import Summarisers
from backscroll.kernel.errors import Never
from backscroll.kernel.model import ChatModel, ModelOptions
from backscroll.kernel.ports import Clock
from backscroll.kernel.request import ChatRequest


@dataclass(frozen=True, slots=True)
class Call:
    """One call under way: its request, what its plan depends on, and where it stands."""

    request: ChatRequest
    given: PlanInput
    state: CallState
    run: RunState
    key: str
    summariser: Summariser | None
    began: float


@dataclass(frozen=True, slots=True)
class Inputs:
    """Reads what plans depend on; a store that fails costs calls, never the run."""

    access: StoreAccess
    learning: Learning
    pins: PinStore
    overrides: OverrideStore
    summarisers: Summarisers
    means: Means
    settings: Settings
    clock: Clock

    async def overridden(self, conversation_id: str | None) -> Mapping[str, Any]:
        """Return what an operator set for a conversation."""
        if conversation_id is None:
            return {}
        try:
            return await self.overrides.overrides(conversation_id)
        except Never.CONTAINED:
            raise
        except Exception:
            self.access.failed += 1
            return {}

    async def of(
        self,
        request: ChatRequest,
        model: ChatModel,
        state: CallState,
        overrides: Mapping[str, Any] | None = None,
    ) -> Call:
        """Return a call with all that its plan depends on."""
        began, run = self.clock.monotonic(), state.run_of(request.cancel)
        defaults: ModelOptions | None = getattr(model, "options", None)
        options = request.options.over(defaults)
        key = model_key(model, options)
        fact = await self.learning.known(key, run)
        learned = learned_limit(fact, self.clock.now(), self.settings.learned_for)
        conversation_id = request.conversation_id
        entry = EMPTY if conversation_id is None else await self.access.get(conversation_id)
        summariser = self.summarisers.of(model)
        given = PlanInput(
            history=request.messages,
            asked=Asked(
                request.profile,
                options,
                request.system,
                request.tools,
                request.notes,
                getattr(model, "default_output", None),
            ),
            means=self._means_for(request),
            settings=settings_under(self.settings, overrides or {}),
            entry=entry,
            ratio=fact.r,
            learned=learned,
            pins=await self._pinned(conversation_id),
            summariser_window=self.summarisers.window(summariser, learned),
            withheld=self._withheld(summariser, conversation_id, entry, state, run),
            goal_ratio=state.goal_ratio,
            ceiling=run.ceiling(key),
        )
        return Call(request, given, state, run, key, summariser, began)

    def health(self, entry: CompactionEntry) -> dict[str, Any]:
        """Return how often the summariser failed in a row, and until when it is left alone."""
        until = self._paused_until(entry)
        return {"failures": entry.failures, **({"open_until": until} if until else {})}

    def _means_for(self, request: ChatRequest) -> Means:
        sizes = self.means.sizes.under(request.profile)
        shaper, facts = self.means.shaper.under(sizes), self.means.facts.under(sizes)
        return dataclasses.replace(self.means, sizes=sizes, shaper=shaper, facts=facts)

    async def _pinned(self, conversation_id: str | None) -> frozenset[str]:
        if conversation_id is None:
            return frozenset()
        try:
            return await self.pins.pins(conversation_id)
        except Never.CONTAINED:
            raise
        except Exception:
            self.access.failed += 1
            return frozenset()

    def _withheld(
        self,
        summariser: Summariser | None,
        conversation_id: str | None,
        entry: CompactionEntry,
        state: CallState,
        run: RunState,
    ) -> Reason | None:
        """Return why this call may make no summary."""
        if summariser is None or conversation_id is None:
            return "no_summariser"
        if self._paused_until(entry) is not None:
            return "paused_after_failures"
        if run.thrashing:
            return "thrashing"
        return "sliding_prefix" if state.is_sliding else None

    def _paused_until(self, entry: CompactionEntry) -> float | None:
        """Return until when summaries are paused after failures, if they are."""
        until_ms = entry.paused_until_ms(self.settings)
        if until_ms is None or self.clock.now() * 1000 >= until_ms:
            return None
        return until_ms / 1000
