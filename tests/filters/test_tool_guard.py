"""ToolGuard stops tools that fail again and again."""

from __future__ import annotations

from typing import Any

import pytest
from agent.agents import agent_of, lines, model_of
from backscroll.agent.gate import Proceed, Refuse
from backscroll.filters.tool_guard import ToolGuard
from backscroll.kernel.errors import AssemblyError
from backscroll.kernel.tool import tool
from conversation.histories import faults
from played_model import call, calls, sent

ran: list[int] = []


@tool
async def fetch(n: int = 0, ok: bool = False) -> str:
    """Fetch, which fails."""
    ran.append(n)
    if not ok:
        raise ValueError("down")
    return "fetched"


@pytest.fixture(autouse=True)
def _nothing_ran() -> None:
    ran.clear()


def fetches(*numbers: int, ok: bool = False) -> list[Any]:
    """Return one round per number."""
    return [calls(call("fetch", {"n": n, "ok": ok})) for n in numbers]


async def run(rounds: list[Any], guard: ToolGuard, **fields: Any) -> tuple[Any, list[str]]:
    """Return the result of a turn, and the last line of each request."""
    agent = agent_of(*rounds, "ok", tools=[fetch], filters=[guard], max_iterations=20, **fields)
    result = await agent.invoke("hi", conversation_id="t")
    assert faults(await agent.memory.get("t")) == []
    return result, [sent(request)[-1] for request in model_of(agent).requests]


async def test_identical_failures() -> None:
    """TG1: the fourth identical call is not run and says so; with other arguments it is."""
    result, _ = await run(fetches(1, 1, 1, 1, 2), ToolGuard())

    assert ran == [1, 1, 1, 2]
    refused = result.records[3]
    assert refused.content == (
        "error: fetch has failed 3 times with exactly these arguments, so it was not run again. "
        "Change the arguments or the approach."
    )
    assert (refused.outcome, refused.failure) == ("error", None)


async def test_a_success_resets() -> None:
    """TG2: after a success of the tool its failures count from the beginning."""
    rounds = [*fetches(1, 1), *fetches(9, ok=True), *fetches(1, 1)]

    await run(rounds, ToolGuard())

    assert ran == [1, 1, 9, 1, 1]


async def test_refused_calls_do_not_count() -> None:
    """TG2: what somebody did not allow is no failure."""

    def gate(wanted: Any, info: Any, context: Any) -> Any:
        return Refuse("no") if wanted.args["n"] == 1 else Proceed()

    _, last = await run(fetches(1, 1, 1, 1, 1), ToolGuard(per_tool=3), gate=gate)

    assert not any("Reminder" in line for line in last)


async def test_a_new_turn_is_clean() -> None:
    """TG2: failures of an earlier turn are forgotten."""
    agent = agent_of(
        *fetches(1, 1), "ok", *fetches(1, 1), "ok", tools=[fetch], filters=[ToolGuard()]
    )

    await agent.invoke("hi", conversation_id="t")
    await agent.invoke("again", conversation_id="t")

    assert ran == [1, 1, 1, 1]


async def test_failures_of_one_tool() -> None:
    """TG3: five failures with different arguments: one note, then the count restarts."""
    _, last = await run(fetches(1, 2, 3, 4, 5, 6), ToolGuard(per_turn=None))

    told = [line for line in last if "Reminder" in line]
    assert told == [
        "user: Reminder: fetch has failed 5 times in a row. "
        "Check its requirements or use another way."
    ]


async def test_failures_of_a_turn_are_told_once() -> None:
    """The model is told once that much has failed."""
    _, last = await run(fetches(*range(10)), ToolGuard(per_tool=None))

    told = [line for line in last if "Reminder" in line]
    assert told == [
        "user: Reminder: 8 tool calls have failed in this turn. "
        "Stop and tell the user what does not work."
    ]


async def test_failures_end_the_turn() -> None:
    """TG3: with "stop" the turn ends with a stored answer, and nothing dangles."""
    agent = agent_of(
        calls(*(call("fetch", {"n": n}, str(n)) for n in range(8))),
        tools=[fetch],
        filters=[ToolGuard(on_turn_limit="stop")],
    )

    result = await agent.invoke("hi", conversation_id="t")

    text = "I had to stop: 8 tool calls failed while I was working on this."
    assert (result.status, result.text, result.blocked_by) == ("completed", text, "tool_guard")
    assert lines(await agent.memory.get("t"))[-1] == f"assistant: {text}"
    assert len(model_of(agent).requests) == 1


async def test_limits_that_are_off() -> None:
    """TG4: without limits nothing is refused and nothing told."""
    _, last = await run(fetches(*[1] * 10), ToolGuard(None, None, None))

    assert len(ran) == 10
    assert not any("Reminder" in line for line in last)


@pytest.mark.parametrize("wrong", [{"identical": 0}, {"per_turn": "8"}, {"on_turn_limit": "end"}])
def test_wrong_options(wrong: Any) -> None:
    """Mistakes are raised when the filter is made."""
    with pytest.raises(AssemblyError):
        ToolGuard(**wrong)
