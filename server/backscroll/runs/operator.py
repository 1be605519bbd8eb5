"""What operators do about the compaction of a thread: planned on its history, noted in its log."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from typing import Any

from backscroll.agent.agent import Agent
from backscroll.agui.refusal import Problem, RequestRefused
from backscroll.compaction.call_record import CallPlace, make_record
from backscroll.compaction.choosing import ActionRefused
from backscroll.compaction.filter import Compaction
from backscroll.compaction.record_spans import spans_for_api
from backscroll.compaction.tokens import Sizes
from backscroll.kernel.chat_terminal import model_request
from backscroll.kernel.errors import AssemblyError
from backscroll.kernel.request import CallStart, ViewPlanned
from backscroll.runs.recorder import with_positions
from backscroll.runs.thread_compaction import ThreadCompaction
from backscroll.store.compaction_choices import RedisCompactionChoices
from backscroll.store.compaction_store import RedisModelFacts
from backscroll.store.keys import ThreadKey
from backscroll.store.thread_log import ThreadLog
from backscroll.store.threads import ThreadRecord, ThreadStore

logger = logging.getLogger(__name__)


class Operator:
    """Carries out operators' actions on any thread; each leaves an entry with who asked for it.

    `run` must be running for "compact now", which goes on when whoever asked has left.
    """

    def __init__(self, agent: Agent, log: ThreadLog) -> None:
        self._of, self._log = ThreadCompaction(agent, log), log
        self._threads = ThreadStore(log)
        self._compacting: set[ThreadKey] = set()
        self._group: asyncio.TaskGroup | None = None

    async def run(self) -> None:
        """Own the summaries that are being made, until cancelled."""
        async with asyncio.TaskGroup() as group:
            self._group = group
            await asyncio.Event().wait()

    def choices(self, thread: ThreadKey) -> RedisCompactionChoices:
        """Return pins and settings of the thread's owner."""
        return self._of.choices(thread)

    async def dry_run(
        self,
        thread: ThreadKey,
        *,
        window: int | None = None,
        settings: Mapping[str, Any] | None = None,
        forced: bool = False,
    ) -> dict[str, Any]:
        """Return what the next call would do, in the form of a call, with its decision."""
        record, compaction = await self._known(thread)
        request = await self._of.request(thread)
        pending = await self._of.pending(thread)
        try:
            planned = await compaction.dry_run(
                request, window=window, settings=settings, forced=forced, pending=pending
            )
        except (ActionRefused, AssemblyError) as error:
            raise _refused(error) from error
        assert request.model is not None
        number = int(record.extra.get("call", 0)) + 1
        sent = model_request(request.replace(messages=planned.view, options=planned.options))
        made = make_record(
            CallPlace(number, 2 if forced else 1),
            CallStart("", request.model, sent, False),
            ViewPlanned(planned.claims, planned.facts),
            await self._of.positioned(thread),
            Sizes(),
        )
        answer: dict[str, Any] = {"call": number, "attempts": [spans_for_api(made.record)]}
        if planned.decision is not None:
            decision = planned.decision.to_dict()
            answer["decision"] = with_positions(decision, await self._of.positioned(thread))
        return answer

    async def compact(self, thread: ThreadKey, focus: str, by: str) -> None:
        """Begin a summary of what is new; the log tells what came of it.

        Raises `thread_busy` while a run is active, or while another one was asked for here.
        """
        record, compaction = await self._known(thread)
        if record.run:
            message = f"Thread {thread.thread_id} is busy with run {record.run}."
            raise RequestRefused("thread_busy", message, {"run": record.run})
        pending = await self._of.pending(thread)
        if thread in self._compacting:
            message = f"Thread {thread.thread_id} is being compacted already."
            raise RequestRefused("thread_busy", message)
        assert self._group is not None, "the operator's desk is not running"
        self._compacting.add(thread)
        self._group.create_task(self._compact(thread, compaction, focus, by, pending))

    async def pin(self, thread: ThreadKey, message_id: str, by: str) -> int:
        """Pin the group of a message; returns the number of the entry, as all that follow do."""
        return await self._act(thread, lambda c, r: c.pin(r, message_id, by=by))

    async def unpin(self, thread: ThreadKey, message_id: str, by: str) -> int:
        """Take the pins off a message's group."""
        return await self._act(thread, lambda c, r: c.unpin(r, message_id, by=by))

    async def edit(self, thread: ThreadKey, text: str, sha256: str, by: str) -> int:
        """Replace the core of the summary that has this hash."""
        return await self._act(thread, lambda c, r: c.edit(r, text, sha256, by=by))

    async def undo(self, thread: ThreadKey, to: str | None, by: str) -> int:
        """Go back to an older summary, or to the whole history."""
        return await self._act(thread, lambda c, r: c.undo(r, to, by=by))

    async def forget(self, thread: ThreadKey, by: str) -> int:
        """Forget summaries and marks."""
        return await self._act(thread, lambda c, r: c.forget(thread.thread_id, by=by))

    async def reset(self, thread: ThreadKey, by: str) -> int:
        """Forget the failures of the summariser."""
        return await self._act(thread, lambda c, r: c.reset(thread.thread_id, by=by))

    async def configure(self, thread: ThreadKey, changes: Mapping[str, Any], by: str) -> int:
        """Set what holds for this thread alone."""
        return await self._act(thread, lambda c, r: c.configure(thread.thread_id, changes, by=by))

    async def clear_limit(self, provider: str, model: str, by: str) -> int:
        """Forget the limit that a model stated; returns at how many endpoints there was one."""
        facts = RedisModelFacts(self._log.clients, self._log.keys)
        found = 0
        for key in await facts.keys():
            known = await facts.get(key)
            names = key.split("|")
            if (names[0], names[-1]) == (provider, model) and known.limit is not None:
                await facts.put(key, known.replace(limit=None, limit_at=None, configured=None))
                found += 1
        if not found:
            raise RequestRefused("not_found", f"No limit was learned of {provider} {model}.")
        logger.info("%s cleared the learned limit of %s %s", by, provider, model)
        return found

    async def _act(self, thread: ThreadKey, action: Any) -> int:
        """Carry out an action and note it (Any: a function of compaction and next request)."""
        _, compaction = await self._known(thread)
        try:
            done = await action(compaction, await self._of.request(thread))
        except (ActionRefused, AssemblyError) as error:
            raise _refused(error) from error
        return await self._of.note(thread, done)

    async def _compact(
        self,
        thread: ThreadKey,
        compaction: Compaction,
        focus: str,
        by: str,
        pending: frozenset[str],
    ) -> None:
        try:
            request = await self._of.request(thread)
            done = await compaction.compact(request, focus=focus, by=by, pending=pending)
            await self._of.note(thread, done)
        except Exception:
            logger.exception("thread %s could not be compacted", thread.key)
        finally:
            self._compacting.discard(thread)

    async def _known(self, thread: ThreadKey) -> tuple[ThreadRecord, Compaction]:
        record = await self._threads.record(thread)
        if record is None:
            raise RequestRefused("not_found", f"There is no thread {thread.key}.")
        compaction = self._of.bound(thread)
        if compaction is None:
            name = self._of.agent.name
            raise RequestRefused("not_found", f"Agent {name} has no compaction.", {"agent": name})
        return record, compaction


def _refused(error: ActionRefused | AssemblyError) -> RequestRefused:
    """Return a refused action as the refusal of a request."""
    if isinstance(error, ActionRefused):
        return RequestRefused(error.code, str(error), error.details)
    return RequestRefused.of_problems([Problem(error.where, str(error))])
