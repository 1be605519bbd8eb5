"""What a turn gathers, over all its passes."""

from __future__ import annotations

from agent.agents import Events
from agent.pause_store_contract import full_pause
from backscroll.agent.plan import TurnState
from backscroll.agent.reporter import Reporter
from backscroll.conversation.memory import InMemoryChatMemory
from backscroll.kernel.message import assistant, tool_result, user
from backscroll.kernel.turn import ToolRecord, TurnResult
from played_model import call

RECORD = ToolRecord("c1", "look", {}, "saw", "ok")


def state() -> TurnState:
    """Return the state of a fresh turn."""
    scope = {"agent": "a", "conversation_id": "t", "turn_id": "x", "run_id": None}
    return TurnState("t", Reporter(Events(), scope), {})  # type: ignore[arg-type]


def test_results_close_calls() -> None:
    """Calls of a reply are open until they have a result, which waits to be stored."""
    turn = state()
    turn.take_reply(assistant(None, [call("look", id="c1"), call("look", id="c2")], "a1"))

    turn.take_results([tool_result("c1", "look", "saw", id="m1")], [RECORD])

    assert list(turn.open) == ["c2"]
    assert list(turn.waiting) == ["m1"]


def test_a_reply_means_that_results_are_stored() -> None:
    """When a reply came back, what was passed to get it waits no longer."""
    turn = state()
    turn.take_results([tool_result("c1", "look", "saw", id="m1")], [RECORD])

    turn.take_reply(assistant("ok", id="a2"))

    assert (turn.open, turn.waiting) == ({}, {})


def test_a_result_is_filled_with_what_was_gathered() -> None:
    """Records, iterations and new messages come from the turn, whoever made the result."""
    turn = state()
    turn.add_new([user("hi", "u1")])
    turn.take_results([], [RECORD])
    turn.take_reply(assistant("ok", id="a1"))
    turn.iterations = 2

    filled = turn.fill(TurnResult("completed", text="ok"))

    assert (filled.conversation_id, filled.iterations, filled.records) == ("t", 2, (RECORD,))
    assert [message.id for message in filled.new_messages] == ["u1", "a1"]
    assert (filled.status, filled.text) == ("completed", "ok")


async def test_waiting_results_are_stored_but_not_all() -> None:
    """What a delta brings itself is left to it."""
    memory, turn = InMemoryChatMemory(), state()
    results = [tool_result(f"c{n}", "look", "saw", id=f"m{n}") for n in (1, 2)]
    turn.take_results(results, [])

    await turn.store_waiting(memory, {"m2"})
    await turn.store_waiting(memory, {"m2"})

    assert [message.id for message in await memory.get("t")] == ["m1"]
    assert (list(turn.waiting), list(turn.new)) == (["m2"], ["m1"])


def test_a_pause_is_taken_up() -> None:
    """Calls of the pause that have no record are open again."""
    turn = state()

    turn.take_up(full_pause())

    assert list(turn.open) == ["c2"]
