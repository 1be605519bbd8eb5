"""Questions on the wire: how they are asked, and what answers say."""

from __future__ import annotations

from typing import Any

import pytest
from backscroll.agent.answers import TAKES, Approve, GiveUp, Reject, Reply, Retry
from backscroll.agui.input import ResumeEntry
from backscroll.agui.plan import Waiting
from backscroll.agui.questions import answer_to, interrupts, problem_of
from backscroll.kernel.tool import ToolSet, tool
from backscroll.kernel.turn import Pause, PauseItem
from backscroll.store.pause_record import PauseRecord


@tool
def pay(to: str, amount: int) -> str:
    """Pay."""
    return f"{to} {amount}"


def item(kind: str = "approval") -> PauseItem:
    """Return an item of a pause."""
    return PauseItem("c1", kind, "pay", {"to": "ann"}, "why", TAKES[kind])  # type: ignore[arg-type]


def waiting(kind: str = "approval", expires_at: float | None = None) -> Waiting:
    """Return what a thread with one item waits for, at second 100."""
    pause = Pause("p", "t", (item(kind),), 1.0, expires_at)
    return Waiting(PauseRecord(pause), 100.0, ToolSet([pay]))


def resolved(payload: Any) -> ResumeEntry:
    """Return an entry with a payload."""
    return ResumeEntry("c1", "resolved", payload)


@pytest.mark.parametrize(
    ("kind", "payload", "answer"),
    [
        ("approval", True, Approve()),
        ("approval", {"approved": True}, Approve()),
        ("approval", {"approved": True, "editedArgs": {"to": "bob"}}, Approve({"to": "bob"})),
        ("approval", False, Reject()),
        ("approval", {"approved": False, "reason": "no"}, Reject("no")),
        ("approval", {"result": "done"}, Reply("done")),
        ("approval", {"approved": True, "result": {"a": 1}}, Reply('{"a":1}')),
        ("approval", {"approved": 1}, None),
        ("approval", {"approve": True}, None),
        ("approval", "yes", None),
        ("approval", None, None),
        ("environment", {"retry": True}, Retry()),
        ("environment", {"retry": False}, GiveUp()),
        ("environment", {"retry": "true"}, None),
        ("environment", True, None),
        ("client", {"result": None}, Reply("")),
        ("client", {"result": "x", "error": True}, Reply("x", is_error=True)),
        ("client", True, None),
    ],
)
def test_what_a_payload_answers(kind: str, payload: Any, answer: Any) -> None:
    """A wrong guess might run a dangerous tool, so what is not clear is no answer."""
    assert answer_to(item(kind), resolved(payload)) == answer


def test_cancelled() -> None:
    """It refuses or gives up, with a reason where one is given; never an empty result."""
    told = ResumeEntry("c1", "cancelled", {"reason": "no"})

    assert answer_to(item(), told) == Reject("no")
    assert answer_to(item("client"), ResumeEntry("c1", "cancelled")) == Reject()
    assert answer_to(item("environment"), told) == GiveUp()


@pytest.mark.parametrize(
    ("payload", "code", "path"),
    [
        ("maybe", "interrupt_invalid", "resume[0].payload"),
        ({"result": " "}, "interrupt_invalid", "resume[0].payload"),
        ({"approved": True, "editedArgs": []}, "interrupt_invalid", "resume[0].payload"),
        (
            {"approved": True, "editedArgs": {"to": "a", "amount": "x"}},
            "invalid_arguments",
            "resume[0].payload.editedArgs",
        ),
    ],
)
def test_what_does_not_fit(payload: Any, code: str, path: str) -> None:
    """HITL6, HITL7: the problem has its code and the path of the bad member."""
    problem = problem_of("resume[0]", item(), resolved(payload), waiting())

    assert problem is not None and (problem.code, problem.path) == (code, path)


def test_too_late_and_gone() -> None:
    """After its time a question can only be given up; a tool may be gone."""
    late = waiting(expires_at=99.0)
    gone = Waiting(waiting().record, 0.0, ToolSet())
    yes = resolved(True)

    assert problem_of("", item(), yes, waiting()) is None
    found = problem_of("", item(), yes, late), problem_of("", item(), yes, gone)
    assert [p and (p.code, p.path) for p in found] == [
        ("interrupt_expired", "payload"),
        ("tool_gone", "payload"),
    ]
    assert problem_of("", item(), ResumeEntry("c1", "cancelled"), late) is None


def test_how_they_are_asked() -> None:
    """Reason, metadata, schema and expiry of each kind."""
    found = interrupts([item(), item("environment")], 1_796_040_000.0).interrupts

    assert [i.reason for i in found] == ["tool_call", "backscroll.environment"]
    assert found[0].expires_at == "2026-11-30T12:00:00Z" and found[0].message == "why"
    assert found[0].metadata == {"kind": "approval", "toolName": "pay", "input": {"to": "ann"}}
    assert found[1].response_schema is not None
    assert found[1].response_schema["required"] == ["retry"]
    assert interrupts([item()]).interrupts[0].expires_at is None
