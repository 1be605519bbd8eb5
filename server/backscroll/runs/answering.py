"""Answers to questions: each decided once, and the turn goes on when the last one is."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from backscroll.agent.answers import Approve, GiveUp, Reject, Reply, Retry
from backscroll.agui.input import ResumeEntry, RunInput
from backscroll.agui.paused import GIVEN, answered_already
from backscroll.agui.plan import Waiting, refusal_of
from backscroll.agui.questions import answer_to, problem_of
from backscroll.agui.refusal import RequestRefused
from backscroll.kernel.errors import ResumeRefused
from backscroll.kernel.ports import Ids
from backscroll.kernel.tool import ToolSet
from backscroll.kernel.turn import PauseItem
from backscroll.runs.notes import operator_entry
from backscroll.store.entry import NewEntry
from backscroll.store.keys import ThreadKey
from backscroll.store.pause_record import Decision, PauseChange, PauseRecord, Question
from backscroll.store.pauses import ThreadPauses
from backscroll.store.thread_log import ThreadLog

logger = logging.getLogger(__name__)

ATTEMPTS = 100
RETRY_MS = 2000
EXPIRED = Decision("cancelled", {"reason": "nobody answered in time"}, "expiry")

_WORDS: Mapping[type, str] = {
    Approve: "approved",
    GiveUp: "given up",
    Reject: "rejected",
    Reply: "replied",
    Retry: "retried",
}

GoOn = Callable[[ThreadKey, str], Awaitable[bool]]
"""Starts the run that goes on with a settled pause; False when that is not possible now."""


@dataclass(frozen=True, slots=True)
class Answered:
    """What came of an answer: whether it was the first, what holds, and what is still open.

    `run_id` is the run that carries the decision out, as far as there is one.
    """

    thread_id: str
    interrupt_id: str
    first: bool
    decision: Decision
    open: tuple[str, ...] = ()
    run_id: str = ""

    def to_json(self) -> dict[str, Any]:
        """Return the notice that answers an answer."""
        told: dict[str, Any] = {"status": self.decision.status}
        if self.decision.payload is not None:
            told["payload"] = self.decision.payload
        notice = {
            "type": "answered",
            "threadId": self.thread_id,
            "interruptId": self.interrupt_id,
            "first": self.first,
            "decision": told,
            "open": list(self.open),
        }
        return {**notice, "runId": self.run_id} if self.run_id else notice


async def read_record(
    pauses: ThreadPauses, thread: ThreadKey, *, gives_up: bool = False
) -> PauseRecord:
    """Return what a thread remembers of its pauses; raises RequestRefused `pause_unreadable`."""
    try:
        return await pauses.read(thread, gives_up=gives_up)
    except ResumeRefused as error:
        logger.error("the pause of %s cannot be read: %s", thread.key, error)
        message = f"What thread {thread.thread_id} waits for cannot be read: {error}."
        raise RequestRefused("pause_unreadable", message) from error


class Answering:
    """Takes answers one by one, from any worker, and resolves what nobody answered in time."""

    def __init__(self, log: ThreadLog, tools: ToolSet, ids: Ids, go_on: GoOn) -> None:
        self._log, self._tools, self._ids, self._go_on = log, tools, ids, go_on
        self.pauses = ThreadPauses(log)

    async def record(self, thread: ThreadKey, *, gives_up: bool = False) -> PauseRecord:
        """Return what a thread remembers of its pauses; raises RequestRefused."""
        return await read_record(self.pauses, thread, gives_up=gives_up)

    async def waiting(self, thread: ThreadKey, *, gives_up: bool = False) -> Waiting:
        """Return what a thread waits for, with what answers are checked with."""
        record = await self.record(thread, gives_up=gives_up)
        now = await self._log.now() / 1000 if record.pause is not None else 0.0
        return Waiting(record, now, self._tools, thread.owner)

    async def answer(
        self, thread: ThreadKey, entry: ResumeEntry, run_id: str | None = None, by: str = ""
    ) -> Answered:
        """Decide one question; raises RequestRefused, also for another decision than holds.

        When it settles the pause, the turn goes on in a run of this id, or of a new one.
        """
        request = RunInput(thread.thread_id, run_id or "", resume=(entry,))
        for _ in range(ATTEMPTS):
            waiting = await self.waiting(thread)
            question = waiting.record.questions.get(entry.interrupt_id)
            if question is None:
                raise _no_question(request, waiting.record)
            decision = Decision(entry.status, entry.payload, by or thread.owner)
            if question.decision is not None:
                if not question.decision.is_same(decision):
                    raise answered_already(request, question)
                return _again(thread, question, waiting.record)
            item = next(i for i in waiting.record.open_items if i.id == question.id)
            problem = problem_of("", item, entry, waiting)
            if problem is not None:
                raise RequestRefused.of_problems([problem], threadId=thread.thread_id)
            if await self._decide(thread, waiting.record, {item.id: decision}):
                return await self._answered(thread, item, decision, run_id)
        raise RequestRefused("unavailable", f"Thread {thread.thread_id} changes all the time.")

    async def settle_due(self) -> None:
        """Give up what nobody answered in time, and go on with what is settled."""
        now = await self._log.now()
        for thread in await self._log.indexes.paused(now, limit=100):
            try:
                await self._settle(thread, now)
            except ResumeRefused as error:
                # Looked at again when somebody has repaired it, or deleted the thread.
                logger.error("the pause of %s cannot be read: %s", thread.key, error)
                await self._log.indexes.mark_pause(thread, None)

    async def _settle(self, thread: ThreadKey, now: int) -> None:
        record = await self.pauses.read(thread)
        pause = record.pause
        if pause is None:
            await self._log.indexes.forget_pause(thread)
            return
        due = None if pause.expires_at is None else round(pause.expires_at * 1000)
        is_due = due is not None and due <= now
        if is_due and record.open_questions:
            gone = {item.id: EXPIRED for item in record.open_questions}
            if not await self._decide(thread, record, gone):
                return
            record = await self.pauses.read(thread)
        if record.pause is not None and not record.open_items:
            await self._continue(thread, self._ids.new("run"))
        else:
            await self._log.indexes.mark_pause(thread, None if is_due else due)

    async def _decide(
        self, thread: ThreadKey, record: PauseRecord, made: Mapping[str, Decision]
    ) -> bool:
        """Write decisions; False when somebody else was faster."""
        left = sum(item.id not in made for item in record.open_items)
        if all(item.id in made for item in record.open_items):
            # Noted first: should we die right after, somebody goes on with the pause.
            await self._look_again(thread)
        change = PauseChange(record.revision, made, open_items=left)
        items = {item.id: item for item in record.open_items}
        entries = [_note(items[name], each) for name, each in made.items()]
        return await self.pauses.decide(thread, change, entries) is not None

    async def _answered(
        self, thread: ThreadKey, item: PauseItem, decision: Decision, run_id: str | None
    ) -> Answered:
        record = await self.pauses.read(thread)
        is_ours = record.pause is not None and item.id in record.decisions
        still_open = tuple(i.id for i in record.open_items) if is_ours else ()
        started = ""
        if is_ours and not still_open:
            started = await self._continue(thread, run_id or self._ids.new("run"))
        return Answered(thread.thread_id, item.id, True, decision, still_open, started)

    async def _continue(self, thread: ThreadKey, run_id: str) -> str:
        """Go on with a settled pause; where that is not possible now, it is tried again soon."""
        await self._look_again(thread)
        return run_id if await self._go_on(thread, run_id) else ""

    async def _look_again(self, thread: ThreadKey) -> None:
        await self._log.indexes.mark_pause(thread, await self._log.now() + RETRY_MS)


def _again(thread: ThreadKey, question: Question, record: PauseRecord) -> Answered:
    decision = question.decision or GIVEN
    is_open = record.pause is not None and record.pause.id == question.pause_id
    still_open = tuple(item.id for item in record.open_items) if is_open else ()
    return Answered(thread.thread_id, question.id, False, decision, still_open, decision.run)


def _no_question(request: RunInput, record: PauseRecord) -> RequestRefused:
    name = request.resume[0].interrupt_id
    if record.pause is None:
        return refusal_of(request, "not_paused", "nothing of this thread waits for an answer")
    message = f"the thread has no question {name}"
    return refusal_of(request, "interrupt_unknown", message, interruptId=name)


def _note(item: PauseItem, decision: Decision) -> NewEntry:
    """Return the entry that tells operators of a decision."""
    answer = answer_to(item, ResumeEntry(item.id, decision.status, decision.payload))
    body = {
        "kind": "decided",
        "interrupt": item.id,
        "tool": item.tool,
        "status": decision.status,
        "by": decision.by,
        **({} if decision.payload is None else {"payload": decision.payload}),
    }
    text = f"{item.tool}: {_WORDS.get(type(answer), decision.status)} by {decision.by}"
    return operator_entry("note", "decided", {**body, "text": text}, "", item.id, text)
