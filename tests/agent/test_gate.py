"""The gate decides once about each call; an error never lets one through."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from backscroll.agent.gate import Answer, AskFirst, GateRules, Proceed, Refuse, decide, refused
from backscroll.kernel.errors import LeaseLost
from backscroll.kernel.texts import Texts
from backscroll.kernel.tool import ToolSet, tool
from played_model import call

TEXTS = Texts()


@tool
async def add(a: int) -> str:
    """Add."""
    return str(a)


@tool(sensitive=True)
async def pay(to: str) -> str:
    """Pay."""
    return to


TOOLS = ToolSet([add, pay])
ADD, PAY = call("add", {"a": 1}, "c1"), call("pay", {"to": "ann"}, "c2")


async def decisions(rules: GateRules) -> Any:
    """Decide about a free and a sensitive call."""
    return await decide(rules, [ADD, PAY], TOOLS, {"tenant": "north"}, TEXTS)


async def test_sensitive_tools_are_asked_about() -> None:
    """Without a gate only sensitive tools are asked about, unless they may run."""
    asked, free = await decisions(GateRules()), await decisions(GateRules(asks_sensitive=False))

    assert asked.questions == {"c2": "pay needs approval before it runs."}
    assert (free.questions, free.decided) == ({}, {})


async def test_a_gate_that_lets_through() -> None:
    """HITL14: a sensitive call that the gate lets through is still asked about."""
    seen: list[Any] = []

    def gate(call: Any, info: Any, context: Any) -> Proceed:
        seen.append((call.name, info.sensitive, context["tenant"]))
        return Proceed()

    found = await decisions(GateRules(gate))

    assert seen == [("add", False, "north"), ("pay", True, "north")]
    assert list(found.questions) == ["c2"]


@pytest.mark.parametrize(
    ("decision", "text", "outcome"),
    [
        (Refuse(), "The user did not allow this call. It was not executed.", "refused"),
        (Refuse("no"), "The user did not allow this call: no. It was not executed.", "refused"),
        (Answer("four"), "four", "replied"),
    ],
)
async def test_results_without_running(decision: Any, text: str, outcome: str) -> None:
    """A refusal and an answer are results; nobody is asked."""

    async def gate(call: Any, info: Any, context: Any) -> Any:
        return decision

    found = await decisions(GateRules(gate))

    assert found.questions == {}
    assert {r.content for r in found.decided.values()} == {text}
    assert {r.outcome for r in found.decided.values()} == {outcome}


async def test_asking_with_a_reason() -> None:
    """The gate's own reason is shown, else the fixed text."""
    reasons = {"c1": AskFirst("over the limit"), "c2": AskFirst()}

    found = await decisions(GateRules(lambda call, info, context: reasons[call.id]))

    assert found.questions == {"c1": "over the limit", "c2": "pay needs approval before it runs."}


@pytest.mark.parametrize("is_raising", [True, False])
async def test_a_gate_that_fails(is_raising: bool, caplog: Any) -> None:
    """HITL14: a gate that raises, or decides nothing, makes somebody be asked."""

    def gate(call: Any, info: Any, context: Any) -> Any:
        if is_raising:
            raise KeyError("limit")
        return True

    with caplog.at_level(logging.CRITICAL):
        found = await decisions(GateRules(gate, asks_sensitive=False))

    assert found.questions["c1"] == "The check for add failed, so it needs approval."
    assert len(found.questions) == 2


async def test_a_lost_lease_comes_out() -> None:
    """What is never contained is not contained here either."""

    def gate(call: Any, info: Any, context: Any) -> Any:
        raise LeaseLost("t", 1, 2)

    with pytest.raises(LeaseLost):
        await decisions(GateRules(gate))


def test_refusals() -> None:
    """A blank reason is no reason."""
    assert refused("", TEXTS) == refused(None, TEXTS)
