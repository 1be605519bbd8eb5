"""What a run is made of on this worker: its first entries, and everything that drives it."""

from __future__ import annotations

import json

from backscroll.agent.agent import Agent
from backscroll.agui.encode import RunEncoder, RunIds
from backscroll.agui.input import RunInput
from backscroll.agui.messages import Shown
from backscroll.agui.options import AgentRules, timeline_of
from backscroll.agui.plan import Plan
from backscroll.compaction.memo import Memo
from backscroll.compaction.tokens import Sizes
from backscroll.kernel.message import Role
from backscroll.kernel.ports import Ids
from backscroll.runs.activity import CompactionCards
from backscroll.runs.recorder import Recorder
from backscroll.runs.run_memory import RunMemory
from backscroll.runs.runner import Runner, RunParts, RunTimes
from backscroll.runs.sink import RunSink
from backscroll.store.chat_memory import RedisChatMemory
from backscroll.store.compaction_choices import RedisCompactionChoices
from backscroll.store.compaction_store import RedisCompactionStore, RedisModelFacts
from backscroll.store.entry import one_line
from backscroll.store.history import StoredHistory
from backscroll.store.keys import ThreadKey
from backscroll.store.pause_record import write_said
from backscroll.store.run_record import StartRequest
from backscroll.store.runs import RunStore
from backscroll.store.thread_log import RunLease, ThreadLog
from backscroll.store.threads import ThreadRecord

TITLE_CHARS = 80


class Assembly:
    """Puts together what one run needs; everything it makes writes with the run's lease."""

    def __init__(
        self,
        agent: Agent,
        rules: AgentRules,
        log: ThreadLog,
        runs: RunStore,
        times: RunTimes,
        ids: Ids,
    ) -> None:
        self._agent, self._rules = agent, rules
        self._log, self._runs, self._times, self._ids = log, runs, times, ids
        # What a message takes is counted once, not in every run of its thread.
        self._counts: Memo[int] = Memo()

    def encoder(self, request: RunInput) -> RunEncoder:
        """Return the encoder of a run that is about to start."""
        return RunEncoder(
            RunIds(request.thread_id, request.run_id, request.parent_run_id),
            self._ids,
            timeline=timeline_of(request.options, self._rules),
            shown=Shown(self._rules.show_reasoning, self._rules.result_chars),
        )

    def start(
        self,
        thread: ThreadKey,
        request: RunInput,
        mark: str,
        stored: StoredHistory,
        plan: Plan,
        encoder: RunEncoder,
    ) -> StartRequest:
        """Return what starts a run: its first events, and what it adds to the history."""
        from_position = None
        if plan.supersede_from is not None:
            from_position = stored.live[plan.supersede_from].position
        superseding = None if from_position is None else (*plan.history, *plan.store)
        change = stored.change(
            plan.store,
            supersede_from=from_position,
            marks=("imported",) if plan.is_import and len(plan.store) > 1 else (),
        )
        return StartRequest(
            thread=thread,
            run_id=request.run_id,
            agent=self._rules.name,
            fingerprint=mark,
            entries=encoder.start(plan.echo, plan.settled, superseding),
            change=change,
            lease_s=self._times.lease_s,
            title=_title(plan),
            parent_run=request.parent_run_id or "",
            takeover=write_said(plan.said),
            pause=plan.pause,
        )

    def runner(
        self,
        lease: RunLease,
        request: RunInput,
        plan: Plan,
        record: ThreadRecord | None,
        encoder: RunEncoder,
    ) -> Runner:
        """Return what drives a run that was started; `record` is its thread as it was before."""
        memory = RunMemory(RedisChatMemory(self._log, lease.thread.owner, lease=lease))
        recorder = self._recorder(lease, record)
        cards = CompactionCards(
            encoder,
            self._ids,
            has_text=timeline_of(request.options, self._rules) == "full",
        )
        sink = RunSink(
            self._log,
            lease,
            encoder,
            recorder,
            memory,
            cards,
            coalesce_s=self._times.coalesce_s,
            coalesce_deltas=self._times.coalesce_deltas,
        )
        agent = self._bound(lease, memory)
        parts = RunParts(agent, request, plan, lease, sink, encoder, memory, recorder)
        return Runner(parts, self._runs, self._times)

    def _recorder(self, lease: RunLease, record: ThreadRecord | None) -> Recorder:
        record = record or ThreadRecord(lease.thread)
        return Recorder(
            lease.run,
            self._log.worker,
            Sizes(counts=self._counts),
            calls=int(record.extra.get("call", 0)),
            compactions=record.counts.get("compaction", 0),
            summaries=json.loads(record.extra.get("summaries", "{}")),
        )

    def _bound(self, lease: RunLease, memory: RunMemory) -> Agent:
        # Pauses are written together with the log, by whoever ends the run.
        changes: dict[str, object] = {"memory": memory, "pauses": None}
        if self._agent.compaction is not None:
            clients, keys, owner = self._log.clients, self._log.keys, lease.thread.owner
            choices = RedisCompactionChoices(clients, keys, owner)
            changes["compaction"] = self._agent.compaction.bind(
                store=RedisCompactionStore(clients, keys, owner, lease=lease),
                model_facts=RedisModelFacts(clients, keys),
                pins=choices,
                overrides=choices,
            )
        return self._agent.replace(**changes)


def _title(plan: Plan) -> str:
    asked = (m for m in plan.store if m.role is Role.USER and m.text.strip())
    first = next(asked, None)
    return one_line(first.text, TITLE_CHARS) if first else ""
