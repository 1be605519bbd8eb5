"""One batch: the calls of one assistant message are run, or answered without running."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from types import MappingProxyType
from typing import Any

from backscroll.agent.context import apply_writes
from backscroll.agent.events import ToolFinished, ToolStarted
from backscroll.agent.reporter import Reporter
from backscroll.agent.tool_run import ToolRun, readable
from backscroll.agent.unrunnable import unrunnable
from backscroll.kernel.client import ChatClient, Job, ToolExecutor, failed
from backscroll.kernel.deadline import GRACE_S
from backscroll.kernel.errors import Never, SinkError, ToolFailure, classify_failure
from backscroll.kernel.message import Message, ToolCall
from backscroll.kernel.ports import CancelToken
from backscroll.kernel.request import Note, ToolResponse
from backscroll.kernel.tool import Slot, Tool, ToolSet
from backscroll.kernel.turn import ToolRecord


@dataclass(frozen=True, slots=True)
class Batch:
    """What came of the calls of one assistant message, in call order.

    `held` are failures that somebody is asked about first; they have no message yet. `error` is
    what broke the batch after calls had run; calls that never began are then missing.
    """

    messages: tuple[Message, ...]
    records: tuple[ToolRecord, ...]
    context: Mapping[str, Any]
    written: tuple[str, ...] = ()
    conflicts: tuple[str, ...] = ()
    held: tuple[ToolRecord, ...] = ()
    error: Exception | None = None

    @property
    def failures(self) -> tuple[ToolFailure, ...]:
        """The failures, in call order."""
        return tuple(record.failure for record in self.records if record.failure is not None)


@dataclass(frozen=True, slots=True)
class Tooling:
    """What a batch runs with, the same for every batch of a turn.

    With `holds_environment`, calls that fail because of their environment are held.
    """

    client: ChatClient
    tools: ToolSet
    executor: ToolExecutor
    slots: Mapping[str, Slot] = field(default_factory=dict)
    cancel: CancelToken = field(default_factory=CancelToken)
    reporter: Reporter | None = None
    holds_environment: bool = False


async def execute_batch(
    tooling: Tooling,
    calls: Sequence[ToolCall],
    context: Mapping[str, Any],
    *,
    message_id: str = "",
    is_cut: bool = False,
) -> Batch:
    """Run the calls of one assistant message and return what came of them, in call order.

    `is_cut` says that the reply reached its length limit. One failure never stops the others; a
    cancel ends the batch within two seconds.
    """
    client = tooling.client
    runs = [
        ToolRun(call, client.ids.new("msg"), unrunnable(call, tooling.tools, client.texts, is_cut))
        for call in calls
    ]
    return await execute_runs(tooling, runs, context, message_id)


async def execute_runs(
    tooling: Tooling, runs: Sequence[ToolRun], context: Mapping[str, Any], message_id: str
) -> Batch:
    """Bring calls to their results: those that have an answer get it, the others run."""
    work = _Work(tooling, context, message_id)
    broken: Exception | None = None
    try:
        for run in runs:
            if run.answer is not None:
                await work.finish(run, run.answer)
        await work.run([run for run in runs if run.response is None])
    except SinkError as error:
        broken = error
        work.abandon(runs)
    done = [run for run in runs if run.response is not None and not run.is_held]
    writes = [run.writes for run in done]
    folded: dict[str, Any] = dict(context)
    conflicts: tuple[str, ...] = ()
    try:
        folded, conflicts = apply_writes(context, writes, tooling.slots)
    except Exception as error:  # a reducer is the application's; what ran is kept all the same
        broken = broken or error
    return Batch(
        tuple(run.message for run in done),
        tuple(run.record for run in done),
        MappingProxyType(folded),
        tuple(dict.fromkeys(name for row in writes for name in row or ())),
        conflicts,
        tuple(run.record for run in runs if run.is_held),
        broken,
    )


@dataclass(frozen=True, slots=True)
class _Work:
    """The calls of a batch that run, and how they end."""

    tooling: Tooling
    context: Mapping[str, Any]
    message_id: str

    async def run(self, runs: Sequence[ToolRun]) -> None:
        """Give every call a result: its own, or, after a cancel, one that says what happened."""
        cancel = self.tooling.cancel
        has_ended = True
        if runs and not cancel.cancelled:
            has_ended = await self._until_cancelled(runs)
        for run in runs:
            if run.response is None:
                await self.finish(run, self._unfinished(run))
                if run.has_begun:
                    await self._tell_of_rest(run, has_ended)
            elif run.is_held and cancel.cancelled:
                run.is_held = False
                await self._tell(run)

    async def finish(self, run: ToolRun, response: ToolResponse, may_hold: bool = False) -> None:
        """Give a call its result, once; one event says so, unless the result is held."""
        if run.response is not None:
            return
        run.response = readable(response, self.tooling.client.texts)
        error = run.response.error
        is_environment = error is not None and error.kind == "environment"
        run.is_held = may_hold and is_environment and self.tooling.holds_environment
        if not run.is_held:
            await self._tell(run)

    async def _tell(self, run: ToolRun) -> None:
        reporter = self.tooling.reporter
        if reporter is not None:
            await reporter.send(
                ToolFinished(
                    **reporter.scope,
                    call_id=run.call.id,
                    message=run.message,
                    outcome=run.done.outcome,
                    failure=run.done.error,
                    duration_s=run.duration_s,
                )
            )

    def abandon(self, runs: Sequence[ToolRun]) -> None:
        """Say of calls that had begun when the batch broke that their outcome is open."""
        for run in runs:
            run.is_held = False
            if run.has_begun and run.response is None:
                run.response = self._unfinished(run)

    async def _until_cancelled(self, runs: Sequence[ToolRun]) -> bool:
        """Schedule the calls; return when they are done, or soon after a cancel.

        False says that some coroutine does not heed the cancel.
        """
        jobs = [Job(self._tool(run), partial(self._one, run)) for run in runs]
        serial = any(job.tool.info.serial for job in jobs)
        loop = asyncio.get_running_loop()
        task = loop.create_task(_waiting(self.tooling.executor, jobs, serial))
        grace = loop.create_future()

        def stop() -> None:
            task.cancel()
            loop.call_later(GRACE_S, grace.cancel)

        remove = self.tooling.cancel.on_cancel(stop)
        try:
            await asyncio.wait([task, grace], return_when=asyncio.FIRST_COMPLETED)
            if task.done() and not task.cancelled():
                await self._settle(runs, task.exception())
            return task.done()
        finally:
            remove()
            grace.cancel()
            if not task.done():
                task.cancel()
                task.add_done_callback(_forget)

    async def _settle(self, runs: Sequence[ToolRun], error: BaseException | None) -> None:
        if error is None:
            return
        if isinstance(error, (*Never.CONTAINED, SinkError)) or not isinstance(error, Exception):
            raise error
        # The executor itself failed: so does each call it has not run.
        for run in runs:
            response = failed(classify_failure(error), self.tooling.client.texts)
            await self.finish(run, response, may_hold=True)

    async def _one(self, run: ToolRun) -> ToolResponse:
        clock, reporter = self.tooling.client.clock, self.tooling.reporter
        run.has_begun = True
        began = clock.monotonic()
        if reporter is not None:
            await reporter.send(
                ToolStarted(
                    **reporter.scope,
                    call_id=run.call.id,
                    name=run.call.name,
                    args=run.asked.args or {},
                    attempt=run.start,
                )
            )
        response = await self._tries(run)
        run.duration_s = clock.monotonic() - began
        await self.finish(run, response, may_hold=True)
        return response

    async def _tries(self, run: ToolRun) -> ToolResponse:
        """Run the whole tool chain, again after a transient failure if the tool declares it."""
        retry = self._tool(run).info.retry
        while True:
            run.attempts += 1
            response = await self.tooling.client.call_tool(
                run.call.name,
                run.asked.args,
                self.context,
                tools=self.tooling.tools,
                call_id=run.call.id,
                message_id=self.message_id,
                cancel=self.tooling.cancel,
                observer=self.tooling.reporter,
            )
            is_transient = response.error is not None and response.error.kind == "transient"
            if retry is None or not is_transient or run.attempts > retry.max_retries:
                return response
            delay = retry.initial_delay_s * 2 ** (run.attempts - 1)
            await self.tooling.client.clock.sleep(delay)

    def _unfinished(self, run: ToolRun) -> ToolResponse:
        texts = self.tooling.client.texts
        template = texts.interrupted if run.has_begun else texts.not_started
        return ToolResponse(template.format(name=run.call.name), outcome="cancelled")

    async def _tell_of_rest(self, run: ToolRun, has_ended: bool) -> None:
        """Tell operators of a tool that goes on after its call was given up."""
        is_async, reporter = self._tool(run).is_async, self.tooling.reporter
        if reporter is not None and not (is_async and has_ended):
            rest = "it does not heed the cancel" if is_async else "its thread goes on"
            await reporter.report(Note("tool_abandoned", f"{run.call.name}: {rest}"))

    def _tool(self, run: ToolRun) -> Tool:
        tool = self.tooling.tools.get(run.call.name)
        assert tool is not None
        return tool


async def _waiting(executor: ToolExecutor, jobs: Sequence[Job], serial: bool) -> None:
    await executor.run(jobs, serial=serial)


def _forget(task: asyncio.Future[Any]) -> None:
    """Take note of how a task ended that nobody waits for any longer."""
    if not task.cancelled():
        task.exception()
