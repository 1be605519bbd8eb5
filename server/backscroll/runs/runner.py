"""One run from its start to its one terminal event, on the worker that holds its lease."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from backscroll.agent.agent import Agent
from backscroll.agui.encode import RunEncoder
from backscroll.agui.input import RunInput
from backscroll.agui.run_end import CANCELLED, RunEnd, end_of, failed, failed_with
from backscroll.kernel.errors import BackscrollError, LeaseLost, StoreError
from backscroll.kernel.ports import CancelToken
from backscroll.kernel.turn import TurnResult
from backscroll.runs.recorder import Recorder
from backscroll.runs.run_memory import RunMemory
from backscroll.runs.sink import RunSink
from backscroll.store.run_record import RunStatus
from backscroll.store.runs import RunStore
from backscroll.store.thread_log import RunLease

logger = logging.getLogger(__name__)

STOPPED, TIMED_OUT, RESTARTING = "stopped", "run_timeout", "restarting"
RESERVED = frozenset({"conversation_id", "run_id", "call_id"})


@dataclass(frozen=True, slots=True)
class RunTimes:
    """How long a run, its lease, and a batch of its deltas may last."""

    lease_s: float = 15.0
    run_s: float = 600.0
    coalesce_s: float = 0.015
    coalesce_deltas: int = 16


class Runner:
    """Drives one started run; `run` returns when the run has ended or is no longer ours."""

    def __init__(
        self,
        agent: Agent,
        request: RunInput,
        runs: RunStore,
        lease: RunLease,
        sink: RunSink,
        encoder: RunEncoder,
        memory: RunMemory,
        recorder: Recorder,
        times: RunTimes,
        before: int,
    ) -> None:
        self.lease, self.cancel = lease, CancelToken()
        self._agent, self._request = agent, request
        self._runs, self._sink, self._encoder = runs, sink, encoder
        self._memory, self._recorder, self._times = memory, recorder, times
        self._before = before
        self._is_lost = False

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
        lease = asyncio.ensure_future(self._keep_lease(turn))
        writer = asyncio.ensure_future(self._sink.run())
        helpers = (lease, writer)
        try:
            result = await turn
            await self._sink.flush()
        except asyncio.CancelledError:
            if self._is_lost:
                raise LeaseLost(self.lease.thread.thread_id, self.lease.fence, -1) from None
            turn.cancel()
            await asyncio.wait([turn])
            raise
        except LeaseLost:
            raise
        except BackscrollError as error:
            logger.warning("run %s: %s", self.lease.run, error)
            return failed(error)
        except Exception:
            logger.exception("run %s: the agent failed", self.lease.run)
            return failed(BackscrollError())
        finally:
            for helper in helpers:
                helper.cancel()
            await asyncio.wait(helpers)
        return self._end_of(result)

    async def _invoke(self) -> TurnResult:
        request = self._request
        return await self._agent.invoke(
            (),
            conversation_id=self.lease.thread.thread_id,
            context=_context(request),
            system=tuple(f"{c.description}\n{c.value}" for c in request.context if c.value),
            run_id=self.lease.run,
            cancel=self.cancel,
            on_event=self._sink,
        )

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

    def _end_of(self, result: TurnResult) -> RunEnd:
        reason = self.cancel.reason
        if reason == STOPPED:
            return CANCELLED
        if reason in (TIMED_OUT, RESTARTING) and result.status == "cancelled":
            return failed_with(reason)
        if result.error is not None:
            logger.warning("run %s: %s: %s", self.lease.run, result.error.code, result.error)
        return end_of(result)

    async def _end(self, end: RunEnd) -> None:
        """Write everything that closes the run, in one step with giving the lease back."""
        thread = self.lease.thread
        history = await self._memory.get(thread.thread_id)
        entries = self._encoder.close(end, history, self._before)
        status: RunStatus = "ok"
        if end.status != "completed":
            status = "cancelled" if end.status == "cancelled" else "error"
        elif end.pending:
            status = "waiting"
        await self._runs.finish(
            self.lease,
            entries,
            status=status,
            error=end.code,
            details={"calls": self._recorder.call, "usage": self._encoder.usage},
        )


def _context(request: RunInput) -> Mapping[str, Any]:
    """Return what tools and filters see of a request: its properties, untouched."""
    return {name: value for name, value in request.props.items() if name not in RESERVED}
