"""A summary made ahead of need, when a run has ended, so that no later call waits for it."""

from __future__ import annotations

import copy
from dataclasses import dataclass

from backscroll.compaction.adopt import ready_cache
from backscroll.compaction.call_state import CallStates
from backscroll.compaction.decision import Amount, CompactionFinished, Decision, Result, Stage
from backscroll.compaction.inputs import Call, Inputs
from backscroll.compaction.ladder import Aim, Climb, ask_summary
from backscroll.compaction.making import LEASE_MARGIN_S, SWAPS, Making
from backscroll.compaction.new_cache import new_cache
from backscroll.compaction.plan import plan
from backscroll.compaction.report import Made, covered, spent, summary_facts, text_hash
from backscroll.compaction.store import Cache, CompactionEntry
from backscroll.compaction.summary_run import SummaryOutcome, run_job
from backscroll.kernel.ports import CancelToken
from backscroll.kernel.request import ChatRequest

AHEAD_FROM = 0.75
AHEAD_TIMEOUT_S = 180.0


class Ahead:
    """What the filter does between runs; `background` says whether it is wanted."""

    background: bool
    _inputs: Inputs
    _making: Making
    _states: CallStates

    async def prepare(
        self, request: ChatRequest, cancel: CancelToken | None = None
    ) -> CompactionFinished | None:
        """Make the summary that the next calls will need, and keep it as ready.

        Returns what is to be logged, None where nothing was needed or the wish to stop came first.
        `request` is the one that the next call would make.
        """
        wanted = await self._wanted(request)
        if wanted is None or wanted.state.job is None:
            return None
        making, conversation_id = self._making, wanted.conversation_id
        token = making.ids.new("lease")
        if not await making.access.take_lease(
            conversation_id, token, AHEAD_TIMEOUT_S + LEASE_MARGIN_S
        ):
            return None
        try:
            return await self._made(wanted, cancel or CancelToken())
        finally:
            await making.access.drop_lease(conversation_id, token)

    async def _wanted(self, request: ChatRequest) -> _Wanted | None:
        """Return the summary that is wanted ahead of need, if one is."""
        conversation_id = request.conversation_id
        if conversation_id is None or request.model is None:
            return None
        overrides = await self._inputs.overridden(conversation_id)
        state = copy.copy(self._states.of(conversation_id))
        call = await self._inputs.of(request, request.model, state, overrides)
        first = plan(call.given)
        if first.reading is None or first.state is None or call.given.withheld is not None:
            return None
        view, reading = first.state.view, first.reading
        if view.tokens <= AHEAD_FROM * reading.budget.available:
            return None
        if ready_cache(reading, call.given.entry, view.layout.prefix_n) is not None:
            return None
        aim = Aim(reading.limits.trigger, reading.limits.drop_to)
        return _Wanted(call, conversation_id, ask_summary(reading, call.given.entry, aim))

    async def _made(self, wanted: _Wanted, cancel: CancelToken) -> CompactionFinished | None:
        making, call, job = self._making, wanted.call, wanted.state.job
        assert job is not None and call.summariser is not None
        outcome = await run_job(
            job,
            call.summariser,
            timeout_s=AHEAD_TIMEOUT_S,
            cancel=cancel,
            clock=making.clock,
            count=call.given.means.sizes.text,
            max_shrink=making.settings.max_shrink,
        )
        if outcome.status == "cancelled":
            return None
        if outcome.failed:
            await making.access.count_failure(wanted.conversation_id)
        if not outcome.core:
            decision = _decision(wanted, outcome).replace(spent=spent(outcome))
            return CompactionFinished(decision.to_dict())
        cache, facts = new_cache(wanted.state.reading, job, outcome, ready=True)
        await self._keep(wanted.conversation_id, cache, outcome)
        former = wanted.state.choice.layout.cache
        previous = former.prefix_hash if former is not None else None
        made = Made(outcome, former is not None, outcome.cut != job.cut, facts, previous)
        told, blobs = summary_facts(made)
        data = cache.summary.encode("utf-8", "surrogatepass")
        name = text_hash(cache.summary)
        decision = _decision(wanted, outcome).replace(
            covers=covered(wanted.state.reading, outcome.cut),
            summary={"sha256": name, "chars": len(cache.summary), **told},
        )
        return CompactionFinished(decision.to_dict(), {**blobs, name: data})

    async def _keep(self, conversation_id: str, cache: Cache, outcome: SummaryOutcome) -> None:
        """Put the ready cache into the ring, whatever somebody else writes meanwhile."""
        access = self._making.access
        for _ in range(SWAPS):
            entry = await access.get(conversation_id)
            kept = _with_ready(entry, cache)
            if not outcome.failed:
                kept = kept.replace(failures=0, opened_ms=None)
            if await access.swap(conversation_id, kept, entry.generation):
                return


@dataclass(frozen=True, slots=True)
class _Wanted:
    call: Call
    conversation_id: str
    state: Climb


def _with_ready(entry: CompactionEntry, cache: Cache) -> CompactionEntry:
    """Return the entry with this one ready cache beside the older ones."""
    return entry.replace(ring=(cache, *(old for old in entry.ring if not old.ready)))


def _decision(wanted: _Wanted, outcome: SummaryOutcome) -> Decision:
    reading, view, job = wanted.state.reading, wanted.state.view, wanted.state.job
    assert job is not None
    above = reading.budget.overhead.total
    amount = Amount(len(reading.history), reading.whole + above)
    result: Result = "done" if outcome.core else "failed"
    stage = Stage(
        "summary",
        "done" if outcome.core else "failed",
        outcome.why or "ahead of need",
        max(outcome.cut - job.start, 0),
        ms=outcome.ms,
    )
    because = f"{view.tokens} > {AHEAD_FROM:g} × {reading.budget.available}"
    return Decision(
        "background", because, (stage,), amount, amount,
        result=result, reason=outcome.reason, ms=outcome.ms,
    )  # fmt: skip
