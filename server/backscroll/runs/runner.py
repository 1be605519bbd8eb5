"""One run from its start to its one terminal event, on the worker that holds its lease."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from backscroll.agent.agent import Agent
from backscroll.agent.inputs import TurnOptions
from backscroll.agui.encode import RunEncoder
from backscroll.agui.input import RunInput
from backscroll.agui.kept_activities import write_activities
from backscroll.agui.plan import Plan
from backscroll.agui.run_end import CANCELLED, RunEnd, end_of, failed, failed_with
from backscroll.conversation.history import heal
from backscroll.kernel.errors import BackscrollError, LeaseLost, ResumeRefused, StoreError
from backscroll.kernel.message import Message
from backscroll.kernel.ports import CancelToken
from backscroll.kernel.tool import Tool, client_tool
from backscroll.kernel.turn import Pause, TurnResult
from backscroll.runs.recorder import Recorder
from backscroll.runs.run_memory import RunMemory
from backscroll.runs.sink import RunSink
from backscroll.store.pause_record import PauseChange
from backscroll.store.run_record import RunStatus
from backscroll.store.runs import RunStore
from backscroll.store.thread_log import RunLease

logger = logging.getLogger(__name__)

T = TypeVar("T")

STOPPED, TIMED_OUT, RESTARTING = "stopped", "run_timeout", "restarting"
GRACE_S = 3.0
RETRY_S = 0.2
RESERVED = frozenset({"conversation_id", "run_id", "call_id"})


@dataclass(frozen=True, slots=True)
class RunTimes:
    """How long a run, its lease, and a batch of its deltas may last."""

    lease_s: float = 15.0
    run_s: float = 600.0
    coalesce_s: float = 0.015
    coalesce_deltas: int = 16


@dataclass(frozen=True, slots=True)
class RunParts:
    """What one run is made of: what it was asked, what came of that, and who writes for it."""

    agent: Agent
    request: RunInput
    plan: Plan
    lease: RunLease
    sink: RunSink
    encoder: RunEncoder
    memory: RunMemory
    recorder: Recorder


class Runner:
    """Drives one started run; `run` returns when the run has ended or is no longer ours."""

    def __init__(self, parts: RunParts, runs: RunStore, times: RunTimes) -> None:
        self.lease, self.cancel = parts.lease, CancelToken()
        self._parts, self._runs, self._times = parts, runs, times
        self._is_lost = False
        self._is_torn = False  # the turn ended without a chance to store what it had said
        # A run that only adds to what is waited for leaves the calls alone, however it ends.
        self._is_paused = bool(parts.plan.pending or parts.plan.questions)
        self._waits: Pause | None = None

    def stop(self, run_id: str) -> None:
        """Ask the turn to stop, if it is this run that is meant."""
        if run_id == self.lease.run:
            self.cancel.cancel(STOPPED)

    async def run(self) -> None:
        """Run the turn, keep the lease, end the run. Never raises but for cancellation."""
        timer = asyncio.get_running_loop().call_later(
            self._times.run_s, self.cancel.cancel, TIMED_OUT
        )
        try:
            end = await self._turn()
            timer.cancel()
            await self._end(end)
        except LeaseLost as error:
            logger.warning("run %s: %s", self.lease.run, error)
        except StoreError as error:
            # Nobody can end it now; whoever finds the expired lease will.
            logger.error("run %s could not be ended: %s", self.lease.run, error)
        except Exception:
            logger.exception("run %s failed in a way that is ours", self.lease.run)
        finally:
            timer.cancel()

    async def _turn(self) -> RunEnd:
        """Invoke the agent while the lease is renewed and waiting deltas are written."""
        turn = asyncio.ensure_future(self._invoke())
        helpers = (
            asyncio.ensure_future(self._keep_lease(turn)),
            asyncio.ensure_future(self._parts.sink.run()),
        )
        remove = self.cancel.on_cancel(lambda: _cancel_later(turn))
        try:
            await asyncio.wait([turn])
        except asyncio.CancelledError:
            turn.cancel()
            await asyncio.wait([turn])
            raise
        finally:
            remove()
            for helper in helpers:
                helper.cancel()
            await asyncio.wait(helpers)
        if self._is_lost:
            raise LeaseLost(self.lease.thread.thread_id, self.lease.fence, -1)
        return self._end_of(turn)

    async def _invoke(self) -> TurnResult | RunEnd:
        """Run the turn; a request that leaves nothing to run ends at once."""
        parts, plan = self._parts, self._parts.plan
        for note in plan.notes:
            await parts.sink.note(note)
        if plan.action == "nothing":
            return RunEnd(
                "completed",
                pending=plan.pending,
                questions=plan.questions,
                expires_at=plan.expires_at,
            )
        options: TurnOptions = {
            "conversation_id": self.lease.thread.thread_id,
            "context": _context(parts.request),
            "system": tuple(f"{c.description}\n{c.value}" for c in parts.request.context),
            "tools": _offered(parts.request),
            "run_id": self.lease.run,
            "cancel": self.cancel,
            "on_event": parts.sink,
        }
        if plan.resumes is None:
            result = await parts.agent.invoke(plan.refused, **options)
        else:
            result = await self._resume(plan.resumes, options)
        await parts.sink.flush()
        return result

    async def _resume(self, pause: Pause, options: TurnOptions) -> TurnResult:
        """Go on with a pause; one that nobody carried out waits on."""
        plan = self._parts.plan
        waits = pause.replace(expires_at=plan.expires_at)
        if self._parts.request.tools:
            # A page that offers tools says what it has now; what it had is for who says nothing.
            pause = pause.replace(tools=())
        try:
            result = await self._parts.agent.resume(
                plan.answers, pause=pause, messages=plan.said, **options
            )
        except ResumeRefused:
            self._waits, self._is_paused = waits, True
            raise
        if result.status != "paused" and result.pause is not None:
            self._waits, self._is_paused = waits, True
        return result

    async def _keep_lease(self, turn: asyncio.Future[Any]) -> None:
        """Renew three times per lease; a stop that the bell did not bring is seen here."""
        while True:
            await asyncio.sleep(self._times.lease_s / 3)
            try:
                renewed = await self._runs.renew(self.lease, self._times.lease_s)
            except LeaseLost:
                self._is_lost = True
                turn.cancel()
                return
            except StoreError as error:
                logger.warning("run %s: the lease was not renewed: %s", self.lease.run, error)
                continue
            if renewed.stop:
                self.cancel.cancel(STOPPED)

    def _end_of(self, turn: asyncio.Future[TurnResult | RunEnd]) -> RunEnd:
        """Return how the run ends; one that was asked to stop ends cancelled, whatever failed."""
        reason = self.cancel.reason
        error = BackscrollError() if turn.cancelled() else turn.exception()
        self._is_torn = error is not None
        if isinstance(error, LeaseLost):
            raise error
        if error is not None and not turn.cancelled():
            logger.warning("run %s: the turn failed", self.lease.run, exc_info=error)
        if reason == STOPPED:
            return CANCELLED
        if error is not None:
            if reason is not None:
                return failed_with(reason)
            return failed(error if isinstance(error, BackscrollError) else BackscrollError())
        result = turn.result()
        if isinstance(result, RunEnd):
            return result
        if result.status == "paused":
            self._waits, self._is_paused = result.pause, True
        if reason is not None and result.status == "cancelled":
            return failed_with(reason)
        if result.error is not None:
            logger.warning("run %s: %s: %s", self.lease.run, result.error.code, result.error)
        return end_of(result)

    async def _end(self, end: RunEnd) -> None:
        """Write everything that closes the run, in one step with giving the lease back.

        While the store is down it is tried again, as long as the run is surely ours.
        """
        parts = self._parts
        deadline = asyncio.get_running_loop().time() + self._times.lease_s / 2
        await _insist(parts.sink.settle, deadline)
        history = await _insist(self._complete_history, deadline)
        before = len(parts.plan.history) + len(parts.plan.store)
        asked = self._asked(history)
        entries = parts.encoder.close(end, history, before)
        earlier = parts.plan.history
        kept = write_activities(parts.encoder.activities, earlier[-1].id if earlier else None)
        await _insist(
            lambda: self._runs.finish(
                self.lease,
                entries,
                status=_status(end),
                error=end.code,
                details={"calls": parts.recorder.call, "usage": parts.encoder.usage},
                pause=asked,
                activities=kept,
            ),
            deadline,
        )

    async def _complete_history(self) -> list[Message]:
        """Return the history, with what a broken turn had said, and results for its calls."""
        memory, thread_id = self._parts.memory, self.lease.thread.thread_id
        history = await memory.get(thread_id)
        if self._is_paused:
            return history
        said = self._parts.encoder.unstored(history) if self._is_torn else []
        results = heal(history, self._parts.agent.texts.interrupted)
        missing = [*results, *said, *self._unsaid(history)]
        return history + await memory.add(thread_id, missing) if missing else history

    def _asked(self, history: list[Message]) -> PauseChange | None:
        """Return the pause that the run leaves behind."""
        if self._waits is None:
            return None
        said = tuple(self._unsaid(history))
        return PauseChange(asked=self._waits, asked_by=self.lease.run, said=said)

    def _unsaid(self, history: list[Message]) -> list[Message]:
        """Return the messages that were to go behind results, if they did not get there."""
        stored = {message.id for message in history}
        return [message for message in self._parts.plan.said if message.id not in stored]


def _status(end: RunEnd) -> RunStatus:
    if end.status == "completed":
        return "waiting" if end.pending or end.questions else "ok"
    return "cancelled" if end.status == "cancelled" else "error"


def _context(request: RunInput) -> Mapping[str, Any]:
    """Return what tools and filters see of a request: its properties, untouched."""
    return {name: value for name, value in request.props.items() if name not in RESERVED}


def _offered(request: RunInput) -> list[Tool]:
    """Return the tools that the page offers for this run; a name may have to describe itself."""
    return [
        client_tool(spec.name, spec.description.strip() or spec.name, spec.schema)
        for spec in request.tools
    ]


def _cancel_later(turn: asyncio.Future[Any]) -> None:
    """End a turn that does not heed its cancel token."""
    timer = asyncio.get_running_loop().call_later(GRACE_S, turn.cancel)
    turn.add_done_callback(lambda _: timer.cancel())


async def _insist(step: Callable[[], Awaitable[T]], deadline: float) -> T:
    """Return what a step returns, doing it again while the store fails, up to a deadline."""
    while True:
        try:
            return await step()
        except LeaseLost:
            raise
        except StoreError:
            if asyncio.get_running_loop().time() > deadline:
                raise
            await asyncio.sleep(RETRY_S)
