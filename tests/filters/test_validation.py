"""Validation sends answers back with what is wrong with them."""

from __future__ import annotations

from typing import Any

import pytest
from agent.agents import Events, agent_of, lines, model_of
from backscroll.agent.events import Reported
from backscroll.filters.safeguard import Safeguard
from backscroll.filters.validation import Validation
from backscroll.kernel.errors import AssemblyError, ModelError
from backscroll.kernel.ports import CancelToken
from backscroll.kernel.tool import tool
from played_model import call, calls, sent

FEEDBACK = (
    "Your last answer does not meet the required format: too long. "
    "Send the complete corrected answer and nothing else."
)


def short(text: str) -> str | None:
    """Complain about long answers."""
    return "too long" if len(text) > 5 else None


@tool(return_direct=True)
async def show() -> str:
    """Show something long."""
    return "something long"


async def test_a_correction() -> None:
    """SO2: two calls; the feedback is in the history with its origin."""
    agent = agent_of("far too long", "short", filters=[Validation(short)])

    result = await agent.invoke("hi", conversation_id="t")

    stored = await agent.memory.get("t")
    assert result.text == "short"
    assert lines(stored)[2:] == [f"user: {FEEDBACK}", "assistant: short"]
    assert stored[2].origin == "filter:validation"
    assert sent(model_of(agent).requests[1])[-1] == f"user: {FEEDBACK}"


async def test_a_right_answer() -> None:
    """SO2: one call; the check may be async."""

    async def check(text: str) -> str | None:
        return short(text)

    agent = agent_of("short", filters=[Validation(check)])

    assert (await agent.invoke("hi")).text == "short"
    assert len(model_of(agent).requests) == 1


@pytest.mark.parametrize("retries", [0, 1, 2])
async def test_never_right(retries: int) -> None:
    """SO3: the last answer is returned as it is, with a note."""
    agent = agent_of(*["far too long"] * 3, filters=[Validation(short, retries)])
    events = Events()

    result = await agent.invoke("hi", on_event=events)

    assert (result.status, result.text) == ("completed", "far too long")
    assert len(model_of(agent).requests) == retries + 1
    (note,) = [event.report for event in events.of(Reported)]
    assert note.text == f"the answer is still wrong after {retries} corrections: too long"


async def test_what_is_not_judged() -> None:
    """SO4: errors, stopped turns, direct answers and what a filter blocked pass as they are."""
    judged: list[str] = []
    check = Validation(lambda text: judged.append(text) or "always wrong")
    stopped = CancelToken()
    stopped.cancel("enough")
    failing = agent_of(ModelError("auth", "no key"), filters=[check])
    direct = agent_of(calls(call("show")), tools=[show], filters=[check])
    blocked = agent_of(filters=[check, Safeguard(["bomb"])])

    assert (await failing.invoke("hi")).status == "error"
    assert (await failing.invoke("hi", cancel=stopped)).status == "cancelled"
    assert (await direct.invoke("hi")).text == "something long"
    assert (await blocked.invoke("bomb")).blocked_by == "safeguard"
    assert judged == []


async def test_feedback_of_ones_own() -> None:
    """The text may be replaced; one with an unknown placeholder, or no check, is refused."""
    agent = agent_of("far too long", "short", filters=[Validation(short, feedback="No: {problem}")])

    await agent.invoke("hi")

    assert sent(model_of(agent).requests[1])[-1] == "user: No: too long"
    wrong: list[Any] = [{"feedback": "{nmae}"}, {"max_retries": -1}, {"check": "short"}]
    for options in wrong:
        with pytest.raises(AssemblyError):
            Validation(**{"check": short, **options})
