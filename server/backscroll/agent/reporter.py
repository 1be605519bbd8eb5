"""The reporter of one turn: it puts the turn's name on every event and sends them in order."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any, TypedDict, cast

from backscroll.agent.events import (
    AgentEvent,
    CallFinished,
    CallRetried,
    CallStarted,
    EventSink,
    ReasoningDelta,
    Reported,
    TextDelta,
    ToolCallArgs,
    ToolCallClosed,
    ToolCallOpened,
)
from backscroll.kernel.errors import LeaseLost, ModelError, SinkError
from backscroll.kernel.model import CallArgs, CallClosed, CallOpened, Delta, Reasoning, Text
from backscroll.kernel.request import CallEnd, CallRetry, CallStart
from backscroll.kernel.usage import CallUsage

logger = logging.getLogger(__name__)


class Scope(TypedDict):
    """What every event of a turn carries."""

    agent: str
    conversation_id: str
    turn_id: str
    run_id: str | None


class Reporter:
    """Sends a turn's events to its sink, one at a time; as an observer it hears of model calls.

    A sink that raises makes this and every later sender raise `sink_failed`; only `lease_lost`
    passes as it is. Without a sink nothing is sent and everything else works the same.
    """

    def __init__(self, sink: EventSink | None, scope: Scope) -> None:
        self.scope = scope
        self._sink = sink
        self._turn_to_speak = asyncio.Lock()
        self._broken: SinkError | None = None
        self._attempts: dict[str, int] = {}
        self._usage: list[CallUsage] = []
        self._open: set[str] = set()

    @property
    def usage(self) -> tuple[CallUsage, ...]:
        """What each call of the turn used, in order, failed ones included."""
        return tuple(self._usage)

    async def send(self, event: AgentEvent) -> None:
        """Send one event whole: who is cancelled meanwhile learns of it when it was sent."""
        if self._sink is None:
            return
        task = asyncio.ensure_future(self._deliver(event))
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError:
            await _finish(task)
            raise

    async def tell(self, event: AgentEvent) -> None:
        """Send an event; a sink that fails is only logged, since the turn's outcome stands."""
        try:
            await self.send(event)
        except SinkError:
            logger.exception("%s could not be recorded", type(event).__name__)

    async def end(self, event: AgentEvent) -> None:
        """Send the last event, also to a sink that has failed before."""
        self._broken = None
        await self.tell(event)

    async def _deliver(self, event: AgentEvent) -> None:
        async with self._turn_to_speak:
            if self._broken is not None:
                raise self._broken
            try:
                await cast(EventSink, self._sink)(event)
            except LeaseLost:
                raise
            except Exception as error:
                reason = str(error) or type(error).__name__
                self._broken = SinkError(f"the event sink failed: {reason}")
                raise self._broken from error

    async def started(self, start: CallStart) -> None:
        """A request is about to leave."""
        attempt = self._attempts.get(start.message_id, 0) + 1
        self._attempts[start.message_id] = attempt
        self._open.add(start.message_id)
        self._usage.append(CallUsage(start.model.provider, start.model.name, None))
        await self.send(
            CallStarted(
                **self.scope,
                message_id=start.message_id,
                attempt=attempt,
                request=start.request,
                model=start.model,
                stream=start.stream,
            )
        )

    async def retried(self, retry: CallRetry) -> None:
        """A request will be sent again."""
        await self.send(
            CallRetried(
                **self.scope,
                message_id=retry.message_id,
                try_number=retry.try_number,
                delay_s=retry.delay_s,
                error=retry.error,
            )
        )

    async def finished(self, end: CallEnd) -> None:
        """A call is over."""
        self._open.discard(end.message_id)
        last = self._usage[-1]
        self._usage[-1] = CallUsage(last.provider, last.model, end.usage)
        await self.send(
            CallFinished(
                **self.scope,
                message_id=end.message_id,
                attempt=self._attempts.get(end.message_id, 1),
                duration_s=end.duration_s,
                usage=end.usage,
                finish_reason=end.finish_reason,
                error=end.error,
                message=end.message,
            )
        )

    async def broke_off(self, message_id: str, error: Exception) -> None:
        """Finish a call whose model raised something that no model should raise."""
        if message_id in self._open:
            reason = f"the model raised {type(error).__name__}"
            await self.finished(CallEnd(message_id, 0.0, error=ModelError("provider", reason)))

    async def report(self, report: Any) -> None:
        """A filter or the loop has something to tell."""
        await self.send(Reported(**self.scope, report=report))

    def deltas(self, message_id: str) -> Callable[[Delta], Awaitable[None]]:
        """Return where the deltas of one reply go."""

        async def deliver(delta: Delta) -> None:
            event = self._delta(message_id, delta)
            if event is not None:
                await self.send(event)

        return deliver

    def _delta(self, message_id: str, delta: Delta) -> AgentEvent | None:
        match delta:
            case Text(delta=text):
                return TextDelta(**self.scope, message_id=message_id, delta=text)
            case Reasoning(delta=text):
                return ReasoningDelta(**self.scope, message_id=message_id, delta=text)
            case CallOpened(call_id=call_id, name=name):
                return ToolCallOpened(
                    **self.scope, message_id=message_id, call_id=call_id, name=name
                )
            case CallArgs(call_id=call_id, delta=text):
                return ToolCallArgs(
                    **self.scope, message_id=message_id, call_id=call_id, delta=text
                )
            case CallClosed(call_id=call_id):
                return ToolCallClosed(**self.scope, message_id=message_id, call_id=call_id)
        return None


async def _finish(task: asyncio.Future[None]) -> None:
    """Wait until a sending is over, whatever happens to us."""
    while not task.done():
        try:
            await asyncio.wait([task])
        except asyncio.CancelledError:
            continue
