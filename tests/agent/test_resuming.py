"""What a turn starts from: fresh, or where a pause left it."""

from __future__ import annotations

from typing import Any

from agent.pause_store_contract import full_pause
from backscroll.agent.batch import Tooling
from backscroll.agent.executors import SequentialExecutor
from backscroll.agent.inputs import Given
from backscroll.agent.plan import TurnPlan
from backscroll.agent.reporter import Reporter
from backscroll.agent.resuming import inline_tools, not_paused, turn_state
from backscroll.conversation.memory import InMemoryChatMemory
from backscroll.kernel.client import ChatClient
from backscroll.kernel.tool import ToolSet, client_tool
from played_model import PlayedModel


def plan() -> TurnPlan:
    """Return the plan of some turn."""
    scope: Any = {"agent": "a", "conversation_id": "t", "turn_id": "x", "run_id": "r"}
    reporter = Reporter(None, scope)
    tooling = Tooling(ChatClient(), ToolSet(), SequentialExecutor())
    return TurnPlan("t", InMemoryChatMemory(), PlayedModel([]), tooling, reporter)


def test_a_fresh_turn() -> None:
    """The caller's context, with the reserved names put right."""
    given = Given(context={"tenant": "north", "conversation_id": "x"}, run_id="r")

    state = turn_state(plan(), given, None)

    assert dict(state.context) == {"tenant": "north", "conversation_id": "t", "run_id": "r"}
    assert (state.records, state.earlier, state.calls) == ([], (), 0)


def test_a_paused_turn() -> None:
    """What the pause kept goes before what is given now; records and usage go on."""
    pause = full_pause("t")

    state = turn_state(plan(), Given(context={"tenant": "south", "plug": 1}), pause)

    assert (state.context["tenant"], state.context["plug"]) == ("north", 1)
    assert state.records == list(pause.records)
    assert (state.earlier, state.usage, state.calls) == (pause.usage, pause.usage, 1)


def test_client_tools_come_back() -> None:
    """Tools of the client that the pause knows are offered again, unless given anew."""
    newer = client_tool("pick", "Pick better.")

    (again,) = inline_tools([], full_pause())
    assert (again.info.runs_in, again.info.description) == ("client", "Pick.")
    assert list(inline_tools([newer], full_pause())) == [newer]
    assert list(inline_tools([newer], None)) == [newer]


def test_not_paused() -> None:
    """The refusal names the conversation."""
    assert (not_paused("t").code, "'t'" in str(not_paused("t"))) == ("not_paused", True)
