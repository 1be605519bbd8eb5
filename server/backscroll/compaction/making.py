"""A plan carried out: the summary made once by whoever may, and the entry stored."""

from __future__ import annotations

import asyncio
import dataclasses
from dataclasses import dataclass

from backscroll.compaction.call_state import RunState
from backscroll.compaction.decision import CompactionStarted
from backscroll.compaction.flight import Flights
from backscroll.compaction.layouts import is_valid
from backscroll.compaction.plan import Plan, plan, settle
from backscroll.compaction.reasons import Warned
from backscroll.compaction.report import spent
from backscroll.compaction.settings import Settings
from backscroll.compaction.store import CompactionEntry
from backscroll.compaction.store_access import StoreAccess, joined
from backscroll.compaction.summariser import Summariser
from backscroll.compaction.summary_run import SummaryOutcome, run_job, skipped
from backscroll.compaction.write_back import WritingBack
from backscroll.kernel.errors import ModelError
from backscroll.kernel.ports import CancelToken, Clock, Ids
from backscroll.kernel.request import ChatRequest

LEASE_MARGIN_S = 10.0
SWAPS = 3


@dataclass(frozen=True, slots=True)
class Making:
    """What carrying out needs beside the plan."""

    access: StoreAccess
    flights: Flights[Plan]
    settings: Settings
    clock: Clock
    ids: Ids
    write_back: WritingBack | None = None

    async def carry_out(
        self,
        planned: Plan,
        request: ChatRequest,
        run: RunState,
        summariser: Summariser | None,
    ) -> Plan:
        """Return the finished plan: its summary made, awaited or replaced, its entry stored.

        Raises `cancelled` when the call is; nothing else that a summariser or a store does.
        """
        conversation_id = request.conversation_id
        reading = planned.reading
        if planned.job is None or reading is None:
            return await self._written_back(
                await self.stored(planned, conversation_id), conversation_id
            )
        run.wants_summary(reading.whole, reading.budget.available)
        if run.thrashing:
            return await self.stored(settle(planned, skipped("thrashing")), conversation_id)
        if conversation_id is None or summariser is None:
            return settle(planned, skipped("no_summariser"))
        work = _Work(self, planned, request, summariser, conversation_id)
        if self.flights.is_flying(conversation_id):
            return await work.after_others()
        done = await self.flights.fly(conversation_id, work.make, request.cancel)
        if done.made is not None:
            run.summarised(reading.whole)
        return await self._written_back(done, conversation_id)

    async def _written_back(self, done: Plan, conversation_id: str | None) -> Plan:
        """Return the plan after write-back, if its summary is in use for the first time."""
        is_new = done.made is not None or done.adopted
        if self.write_back is None or conversation_id is None or not is_new:
            return done
        return await self.write_back.after(done, conversation_id)

    async def stored(
        self, planned: Plan, conversation_id: str | None, base: CompactionEntry | None = None
    ) -> Plan:
        """Store the entry if it changed; what somebody else stored meanwhile is joined with it."""
        if conversation_id is None:
            return planned
        if not planned.changed and not self.access.is_behind(conversation_id):
            return planned
        entry, generation = planned.entry, (base or planned.given.entry).generation
        for tries in range(SWAPS):
            if await self.access.swap(conversation_id, entry, generation):
                return _told(planned, "joined" if tries else "stored")
            theirs = await self.access.get(conversation_id)
            merged = _merged(planned, theirs)
            if merged is None:
                return _told(planned, "theirs")
            entry, generation = merged, theirs.generation
        lost = _told(planned, "lost")
        return dataclasses.replace(lost, warnings=(*lost.warnings, Warned("swap_lost")))


@dataclass(frozen=True, slots=True)
class _Work:
    making: Making
    planned: Plan
    request: ChatRequest
    summariser: Summariser
    conversation_id: str

    async def make(self, cancel: CancelToken) -> Plan:
        """Make the summary under the lease and store it; whoever has no lease waits."""
        making, conversation_id = self.making, self.conversation_id
        timeout_s = making.settings.summary_timeout
        deadline = making.clock.monotonic() + timeout_s
        token = making.ids.new("lease")

        async def take() -> bool:
            return await making.access.take_lease(
                conversation_id, token, timeout_s + LEASE_MARGIN_S
            )

        if not await take():
            known = self.planned.given.entry
            entry = await making.access.await_turn(conversation_id, known, deadline, take)
            if entry is not None:
                return await self._again(entry)
        try:
            return await self._leased(cancel, deadline - making.clock.monotonic())
        finally:
            await making.access.drop_lease(conversation_id, token)

    async def after_others(self) -> Plan:
        """Wait for the one in this process that makes the summary, then plan without one."""
        flights = self.making.flights
        try:
            async with asyncio.timeout(self.making.settings.summary_timeout):
                await flights.fly(self.conversation_id, self.make, self.request.cancel)
        except TimeoutError:
            pass
        except ModelError:
            if self.request.cancel.cancelled:
                raise
        return await self._again(await self.making.access.get(self.conversation_id))

    async def _leased(self, cancel: CancelToken, timeout_s: float) -> Plan:
        making, planned = self.making, await self._fresh()
        if planned.job is None:
            return await making.stored(planned, self.conversation_id)
        attempt = 1 if planned.reaction is None else 2
        await self.request.report(CompactionStarted(planned.trigger, attempt))
        given = planned.given
        outcome = await run_job(
            planned.job,
            self.summariser,
            timeout_s=timeout_s,
            cancel=cancel,
            clock=making.clock,
            count=given.means.sizes.text,
            max_shrink=making.settings.max_shrink,
        )
        if outcome.status == "cancelled":
            raise ModelError("cancelled", "the call was cancelled while its summary was made")
        settled, base = _with_cost(settle(planned, outcome), outcome), None
        if outcome.failed:
            await making.access.count_failure(self.conversation_id)
            base = await making.access.get(self.conversation_id)
            counted = {"failures": base.failures, "opened_ms": base.opened_ms}
            settled = dataclasses.replace(settled, entry=settled.entry.replace(**counted))
        return await making.stored(settled, self.conversation_id, base)

    async def _fresh(self) -> Plan:
        """Return the plan on the entry as it is now that nobody else makes a summary."""
        planned = self.planned
        entry = await self.making.access.get(self.conversation_id)
        if entry == planned.given.entry or planned.before is not None:
            return planned
        return plan(dataclasses.replace(planned.given, entry=entry))

    async def _again(self, entry: CompactionEntry) -> Plan:
        """Return the plan on what another has made, or without a summary."""
        planned = self.planned
        if planned.before is not None:
            return await self._finished(settle(planned, skipped("lease_wait_over")))
        given = dataclasses.replace(planned.given, entry=entry, withheld="lease_wait_over")
        return await self._finished(plan(given))

    async def _finished(self, planned: Plan) -> Plan:
        return await self.making.stored(planned, self.conversation_id)


def _merged(planned: Plan, theirs: CompactionEntry) -> CompactionEntry | None:
    """Return what to write over somebody else's entry; None: it may stay."""
    reading = planned.reading
    merged = joined(
        planned.entry,
        theirs,
        lambda cache: reading is not None and is_valid(reading, cache),
        planned.given.settings.ring,
    )
    made = planned.made
    if merged is not None and made is not None and not made.outcome.failed:
        return merged.replace(failures=0, opened_ms=None)
    return merged


def _with_cost(planned: Plan, outcome: SummaryOutcome) -> Plan:
    """Tell what a summary cost that was not accepted."""
    cost = spent(outcome)
    if cost is None or planned.decision is None:
        return planned
    return dataclasses.replace(planned, decision=planned.decision.replace(spent=cost))


def _told(planned: Plan, swap: str) -> Plan:
    if planned.decision is None:
        return planned
    store = {**planned.decision.store, "swap": swap}
    return dataclasses.replace(planned, decision=planned.decision.replace(store=store))
