"""The end of a run: what is still said, in order."""

from __future__ import annotations

import json
from typing import Any

import pytest
from ag_ui import core as ag
from backscroll.agui.live_run import Activity
from backscroll.agui.messages import Shown
from backscroll.agui.run_end import CANCELLED, RunEnd, failed_with
from backscroll.agui.snapshot import messages_snapshot
from backscroll.agui.terminal import Ending, activity_event, ending_events, result_event
from backscroll.kernel.message import tool_result, user
from backscroll.kernel.turn import PauseItem
from backscroll.kernel.usage import Usage

RESULT = tool_result("c", "add", "Not executed.", id="t1", outcome="cancelled")


def told(ending: Ending) -> list[dict[str, Any]]:
    """Return the last events of run r of thread t."""
    events = ending_events("t", "r", ending, Shown())
    return [json.loads(event.model_dump_json(by_alias=True)) for event in events]


def test_the_order_of_the_end() -> None:
    """Results, the correction, activities, steps from the inside out, the terminal event."""
    ending = Ending(
        RunEnd("completed"),
        [RESULT],
        messages_snapshot([user("q", "u")]),
        [Activity("cmp_1", "k", {"status": "running"}), Activity("cmp_2", "k", {"status": "done"})],
        ["outer", "inner"],
    )

    events = told(ending)

    assert [event["type"] for event in events] == [
        "TOOL_CALL_RESULT",
        "MESSAGES_SNAPSHOT",
        "ACTIVITY_SNAPSHOT",
        "STEP_FINISHED",
        "STEP_FINISHED",
        "RUN_FINISHED",
    ]
    assert [e["stepName"] for e in events[3:5]] == ["inner", "outer"]


@pytest.mark.parametrize(
    ("end", "status"), [(CANCELLED, "cancelled"), (failed_with("worker_lost"), "failed")]
)
def test_running_activities_end_as_the_run_does(end: RunEnd, status: str) -> None:
    """An activity that cannot go on says why."""
    ending = Ending(end, activities=[Activity("cmp_1", "k", {"status": "running", "x": 1})])

    assert told(ending)[0]["content"] == {"status": status, "x": 1}


def test_usage_is_on_both_terminal_events() -> None:
    """Only numbers that are known; nothing known, no usage."""
    used = {("openai", "m"): Usage(1, 2), ("demo", "d"): Usage()}

    finished = told(Ending(RunEnd("completed"), usage=used))[-1]
    error = told(Ending(failed_with("run_timeout"), usage=used))[-1]

    item = {"provider": "openai", "model": "m", "inputTokens": 1, "outputTokens": 2}
    assert finished["usage"] == error["usage"] == [item]
    assert "usage" not in told(Ending(CANCELLED, usage={("demo", "d"): Usage()}))[-1]


def test_errors_say_what_helps() -> None:
    """Trying again, and the number under which operators find it; nothing where it does not."""
    again = RunEnd("failed", code="network", message="Gone.", is_retryable=True, request_id="q1")
    plain = RunEnd("failed", code="auth", message="No.")

    assert told(Ending(again))[-1]["metadata"]["backscroll"] == {
        "retryable": True,
        "request_id": "q1",
    }
    assert "metadata" not in told(Ending(plain))[-1]


def test_results_and_activities_as_events() -> None:
    """They are made the same way wherever they come from."""
    result = result_event(RESULT, Shown())
    activity = activity_event("cmp_1", "k", {"status": "done"})

    assert isinstance(result, ag.ToolCallResultEvent) and result.tool_call_id == "c"
    assert result.metadata == {"backscroll": {"outcome": "cancelled"}}
    assert isinstance(activity, ag.ActivitySnapshotEvent) and activity.replace is None


def test_questions_come_before_pending_calls() -> None:
    """While both are open, the interrupt outcome lists the questions only."""
    item = PauseItem("c1", "approval", "pay", {"to": "ann"}, "why", ("approve",))
    end = RunEnd("completed", pending=("c2",), questions=(item,), expires_at=1_796_040_000.0)

    (finished,) = told(Ending(end))

    assert finished["outcome"]["type"] == "interrupt"
    (question,) = finished["outcome"]["interrupts"]
    assert (question["id"], question["expiresAt"]) == ("c1", "2026-11-30T12:00:00Z")
