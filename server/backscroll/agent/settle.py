"""Settling: when a turn ends, its history is made complete."""

from __future__ import annotations

import logging

from backscroll.agent.events import Reported, ToolFinished
from backscroll.agent.plan import TurnPlan, TurnState
from backscroll.kernel.errors import LeaseLost, MaxIterationsExceeded
from backscroll.kernel.message import Message, Outcome, Role, ToolCall, tool_result
from backscroll.kernel.request import Note
from backscroll.kernel.texts import Texts
from backscroll.kernel.turn import TurnResult

logger = logging.getLogger(__name__)


async def settle(plan: TurnPlan, state: TurnState, result: TurnResult) -> TurnResult:
    """Store what the turn still holds, so that nothing dangles; returns the result as it stands.

    If the store fails, the turn's outcome holds, and healing does the rest the next time.
    """
    if result.status == "paused":
        return result
    skipped_calls = [await _skip(plan, call, result) for call in state.open.values()]
    messages = [*state.waiting.values(), *skipped_calls]
    if result.store and result.message is None:
        answer = _answer(result, plan.tooling.client.ids.new("msg"))
        result = result.replace(message=answer)
        messages.append(answer)
    if not messages:
        return result
    try:
        await plan.memory.add(plan.conversation_id, messages)
    except LeaseLost:
        raise
    except Exception as error:
        logger.exception("the end of a turn could not be stored")
        note = Note("not_settled", f"the history could not be completed: {error}")
        await plan.reporter.tell(Reported(**plan.reporter.scope, report=note))
        return result
    state.add_new(messages)
    return result


def skipped(call: ToolCall, result: TurnResult, texts: Texts) -> tuple[str, Outcome]:
    """Return what a call without a result is told when the turn ends like this."""
    if result.status == "cancelled":
        return texts.not_started, "cancelled"
    if isinstance(result.error, MaxIterationsExceeded):
        return texts.skipped_limit.format(limit=result.error.limit), "skipped"
    if result.status == "error":
        return texts.skipped_error, "skipped"
    return texts.skipped_ineligible, "skipped"


async def _skip(plan: TurnPlan, call: ToolCall, result: TurnResult) -> Message:
    client, scope = plan.tooling.client, plan.reporter.scope
    text, outcome = skipped(call, result, client.texts)
    message = tool_result(call.id, call.name, text, id=client.ids.new("msg"), outcome=outcome)
    await plan.reporter.tell(
        ToolFinished(**scope, call_id=call.id, message=message, outcome=outcome)
    )
    return message


def _answer(result: TurnResult, message_id: str) -> Message:
    origin = f"filter:{result.blocked_by}" if result.blocked_by else "filter"
    return Message(Role.ASSISTANT, result.text, message_id, origin=origin)
