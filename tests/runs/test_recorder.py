"""What operators read of a run, made from what it reports."""

from __future__ import annotations

import json
from typing import Any

from agui_stories import SCOPE, returned, said
from backscroll.agent import events as agent
from backscroll.compaction.decision import CompactionFinished
from backscroll.compaction.rebuild import rebuild
from backscroll.compaction.tokens import Sizes
from backscroll.kernel.errors import ModelError, Refusal
from backscroll.kernel.message import tool_result, user
from backscroll.kernel.model import ModelRequest
from backscroll.kernel.request import Note, ViewPlanned
from backscroll.kernel.tool import ToolSpec
from backscroll.kernel.usage import FinishReason, Usage
from backscroll.runs.notes import note_blob
from backscroll.runs.recorder import NOTHING, Recorded, Recorder, decision_line, with_positions
from scripted_model import ScriptedModel

HISTORY = ((1, user("hello", "u1")), (3, user("again", "u2")))
MODEL: Any = ScriptedModel(name="m-large")
DECISION: dict[str, Any] = {
    "attempt": 1,
    "trigger": "ratio",
    "stages": [{"stage": "micro", "status": "done"}],
    "before": {"messages": 5, "tokens": 900},
    "after": {"messages": 4, "tokens": 500},
    "result": "done",
}


def recorder(**known: Any) -> Recorder:
    """Return the recorder of run r1 on worker w."""
    return Recorder("r1", "w", Sizes(), **{"calls": 0, "compactions": 0, **known})


def started(attempt: int = 1, *texts: str) -> agent.CallStarted:
    """Return the beginning of a call that sends the history after its system texts."""
    tools = (ToolSpec("add", "Add.", {"type": "object"}),)
    request = ModelRequest(tuple(m for _, m in HISTORY), system=texts or ("Be kind.",), tools=tools)
    return agent.CallStarted(
        **SCOPE, message_id="m1", attempt=attempt, request=request, model=MODEL, stream=True
    )


def finished(**facts: Any) -> agent.CallFinished:
    """Return the end of a call."""
    return agent.CallFinished(
        **{**SCOPE, "message_id": "m1", "attempt": 1, "duration_s": 1.5, **facts}
    )


def reported(report: Any) -> agent.Reported:
    """Return the event that carries a report."""
    return agent.Reported(**SCOPE, report=report)


def body(recorded: Recorded) -> Any:
    """Return the body of the one entry."""
    (entry,) = recorded.entries
    assert entry.audience == "operator" and entry.run == "r1"
    return json.loads(entry.body)


def test_a_call_is_recorded_exactly() -> None:
    """The record rebuilds what is sent, and the head of the thread says what is in use."""
    made = recorder(calls=40).take(started(), HISTORY)

    record = body(made)
    rebuilt = rebuild(record, HISTORY, made.blobs)
    assert [json.loads(form or "")["role"] for form in rebuilt.sent] == ["system", "user", "user"]
    assert (record["call"], record["attempt"], record["run"], record["worker"]) == (
        41,
        1,
        "r1",
        "w",
    )
    assert made.entries[0].ref == "41"
    assert (made.meta["call"], made.meta["model"]) == ("41", "m-large")
    context = json.loads(made.meta["context"])
    assert (context["call"], context["source"]) == (41, "estimate") and context["tokens"] > 0


def test_the_preview_counts_the_tools_too() -> None:
    """The tokens named are those of the whole request."""
    made = recorder().take(started(), HISTORY)

    parts = body(made)["sent"]["parts"]
    tokens = sum(part[0] for part in parts.values())
    assert "tools" in parts
    preview = made.entries[0].preview
    assert preview == f"call 1, attempt 1, m-large, 3 messages, {tokens} tokens"


def test_attempts_share_a_number_and_iterations_are_named() -> None:
    """A second attempt is the same call; the next call is the next number."""
    by = recorder()
    by.take(agent.IterationStarted(**SCOPE, index=2, remaining=5), HISTORY)

    records = [body(by.take(started(attempt), HISTORY)) for attempt in (1, 2, 1)]

    assert [(r["call"], r["attempt"]) for r in records] == [(1, 1), (1, 2), (2, 1)]
    assert {r["iteration"] for r in records} == {3}
    assert by.call == 2


def test_plans_belong_to_the_next_call_alone() -> None:
    """What was planned for one request is not said of another; the window is shown."""
    by = recorder()
    plan = ViewPlanned((), {"budget": {"window": 8000}, "warnings": ["window_assumed"]})
    nothing = by.take(reported(plan), HISTORY)

    first, second = by.take(started(), HISTORY), by.take(started(), HISTORY)

    assert nothing == NOTHING
    assert body(first)["budget"] == {"window": 8000} and "budget" not in body(second)
    assert json.loads(first.meta["context"])["window"] == 8000


def test_an_outcome_says_what_came_of_it() -> None:
    """Usage, finish reason, time, tries and the reply's id."""
    by = recorder()
    by.take(started(), HISTORY)
    by.take(
        agent.CallRetried(
            **SCOPE, message_id="m1", try_number=2, delay_s=1, error=ModelError("network", "gone")
        ),
        HISTORY,
    )

    made = by.take(finished(usage=Usage(100, 20), finish_reason=FinishReason.STOP), HISTORY)

    assert made.entries[0].type == "finished"
    assert body(made) == {
        "call": 1,
        "attempt": 1,
        "message": "m1",
        "ms": 1500,
        "tries": 3,
        "usage": {"input_tokens": 100, "output_tokens": 20},
        "finish_reason": "stop",
        "status": "ok",
    }
    assert made.entries[0].preview == "stop, 1500 ms, 100 in, 20 out"


def test_a_failure_names_its_rule_and_is_cut() -> None:
    """Kind, status and class are kept, of the words the first 300 characters."""
    by = recorder()
    by.take(started(), HISTORY)
    error = ModelError(
        "context_overflow", "x" * 400, status=400, refusal=Refusal("overflow_tokens", rule="r")
    )

    made = by.take(finished(error=error), HISTORY)

    found = body(made)["error"]
    assert (made.entries[0].type, body(made)["status"]) == ("failed", "error")
    assert (found["status"], found["class"], found["rule"]) == (400, "overflow_tokens", "r")
    assert len(found["message"]) == 300 and made.entries[0].is_error


def test_a_cancelled_call_is_no_failure() -> None:
    """It was stopped, which is no error of the thread."""
    made = recorder().take(finished(error=ModelError("cancelled", "stopped")), HISTORY)

    assert made.entries[0].type == "cancelled" and not made.entries[0].is_error
    assert body(made)["status"] == "cancelled"


def test_a_decision_comes_before_the_call_it_is_for() -> None:
    """Numbered per thread; its range and cut name positions of the store."""
    by = recorder(calls=7, compactions=2)
    not_there = {"position": 1, "why": "too little"}
    cut = {"position": 2, "why": "safe", "rejected": [{**not_there, "position": 2}, not_there]}
    decision = {**DECISION, "covers": [1, 2], "cut": cut}

    made = by.take(reported(CompactionFinished(decision, {"sha": b"text"})), HISTORY)

    found = body(made)
    assert (found["compaction"], found["call"]) == (3, 8)
    assert found["covers"] == [1, 3] and found["cut"]["position"] == 3
    assert [one["position"] for one in found["cut"]["rejected"]] == [3, 1]
    assert made.blobs == {"sha": b"text"} and made.entries[0].ref == "3"


def test_a_decision_of_the_second_attempt_is_for_the_same_call() -> None:
    """A forced compaction belongs to the call that was refused."""
    by = recorder()
    by.take(started(), HISTORY)

    made = by.take(reported(CompactionFinished({**DECISION, "attempt": 2})), HISTORY)

    assert body(made)["call"] == 1


def test_a_record_names_the_decision_that_made_its_summary() -> None:
    """Also in a later run: which decision made which prefix is kept with the thread."""
    by = recorder()
    fresh = {**DECISION, "summary": {"source": "fresh"}, "cache": {"prefix_hash": "aa"}}
    kept = by.take(reported(CompactionFinished(fresh)), HISTORY).meta["summaries"]
    later = recorder(compactions=1, summaries=json.loads(kept))
    for each in (by, later):
        each.take(reported(ViewPlanned((), {"cache": {"prefix_hash": "aa"}})), HISTORY)

    assert body(by.take(started(), HISTORY))["compaction"] == 1
    assert body(later.take(started(), HISTORY))["compaction"] == 1


def test_a_note_of_one_key_is_kept_once() -> None:
    """Within the run, and not at all when an earlier run has written it."""
    by, later = recorder(), recorder()
    note = Note("repair", "moved", "repair:m1")
    later.mark_noted("repair:m1")

    first, second = by.take(reported(note), HISTORY), by.take(reported(note), HISTORY)

    assert body(first)["key"] == "repair:m1" and second == NOTHING
    assert dict([note_blob("repair:m1")]) == dict(first.blobs)
    assert later.note(note) == NOTHING and later.is_noted("repair:m1")


def test_notes_without_a_key_are_all_kept() -> None:
    """What has no key may happen twice."""
    by = recorder()

    assert all(by.note(Note("empty_reply", "nothing said")).entries for _ in range(2))


def test_a_conflict_of_writes_is_noted() -> None:
    """A slot written twice in one batch is told to operators."""
    event = agent.ContextChanged(**SCOPE, keys=("a",), conflicts=("a", "b"))

    assert body(recorder().take(event, HISTORY))["text"] == "written twice in one batch: a, b"
    quiet = agent.ContextChanged(**SCOPE, keys=("a",))
    assert recorder().take(quiet, HISTORY) == NOTHING


def test_what_clients_see_is_not_recorded_again() -> None:
    """Deltas and results are events; there is no operator entry beside them."""
    by = recorder()

    for event in (*said("m1", "hello"), returned(tool_result("c", "add", "3", id="t1"))):
        assert by.take(event, HISTORY) == NOTHING


def test_positions_outside_the_history_stay_as_they_are() -> None:
    """A range that the history read last does not reach is not translated."""
    decision = {**DECISION, "covers": [1, 9], "cut": {"position": 0}}

    assert with_positions(decision, HISTORY) == decision


def test_a_decision_in_one_line() -> None:
    """What was done, what it changed, and why where there is a reason."""
    assert decision_line(DECISION) == "ratio: micro, 5 to 4 messages, 900 to 500 tokens"
    nothing = {**DECISION, "stages": [], "reason": "no_summariser"}
    assert decision_line(nothing).startswith("ratio: nothing, ")
    assert decision_line(nothing).endswith(", no_summariser")
