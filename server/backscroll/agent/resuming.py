"""What a turn starts from: fresh, or where a pause left it."""

from __future__ import annotations

from collections.abc import Iterable
from types import MappingProxyType

from backscroll.agent.inputs import Given
from backscroll.agent.plan import TurnPlan, TurnState
from backscroll.kernel.errors import ResumeProblem, ResumeRefused
from backscroll.kernel.tool import Tool, ToolSet, client_tool
from backscroll.kernel.turn import Pause


def inline_tools(given: Iterable[Tool], pause: Pause | None) -> ToolSet:
    """Return the tools offered for this turn only; a pause brings back those of its client."""
    inline = ToolSet(given)
    again = [spec for spec in (pause.tools if pause else ()) if inline.get(spec.name) is None]
    return inline.plus(client_tool(spec.name, spec.description, spec.schema) for spec in again)


def turn_state(plan: TurnPlan, given: Given, pause: Pause | None) -> TurnState:
    """Return what a turn has gathered before it begins.

    A pause's context goes before what is given, which may only add what the pause could not keep.
    """
    names = {"conversation_id": plan.conversation_id, "run_id": given.run_id}
    known = {name: value for name, value in names.items() if value is not None}
    kept = pause.context if pause else {}
    context = MappingProxyType({**(given.context or {}), **kept, **known})
    state = TurnState(plan.conversation_id, plan.reporter, context)
    if pause is not None:
        state.records.extend(pause.records)
        state.earlier = pause.usage
        state.calls = 1
    return state


def not_paused(conversation_id: str) -> ResumeRefused:
    """Return the refusal of a resume for which nothing waits."""
    message = f"nothing waits for answers in conversation {conversation_id!r}"
    return ResumeRefused([ResumeProblem("not_paused", message)])
