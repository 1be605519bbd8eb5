"""The runs of one worker: which may start, which are active here, and how they are stopped."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import Any

from backscroll.agent.agent import Agent
from backscroll.agui.input import RunInput, check_for_agent, fingerprint
from backscroll.agui.messages import Shown
from backscroll.agui.options import AgentRules
from backscroll.agui.plan import Plan, Stored
from backscroll.agui.reconcile import reconcile
from backscroll.agui.refusal import RequestRefused
from backscroll.agui.screened import screened
from backscroll.kernel.errors import StoreError
from backscroll.kernel.message import Message
from backscroll.kernel.ports import Ids, RandomIds
from backscroll.runs.ahead import AheadSummaries
from backscroll.runs.answering import Answering
from backscroll.runs.assembly import Assembly
from backscroll.runs.busy import BusyThreads
from backscroll.runs.hub import Hub
from backscroll.runs.lost import LostRuns
from backscroll.runs.refusals import Refusals
from backscroll.runs.runner import RESTARTING, Runner, RunTimes
from backscroll.store.history_reader import HistoryReader
from backscroll.store.keys import ThreadKey
from backscroll.store.run_record import Busy, Changed, Known, RunInfo, Started
from backscroll.store.runs import RunStore
from backscroll.store.thread_log import ThreadLog
from backscroll.store.threads import ThreadStore

logger = logging.getLogger(__name__)

ATTEMPTS = 20
LEAVE_S = 5.0


@dataclass(frozen=True, slots=True)
class RunRules:
    """What the host decides about runs: how long they last, how many there are, what is shown."""

    times: RunTimes = field(default_factory=RunTimes)
    active_runs: int = 200
    supersede_wait_s: float = 5.0


@dataclass(frozen=True, slots=True)
class Accepted:
    """A run to be delivered: where its entries begin, and what its sender is missing.

    `attached` when the run id was known already. `behind` is the number of leading messages of
    `history` that the sender's list holds, None when it is not behind.
    """

    thread: ThreadKey
    run_id: str
    after: int
    attached: bool = False
    behind: int | None = None
    history: tuple[Message, ...] = ()


class Registry:
    """Starts runs and owns their tasks; `run` must be running for anything to happen."""

    def __init__(
        self,
        agent: Agent,
        agent_rules: AgentRules,
        log: ThreadLog,
        hub: Hub,
        rules: RunRules,
        ids: Ids | None = None,
    ) -> None:
        self.agent, self.agent_rules = agent, agent_rules
        self.ahead = AheadSummaries(agent, log, hub, lambda: self._draining)
        self.refusals = Refusals(log)
        self.store = RunStore(log)
        self._log, self._hub, self._rules = log, hub, rules
        shown = Shown(agent_rules.show_reasoning, agent_rules.result_chars)
        self.lost = LostRuns(log, self.store, rules.times.lease_s, agent.texts, shown)
        self._busy = BusyThreads(
            log, hub, self.store, self.lost, agent_rules, rules.supersede_wait_s
        )
        self._reader = HistoryReader(log.clients, log.keys)
        self._threads = ThreadStore(log)
        self._ids = ids or RandomIds()
        self.answers = Answering(log, agent.client.tools, self._ids, self._go_on)
        self._assembly = Assembly(agent, agent_rules, log, self.store, rules.times, self._ids)
        self._active: dict[ThreadKey, Runner] = {}
        self._accepting = 0
        self._group: asyncio.TaskGroup | None = None
        self._draining = False
        self.drained = asyncio.Event()
        """Set once no run goes on here any more and none will: nothing is worth waiting for."""
        self._idle = asyncio.Event()
        self._idle.set()

    @property
    def active(self) -> int:
        """How many runs are active on this worker."""
        return len(self._active)

    @property
    def draining(self) -> bool:
        """Say whether new requests are refused because the worker is leaving."""
        return self._draining

    async def run(self) -> None:
        """Own the tasks of all runs until cancelled."""
        async with asyncio.TaskGroup() as group:
            self._group = group
            await self.ahead.run()

    def submit(self, owner: str, request: RunInput) -> asyncio.Future[Accepted]:
        """Accept a request in a task of the registry's own: who asked may leave meanwhile."""
        return self._owned(self.accept(owner, request))

    def _owned(self, work: Coroutine[Any, Any, Accepted]) -> asyncio.Future[Accepted]:
        assert self._group is not None, "the registry is not running"
        answer: asyncio.Future[Accepted] = asyncio.get_running_loop().create_future()
        # Who left does not hear of a refusal, and that is no fault.
        answer.add_done_callback(lambda done: done.cancelled() or done.exception())

        async def accept() -> None:
            try:
                accepted = await work
            except Exception as error:
                if not answer.done():
                    answer.set_exception(error)
                return
            if not answer.done():
                answer.set_result(accepted)

        self._group.create_task(accept())
        return answer

    async def accept(self, owner: str, request: RunInput) -> Accepted:
        """Start the run a request asks for, or attach to it; raises RequestRefused.

        The echo, the lease and the stored messages become true in one step.
        """
        return await self._counted(self._noted(owner, request))

    async def _noted(self, owner: str, request: RunInput) -> Accepted:
        try:
            return await self._accept(ThreadKey(owner, request.thread_id), request)
        except RequestRefused as refusal:
            refusal = refusal.for_request(request.thread_id, request.run_id)
            await self.refusals.note(owner, refusal)
            raise refusal from None

    async def _counted(self, work: Coroutine[Any, Any, Accepted]) -> Accepted:
        """Accept a request; the worker waits for that before it leaves."""
        self._accepting += 1
        self._idle.clear()
        try:
            return await work
        finally:
            self._accepting -= 1
            self._note_idle()

    async def stop(self, owner: str, run_id: str) -> bool:
        """Ask a run to stop, on whichever worker it is; False when there was nothing to stop."""
        info = await self.store.run_info(owner, run_id)
        if info is None:
            raise RequestRefused("not_found", f"There is no run {run_id}.", {"runId": run_id})
        return info.status == "running" and await self.store.stop(info.thread, run_id)

    async def drain(self, drain_s: float) -> None:
        """Refuse new requests, let active runs end, and end the rest as `restarting`."""
        self._draining = True
        try:
            async with asyncio.timeout(drain_s):
                await self._idle.wait()
        except TimeoutError:
            for runner in list(self._active.values()):
                runner.cancel.cancel(RESTARTING)
            try:
                async with asyncio.timeout(LEAVE_S):
                    await self._idle.wait()
            except TimeoutError:
                logger.error("%s runs did not end in time", len(self._active))
        finally:
            self.drained.set()

    async def _go_on(self, thread: ThreadKey, run_id: str) -> bool:
        """Start the run that goes on with a settled pause, unless somebody else has."""
        try:
            work = self._accept(thread, RunInput(thread.thread_id, run_id))
            await self._owned(self._counted(work))
        except RequestRefused as refusal:
            logger.info("thread %s does not go on now: %s", thread.key, refusal)
            return False
        return True

    async def _accept(self, thread: ThreadKey, request: RunInput) -> Accepted:
        if self._draining:
            raise RequestRefused("draining", "This worker is restarting; try again at once.")
        check_for_agent(request, self.agent_rules)
        mark = fingerprint(self.agent_rules.name, request)
        if (known := await self.store.run_info(thread.owner, request.run_id)) is not None:
            return self._attach(thread, request, mark, known)
        if len(self._active) >= self._rules.active_runs:
            raise RequestRefused("unavailable", "This worker has as many runs as it may have.")
        for _ in range(ATTEMPTS):
            accepted = await self._try(thread, request, mark)
            if accepted is not None:
                return accepted
        raise RequestRefused("unavailable", f"Thread {thread.thread_id} changes all the time.")

    async def _try(self, thread: ThreadKey, request: RunInput, mark: str) -> Accepted | None:
        """Reconcile a request with its thread as it is now and start; None if that has changed."""
        record = await self._threads.record(thread)
        if record and record.agent and record.agent != self.agent_rules.name:
            message = f"Thread {thread.thread_id} belongs to agent {record.agent}."
            raise RequestRefused("agent_mismatch", message)
        stored = await self._reader.read(thread)
        history = tuple(found.message for found in stored.live)
        waiting = await self.answers.waiting(thread, gives_up=request.options.abandon)
        known = Stored(history, record is not None, waiting)
        plan = reconcile(request, known, self._ids, self.agent.texts, self.agent_rules)
        plan = screened(plan, self.agent.screen)
        encoder = self._assembly.encoder(request)
        start = self._assembly.start(thread, request, mark, stored, plan, encoder)
        match await self.store.start(start):
            case Started() as started:
                runner = self._assembly.runner(started.lease, request, plan, record, encoder)
                self._begin(runner)
                return _accepted(started, request, plan)
            case Known(run=run):
                return self._attach(thread, request, mark, run)
            case Busy() as busy:
                await self._busy.make_room(thread, request, busy)
            case Changed():
                logger.debug("thread %s changed while it was read", thread.key)
        return None

    def _attach(self, thread: ThreadKey, request: RunInput, mark: str, known: RunInfo) -> Accepted:
        if known.thread != thread or known.fingerprint != mark:
            message = f"The run id {request.run_id} was used for another request."
            raise RequestRefused("run_conflict", message)
        return Accepted(thread, request.run_id, known.first - 1, attached=True)

    def _begin(self, runner: Runner) -> None:
        """Run what was started, in a task of its own."""
        assert self._group is not None, "the registry is not running"
        self._active[runner.lease.thread] = runner
        self._group.create_task(self._drive(runner))

    async def _drive(self, runner: Runner) -> None:
        try:
            async with AsyncExitStack() as stack:
                await self._hear_stops(runner, stack)
                await runner.run()
        except Exception:
            logger.exception("run %s ended badly", runner.lease.run)
        finally:
            self._active.pop(runner.lease.thread, None)
            self._note_idle()
            self.ahead.after_run(runner.lease.thread)

    async def _hear_stops(self, runner: Runner, stack: AsyncExitStack) -> None:
        """Let the runner hear of a stop at once, also of one that came before we listened."""
        try:
            feed = await stack.enter_async_context(self._hub.watch(runner.lease.thread))
            stack.callback(feed.on_stop(runner.stop))
            if await self.store.stop_requested(runner.lease):
                runner.stop(runner.lease.run)
        except StoreError as error:
            # A stop is then seen when the lease is renewed.
            logger.warning("run %s does not hear its bell: %s", runner.lease.run, error)

    def _note_idle(self) -> None:
        if not self._active and not self._accepting:
            self._idle.set()


def _accepted(started: Started, request: RunInput, plan: Plan) -> Accepted:
    return Accepted(
        started.lease.thread,
        request.run_id,
        started.first - 1,
        behind=plan.held,
        history=(*plan.history, *plan.store, *plan.said),
    )
