"""The runs of one worker: which may start, which are active here, and how they are stopped."""

from __future__ import annotations

import asyncio
import json
import logging
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from backscroll.agent.agent import Agent
from backscroll.agui.encode import RunEncoder, RunIds
from backscroll.agui.input import RunInput, fingerprint
from backscroll.agui.messages import Shown
from backscroll.agui.options import AgentRules, busy_of, timeline_of
from backscroll.agui.reconcile import Plan, Stored, reconcile
from backscroll.agui.refusal import RequestRefused
from backscroll.compaction.store import CompactionStore, ModelFacts
from backscroll.compaction.tokens import Sizes
from backscroll.kernel.filter import Filter
from backscroll.kernel.message import Message
from backscroll.kernel.ports import Ids, RandomIds
from backscroll.kernel.request import Note
from backscroll.runs.hub import Hub
from backscroll.runs.lost import LostRuns
from backscroll.runs.recorder import Recorder
from backscroll.runs.run_memory import RunMemory
from backscroll.runs.runner import RESTARTING, Runner, RunTimes
from backscroll.runs.sink import RunSink
from backscroll.store.chat_memory import RedisChatMemory
from backscroll.store.entry import one_line
from backscroll.store.history import StoredHistory
from backscroll.store.history_reader import HistoryReader
from backscroll.store.keys import ThreadKey
from backscroll.store.run_record import Busy, Changed, Known, RunInfo, Started, StartRequest
from backscroll.store.runs import RunStore
from backscroll.store.thread_log import ThreadLog
from backscroll.store.threads import ThreadRecord, ThreadStore

logger = logging.getLogger(__name__)

ATTEMPTS = 20
TITLE_CHARS = 80


@runtime_checkable
class Bindable(Protocol):
    """A compaction filter that takes the host's stores where it has none of its own."""

    def bind(self, *, store: CompactionStore, model_facts: ModelFacts) -> Filter:
        """Return the filter with these stores."""
        ...


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
        *,
        compaction_store: CompactionStore,
        model_facts: ModelFacts,
        ids: Ids | None = None,
    ) -> None:
        self.agent, self.agent_rules = agent, agent_rules
        self.store = RunStore(log)
        self._log, self._hub, self._rules = log, hub, rules
        self.lost = LostRuns(log, self.store, rules.times.lease_s, agent.texts)
        self._reader = HistoryReader(log.clients, log.keys)
        self._threads = ThreadStore(log)
        self._compaction_store, self._model_facts = compaction_store, model_facts
        self._ids = ids or RandomIds()
        self._active: dict[ThreadKey, Runner] = {}
        self._group: asyncio.TaskGroup | None = None
        self._draining = False
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
            await asyncio.Event().wait()

    def submit(self, owner: str, request: RunInput) -> asyncio.Future[Accepted]:
        """Accept a request in a task of the registry's own: who asked may leave meanwhile."""
        assert self._group is not None, "the registry is not running"
        answer: asyncio.Future[Accepted] = asyncio.get_running_loop().create_future()

        async def accept() -> None:
            try:
                accepted = await self.accept(owner, request)
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
        if self._draining:
            raise RequestRefused("draining", "This worker is restarting; try again at once.")
        thread = ThreadKey(owner, request.thread_id)
        try:
            return await self._accept(thread, request)
        except RequestRefused as refusal:
            await self._note_refusal(thread, request, refusal)
            raise refusal.about(threadId=request.thread_id, runId=request.run_id) from None

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
                async with asyncio.timeout(5):
                    await self._idle.wait()
            except TimeoutError:
                logger.error("%s runs did not end in time", len(self._active))

    async def _accept(self, thread: ThreadKey, request: RunInput) -> Accepted:
        mark = fingerprint(self.agent_rules.name, request)
        if (known := await self.store.run_info(thread.owner, request.run_id)) is not None:
            return self._attach(thread, request, mark, known)
        if len(self._active) >= self._rules.active_runs:
            raise RequestRefused("unavailable", "This worker has as many runs as it may have.")
        for _ in range(ATTEMPTS):
            record = await self._threads.record(thread)
            if record and record.agent and record.agent != self.agent_rules.name:
                message = f"Thread {thread.thread_id} belongs to agent {record.agent}."
                raise RequestRefused("agent_mismatch", message)
            stored = await self._reader.read(thread)
            history = tuple(found.message for found in stored.live)
            plan = reconcile(
                request,
                Stored(history, record is not None),
                self._ids,
                self.agent.texts,
                self.agent_rules,
            )
            encoder = self._encoder(request)
            answer = await self.store.start(
                self._start_request(thread, request, mark, stored, plan, encoder)
            )
            match answer:
                case Started():
                    await self._begin(answer, request, record, plan, encoder)
                    return Accepted(
                        thread,
                        request.run_id,
                        answer.first - 1,
                        behind=plan.held,
                        history=(*plan.history, *plan.store),
                    )
                case Known():
                    return self._attach(thread, request, mark, answer.run)
                case Busy():
                    await self._busy(thread, request, answer)
                case Changed():
                    continue
        raise RequestRefused("unavailable", f"Thread {thread.thread_id} changes all the time.")

    def _attach(self, thread: ThreadKey, request: RunInput, mark: str, known: RunInfo) -> Accepted:
        if known.thread != thread or known.fingerprint != mark:
            message = f"The run id {request.run_id} was used for another request."
            raise RequestRefused("run_conflict", message)
        return Accepted(thread, request.run_id, known.first - 1, attached=True)

    async def _busy(self, thread: ThreadKey, request: RunInput, busy: Busy) -> None:
        """Make room for a request where that is allowed, or refuse it."""
        if busy.expired:
            await self.lost.end_thread(thread)
            return
        head = await self._log.head(thread)
        policy = busy_of(request.options, self.agent_rules)
        if policy == "supersede":
            await self.store.stop(thread, busy.run_id)
        elif head.stop != busy.run_id:
            message = f"Thread {thread.thread_id} is busy with run {busy.run_id}."
            raise RequestRefused("thread_busy", message, {"runId": busy.run_id})
        if not await self._until_ended(thread, busy.run_id):
            message = f"Thread {thread.thread_id} is still busy with run {busy.run_id}."
            raise RequestRefused("thread_busy", message, {"runId": busy.run_id})

    async def _until_ended(self, thread: ThreadKey, run_id: str) -> bool:
        """Wait until a stopping run has ended; False when that takes too long."""
        async with self._hub.watch(thread) as feed:
            cursor = feed.head
            try:
                async with asyncio.timeout(self._rules.supersede_wait_s):
                    while (await self._log.head(thread)).run == run_id:
                        cursor = (await feed.after(cursor))[-1].seq
            except TimeoutError:
                return False
        return True

    def _encoder(self, request: RunInput) -> RunEncoder:
        ids = RunIds(request.thread_id, request.run_id, request.parent_run_id)
        shown = Shown(self.agent_rules.show_reasoning, self.agent_rules.result_chars)
        timeline = timeline_of(request.options, self.agent_rules)
        return RunEncoder(ids, self._ids, timeline=timeline, shown=shown)

    def _start_request(
        self,
        thread: ThreadKey,
        request: RunInput,
        mark: str,
        stored: StoredHistory,
        plan: Plan,
        encoder: RunEncoder,
    ) -> StartRequest:
        live = stored.live
        from_position = None
        if plan.supersede_from is not None:
            from_position = live[plan.supersede_from].position
        superseding = None if from_position is None else (*plan.history, *plan.store)
        change = stored.change(
            plan.store,
            supersede_from=from_position,
            marks=("imported",) if plan.is_import and len(plan.store) > 1 else (),
        )
        return StartRequest(
            thread=thread,
            run_id=request.run_id,
            agent=self.agent_rules.name,
            fingerprint=mark,
            entries=encoder.start(plan.echo, plan.settled, superseding),
            change=change,
            lease_s=self._rules.times.lease_s,
            title=_title(plan),
            parent_run=request.parent_run_id or "",
        )

    async def _begin(
        self,
        started: Started,
        request: RunInput,
        record: ThreadRecord | None,
        plan: Plan,
        encoder: RunEncoder,
    ) -> None:
        """Run what was started, in a task of its own."""
        assert self._group is not None, "the registry is not running"
        memory = RunMemory(
            RedisChatMemory(self._log, started.lease.thread.owner, lease=started.lease)
        )
        recorder = Recorder(
            started.lease.run,
            self._log.worker,
            Sizes(),
            calls=int(record.extra.get("call", 0)) if record else 0,
            compactions=record.counts.get("compaction", 0) if record else 0,
            summaries=json.loads(record.extra.get("summaries", "{}")) if record else None,
        )
        times = self._rules.times
        sink = RunSink(
            self._log,
            started.lease,
            encoder,
            recorder,
            memory,
            coalesce_s=times.coalesce_s,
            coalesce_deltas=times.coalesce_deltas,
        )
        runner = Runner(
            self._bound(memory),
            request,
            self.store,
            started.lease,
            sink,
            encoder,
            memory,
            recorder,
            times,
            len(plan.history) + len(plan.store),
        )
        self._active[started.lease.thread] = runner
        self._idle.clear()
        self._group.create_task(self._drive(runner, recorder, sink, (*request.notes, *plan.notes)))

    async def _drive(
        self, runner: Runner, recorder: Recorder, sink: RunSink, notes: tuple[Note, ...]
    ) -> None:
        thread = runner.lease.thread
        try:
            async with self._hub.watch(thread) as feed:
                remove = feed.on_stop(runner.stop)
                try:
                    for note in notes:
                        await sink.write(recorder.note(note))
                    await runner.run()
                finally:
                    remove()
        except Exception:
            logger.exception("run %s ended badly", runner.lease.run)
        finally:
            self._active.pop(thread, None)
            if not self._active:
                self._idle.set()

    def _bound(self, memory: RunMemory) -> Agent:
        changes: dict[str, object] = {"memory": memory}
        if isinstance(self.agent.compaction, Bindable):
            changes["compaction"] = self.agent.compaction.bind(
                store=self._compaction_store, model_facts=self._model_facts
            )
        return self.agent.replace(**changes)

    async def _note_refusal(
        self, thread: ThreadKey, request: RunInput, refusal: RequestRefused
    ) -> None:
        """Leave a note for operators, where there is a thread to leave it in."""


def _title(plan: Plan) -> str:
    first = next((m for m in plan.store if m.role.value == "user" and m.text.strip()), None)
    return one_line(first.text, TITLE_CHARS) if first else ""
