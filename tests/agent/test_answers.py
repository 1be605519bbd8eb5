"""Answers are checked all at once, before anything happens."""

from __future__ import annotations

from typing import Any

import pytest
from backscroll.agent.answers import (
    TAKES,
    Approve,
    GiveUp,
    Reject,
    Reply,
    Retry,
    check_answers,
    response_to,
)
from backscroll.kernel.content import TextPart
from backscroll.kernel.errors import ToolFailure
from backscroll.kernel.texts import Texts
from backscroll.kernel.tool import ToolSet, client_tool, tool
from backscroll.kernel.turn import Pause, PauseItem, ToolRecord

TEXTS = Texts()


@tool
async def pay(amount: int) -> str:
    """Pay."""
    return str(amount)


TOOLS = ToolSet([pay, client_tool("pick", "Pick.")])


def item(kind: Any, id: str = "c1", name: str = "pay") -> PauseItem:
    """Return an item of a kind."""
    return PauseItem(id, kind, name, {"amount": 1}, "why", TAKES[kind])


APPROVAL, CLIENT, ENVIRONMENT = item("approval"), item("client"), item("environment")


def problems(found: PauseItem, answer: Any, now: float = 0.0, tools: ToolSet = TOOLS) -> list[str]:
    """Return the codes of what is wrong with one answer."""
    pause = Pause("p", "t", (found,), 0.0, 100.0)
    return [p.code for p in check_answers(pause, {found.id: answer}, tools, now)]


@pytest.mark.parametrize(
    ("found", "answer"),
    [
        (APPROVAL, Approve()),
        (APPROVAL, Approve({"amount": 2})),
        (APPROVAL, Reject("no")),
        (APPROVAL, Reply("done by hand")),
        (APPROVAL, Reply((TextPart("x"),))),
        (CLIENT, Reply("")),
        (CLIENT, Reject()),
        (ENVIRONMENT, Retry()),
        (ENVIRONMENT, GiveUp()),
    ],
)
def test_answers_that_fit(found: PauseItem, answer: Any) -> None:
    """Each kind of item takes its own answers."""
    assert problems(found, answer) == []


@pytest.mark.parametrize(
    ("found", "answer", "code"),
    [
        (APPROVAL, Retry(), "interrupt_invalid"),
        (APPROVAL, "yes", "interrupt_invalid"),
        (APPROVAL, Reply("  "), "interrupt_invalid"),
        (APPROVAL, Reply(()), "interrupt_invalid"),
        (APPROVAL, Reply({"a": 1}), "interrupt_invalid"),
        (APPROVAL, Reply(("x",)), "interrupt_invalid"),
        (APPROVAL, Approve([1]), "interrupt_invalid"),  # type: ignore[arg-type]
        (APPROVAL, Approve({"amount": "x"}), "invalid_arguments"),
        (item("approval", name="gone"), Approve(), "tool_gone"),
        (item("approval", name="pick"), Approve(), "tool_gone"),
        (item("environment", name="gone"), Retry(), "tool_gone"),
        (CLIENT, Approve(), "interrupt_invalid"),
        (ENVIRONMENT, Reject(), "interrupt_invalid"),
    ],
)
def test_answers_that_do_not_fit(found: PauseItem, answer: Any, code: str) -> None:
    """HITL6: each problem has its code."""
    assert problems(found, answer) == [code]


def test_all_problems_are_told() -> None:
    """HITL7: items without an answer and answers without an item are all named."""
    pause = Pause("p", "t", (APPROVAL, item("client", "c2", "pick")), 0.0)

    found = check_answers(pause, {"c1": Approve({"amount": "x"}), "c9": Approve()}, TOOLS, 0.0)

    assert [(p.code, p.item_id) for p in found] == [
        ("interrupt_incomplete", "c2"),
        ("invalid_arguments", "c1"),
        ("interrupt_unknown", "c9"),
    ]
    assert found[1].message.startswith("pay: amount: ")


@pytest.mark.parametrize(("now", "codes"), [(99.0, []), (100.0, ["interrupt_expired"])])
def test_expired_pauses(now: float, codes: list[str]) -> None:
    """An expired item can only be rejected or given up."""
    assert problems(APPROVAL, Approve(), now) == codes
    assert problems(CLIENT, Reply("x"), now) == codes
    assert problems(APPROVAL, Reject(), now) == problems(ENVIRONMENT, GiveUp(), now) == []


@pytest.mark.parametrize(
    ("found", "answer", "text", "outcome"),
    [
        (APPROVAL, Reply("by hand"), "by hand", "replied"),
        (APPROVAL, Reject(), TEXTS.refused, "refused"),
        (APPROVAL, Reject("no"), TEXTS.refused_reason.format(reason="no"), "refused"),
        (CLIENT, Reply("monday"), "monday", "replied"),
        (CLIENT, Reply(" "), TEXTS.client_empty, "replied"),
        (CLIENT, Reply("broken", is_error=True), "broken", "error"),
        (CLIENT, Reject(), TEXTS.client_cancelled, "cancelled"),
        (CLIENT, Reject("no"), TEXTS.client_cancelled_reason.format(reason="no"), "cancelled"),
    ],
)
def test_answers_that_are_results(found: PauseItem, answer: Any, text: str, outcome: str) -> None:
    """HITL3, HITL8, HITL10: what the model reads of an answer that runs nothing."""
    response = response_to(found, answer, None, TEXTS)

    assert response is not None
    assert (response.content, response.outcome) == (text, outcome)


def test_answers_that_run_the_call() -> None:
    """Approved and retried calls have no result yet; a given-up one has its error."""
    failure = ToolFailure("environment", "no key")
    held = ToolRecord("c1", "pay", {}, "error: no key", "error", failure)

    given_up = response_to(ENVIRONMENT, GiveUp(), held, TEXTS)

    assert response_to(APPROVAL, Approve(), None, TEXTS) is None
    assert response_to(ENVIRONMENT, Retry(), held, TEXTS) is None
    assert given_up is not None
    assert (given_up.content, given_up.error, given_up.outcome) == (
        "error: no key",
        failure,
        "error",
    )
