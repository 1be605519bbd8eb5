"""One turn from its first event to its last."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from backscroll.agent.events import TurnEnded, TurnStarted
from backscroll.agent.loop import Loop
from backscroll.agent.plan import TurnPlan, TurnState
from backscroll.agent.settle import settle
from backscroll.conversation.history import heal
from backscroll.kernel.errors import BackscrollError, InputError, LeaseLost, Never
from backscroll.kernel.filter import TurnHandler, build_chain
from backscroll.kernel.message import Message, Role
from backscroll.kernel.turn import TurnRequest, TurnResult

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
    is_ephemeral: bool = False

    async def run(self, messages: tuple[Message, ...]) -> TurnResult:
        """Run the turn; raises `empty_input`, and what is never contained, but no other error."""
        try:
            history = await self._healed()
        except Never.CONTAINED:
            raise
        except Exception as error:
            return await self._end(self._broken(error))
        if not messages and not _is_answerable(history):
            raise InputError(
                "empty_input", "there is no input, and nothing in the history to answer"
            )
        try:
            result = await self._pass(messages)
        except Never.CONTAINED:
            raise
        except Exception as error:
            result = self._broken(error)
        return await self._end(result)

    async def _pass(self, messages: tuple[Message, ...]) -> TurnResult:
        """Go through the turn chain."""
        plan = self.plan
        ids = tuple(message.id or "" for message in messages)
        await plan.reporter.send(TurnStarted(**plan.reporter.scope, message_ids=ids))
        request = TurnRequest(
            messages,
            self.state.context,
            conversation_id=plan.conversation_id,
            observer=plan.reporter,
        )
        plan = replace(plan, system=await self.system(self.state.context))
        loop = Loop(plan, self.state, self.iteration_hooks)
        chain: TurnHandler = build_chain(self.turn_hooks, loop)
        return await chain(request)

    async def _end(self, result: TurnResult) -> TurnResult:
        """Make the history complete and send the last event."""
        result = await settle(self.plan, self.state, result)
        if self.is_ephemeral and result.status != "paused":
            await self._clear()
        result = self.state.fill(result)
        await self.plan.reporter.end(TurnEnded(**self.plan.reporter.scope, result=result))
        return result

    async def _healed(self) -> list[Message]:
        """Return the history, after answering calls that an earlier turn left open."""
        plan = self.plan
        if self.is_ephemeral:
            return []
        history = await plan.memory.get(plan.conversation_id)
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
