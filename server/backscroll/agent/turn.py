"""One turn from its first event to its last."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from backscroll.agent.events import (
    AgentEvent,
    Reported,
    TurnEnded,
    TurnPaused,
    TurnResumed,
    TurnStarted,
)
from backscroll.agent.inputs import OnPaused
from backscroll.agent.loop import Loop
from backscroll.agent.pause_desk import PauseDesk
from backscroll.agent.plan import TurnPlan, TurnState
from backscroll.agent.round import Resumption
from backscroll.agent.settle import settle
from backscroll.conversation.history import heal
from backscroll.conversation.windowed import full_memory
from backscroll.kernel.errors import (
    AwaitingResume,
    BackscrollError,
    InputError,
    LeaseLost,
    Never,
    ResumeRefused,
)
from backscroll.kernel.filter import TurnHandler, build_chain
from backscroll.kernel.message import Message, Role
from backscroll.kernel.request import Note
from backscroll.kernel.turn import Pause, TurnRequest, TurnResult

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Turn:
    """A turn ready to run, with the hooks of the filters that wrap it and its iterations.

    `system` makes the system texts from the context; it is asked once.
    """

    plan: TurnPlan
    state: TurnState
    turn_hooks: Sequence[Any]
    iteration_hooks: Sequence[Any]
    system: Callable[[Mapping[str, Any]], Awaitable[tuple[str, ...]]]
    desk: PauseDesk = field(default_factory=PauseDesk)
    on_paused: OnPaused = "discard"

    async def run(self, messages: tuple[Message, ...]) -> TurnResult:
        """Run the turn; raises `empty_input` and `awaiting_resume`, and what is never contained."""
        try:
            await self._leave_pause()
            history = await self._healed()
        except AwaitingResume:
            raise
        except Never.CONTAINED:
            raise
        except Exception as error:
            return await self._end(self._broken(error))
        if not messages and not _is_answerable(history):
            reason = "there is no input, and nothing in the history to answer"
            raise InputError("empty_input", reason)
        # Questions that a host has stored already are what the turn is asked, as if given here.
        messages = messages or _last_questions(history)
        ids = tuple(message.id or "" for message in messages)
        return await self._through(
            TurnStarted(**self.plan.reporter.scope, message_ids=ids), messages, None
        )

    async def resume(self, resumption: Resumption) -> TurnResult:
        """Go on with a pause whose answers fit and which nobody else can take any more."""
        event = TurnResumed(
            **self.plan.reporter.scope,
            pause_id=resumption.pause.id,
            answers=resumption.answers,
        )
        return await self._through(event, None, resumption)

    async def _through(
        self,
        event: AgentEvent,
        messages: tuple[Message, ...] | None,
        resumption: Resumption | None,
    ) -> TurnResult:
        """Go through the turn chain, and end the turn."""
        loop: Loop | None = None
        try:
            await self.plan.reporter.send(event)
            plan = replace(self.plan, system=await self.system(self.state.context))
            loop = Loop(plan, self.state, self.iteration_hooks, resumption)
            chain: TurnHandler = build_chain(self.turn_hooks, loop, TurnResult)
            result = await chain(
                TurnRequest(
                    messages,
                    self.state.context,
                    is_resume=resumption is not None,
                    conversation_id=plan.conversation_id,
                    observer=plan.reporter,
                    texts=plan.tooling.client.texts,
                )
            )
        except Never.CONTAINED:
            raise
        except Exception as error:
            result = self._broken(error)
        if resumption is not None and (loop is None or loop.resumption is not None):
            # Nobody carried it out, so it waits on.
            await self._keep(resumption.pause)
            result = result.replace(pause=resumption.pause)
        return await self._end(result)

    async def _end(self, result: TurnResult) -> TurnResult:
        """Make the history complete, keep a pause, and send the last event."""
        reporter = self.plan.reporter
        result = await settle(self.plan, self.state, result)
        if result.status == "paused" and result.pause is not None:
            await self._keep(result.pause)
            await reporter.tell(TurnPaused(**reporter.scope, pause=result.pause))
        elif self.plan.is_ephemeral and result.pause is None:
            await self._clear()
        result = self.state.fill(result)
        await reporter.end(TurnEnded(**reporter.scope, result=result))
        return result

    async def _keep(self, pause: Pause) -> None:
        """Keep a pause; one that cannot be stored is in the result all the same."""
        try:
            await self.desk.keep(pause)
        except LeaseLost:
            raise
        except Exception as error:
            logger.exception("a pause could not be stored")
            note = Note("pause_not_stored", f"the pause could not be stored: {error}")
            await self.plan.reporter.tell(Reported(**self.plan.reporter.scope, report=note))

    async def _leave_pause(self) -> None:
        """Discard a pause of the conversation, or raise `awaiting_resume`."""
        plan = self.plan
        if plan.is_ephemeral:
            return
        try:
            pause = await self.desk.load(plan.conversation_id)
        except ResumeRefused:
            if self.on_paused == "refuse":
                raise
        else:
            if pause is None:
                return
            if self.on_paused == "refuse":
                raise AwaitingResume(pause)
        await self.desk.discard(plan.conversation_id)
        note = Note("pause_discarded", "the conversation went on, so its pause was discarded")
        await plan.reporter.report(note)

    async def _healed(self) -> list[Message]:
        """Return the history, after answering calls that an earlier turn left open."""
        plan = self.plan
        if plan.is_ephemeral:
            return []
        history = await full_memory(plan.memory).get(plan.conversation_id)
        lost = heal(history, plan.tooling.client.texts.abandoned)
        return history + await plan.memory.add(plan.conversation_id, lost) if lost else history

    def _broken(self, error: Exception) -> TurnResult:
        if not isinstance(error, BackscrollError):
            logger.error("a turn ended with an internal error", exc_info=error)
            error = BackscrollError("an internal error ended the turn")
        return TurnResult("error", error=error, context=self.state.context)

    async def _clear(self) -> None:
        try:
            await self.plan.memory.clear(self.plan.conversation_id)
        except LeaseLost:
            raise
        except Exception:
            logger.exception("an ephemeral conversation could not be cleared")


def _is_answerable(history: Sequence[Message]) -> bool:
    """Say whether a history ends with something that a model can answer."""
    return bool(history) and history[-1].role in (Role.USER, Role.TOOL)


def _last_questions(history: Sequence[Message]) -> tuple[Message, ...]:
    """Return the user messages that a history ends with."""
    others = [at for at, message in enumerate(history) if message.role is not Role.USER]
    return tuple(history[others[-1] + 1 :] if others else history)
