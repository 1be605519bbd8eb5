"""One run as events: how it ends, and what is put right before."""

from __future__ import annotations

import pytest
from agui_stories import (
    COMPLETED,
    FakeModel,
    answered,
    args,
    asked,
    called,
    closed,
    encoder,
    iteration,
    opened,
    played,
    replied,
    said,
    thought,
    types,
    values,
)
from backscroll.agent.events import TurnEnded
from backscroll.agui.run_end import CANCELLED, RunEnd, failed, failed_with
from backscroll.kernel.errors import ModelError
from backscroll.kernel.message import assistant, parse_call, tool_call, tool_result, user
from backscroll.kernel.turn import TurnResult
from backscroll.kernel.usage import Usage


def test_exactly_one_terminal_event() -> None:
    """protocol-04: after the terminal event nothing comes, whatever is fed or closed again."""
    by = encoder()
    played(said("m", "Hi"), by)

    assert types(by.close(failed_with("run_timeout")))[-1] == "RUN_ERROR"
    assert by.is_closed and by.close(COMPLETED) == [] and by.feed(said("m", "late")[0]) == []
    assert by.activity("a", "k", {}) == [] and by.custom("n", 1) == []


@pytest.mark.parametrize("end", [COMPLETED, CANCELLED, failed_with("worker_lost")])
def test_the_end_closes_everything_in_order(end: RunEnd) -> None:
    """Reasoning, text, calls, then the step, then the terminal event."""
    by = encoder()
    played([iteration(0), *thought("m", "a"), *said("m", "b"), opened("m", "c")], by)

    kinds = types(by.close(end))

    assert kinds[:-1] == ["TOOL_CALL_END", "STEP_FINISHED"]


def test_terminal_events() -> None:
    """The three ends, as clients tell them apart."""
    completed = values(encoder().close(RunEnd("completed", result={"a": 1}, pending=("c1",))))[-1]
    cancelled = values(encoder().close(CANCELLED))[-1]
    error = values(encoder().close(failed(ModelError("network", "gone"), "req_1")))[-1]

    assert completed["outcome"] == {"type": "success", "pendingToolCallIds": ["c1"]}
    assert completed["result"] == {"a": 1}
    assert cancelled["outcome"] == {"type": "cancelled"} and "result" not in cancelled
    assert (error["code"], error["message"]) == ("network", "The model could not be reached.")
    assert error["metadata"] == {"backscroll": {"retryable": True, "request_id": "req_1"}}


def test_usage_is_summed_by_provider_and_model() -> None:
    """All calls of a model are one item; numbers nobody reported are absent."""
    by = encoder()
    small = FakeModel("m-small", "demo")
    first = [asked("m1"), replied("m1", Usage(5, 3)), asked("m2"), replied("m2", Usage(2, None, 1))]
    played([*first, asked("m3", small), replied("m3")], by)
    by.add_usage("openai", "m-large", Usage(10))

    usage = values(by.close(COMPLETED))[-1]["usage"]

    assert usage == [
        {
            "provider": "openai",
            "model": "m-large",
            "inputTokens": 17,
            "outputTokens": 3,
            "cachedInputTokens": 1,
        }
    ]
    assert by.usage[0]["input_tokens"] == 17


def test_a_half_received_call_is_put_right() -> None:
    """What was sent but is not stored is corrected by a snapshot before the end."""
    by = encoder()
    played([*said("m", "Hi"), opened("m", "c"), args("m", "c", '{"a"')], by)

    entries = by.close(failed_with("worker_lost"), [user("q", "u1"), assistant("Hi", id="m")], 1)

    assert types(entries)[-2:] == ["MESSAGES_SNAPSHOT", "RUN_ERROR"]
    assert values(entries)[-2]["messages"][-1] == {"id": "m", "role": "assistant", "content": "Hi"}


def test_what_is_stored_as_sent_needs_no_snapshot() -> None:
    """A snapshot is not repeated at the end of ordinary runs."""
    by = encoder()
    played([*thought("m", "Hmm"), *said("m", "Hi"), *called("m", "c", ""), replied("m")], by)
    stored = assistant("Hi", [parse_call("c", "add", "")], id="m").replace(reasoning="Hmm")

    assert types(by.close(COMPLETED, [user("q", "u1"), stored], 1)) == ["RUN_FINISHED"]


def test_a_replaced_reply_is_put_right() -> None:
    """A reply that a filter replaced after it was streamed is corrected."""
    by = encoder()
    played(answered("m", "raw words"), by)

    entries = by.close(COMPLETED, [assistant("better words", id="m")])

    assert types(entries) == ["MESSAGES_SNAPSHOT", "RUN_FINISHED"]


def test_a_blocked_run_is_not_put_right() -> None:
    """Question and refusal of a blocked run stay on the screen of who asked."""
    by = encoder()
    result = TurnResult("completed", text="I can't.", blocked_by="safeguard")
    ended = TurnEnded(agent="a", conversation_id="t", turn_id="x", result=result)

    entries = [*by.feed(ended), *by.close(RunEnd("completed", is_blocked=True), [])]

    assert types(entries) == [
        "TEXT_MESSAGE_START",
        "TEXT_MESSAGE_CONTENT",
        "TEXT_MESSAGE_END",
        "RUN_FINISHED",
    ]


def test_results_stored_unseen_are_sent_at_the_end() -> None:
    """Every stored call has its result on the wire before the terminal event."""
    by = encoder()
    played([*called("m", "c", "{}"), replied("m")], by)
    call = assistant(None, [tool_call("c", "add")], id="m")
    made = tool_result("c", "add", "Not executed.", id="t1", outcome="cancelled")

    assert types(by.close(CANCELLED, [call, made])) == ["TOOL_CALL_RESULT", "RUN_FINISHED"]


def test_running_activities_get_a_final_status() -> None:
    """An activity that is still running when the run ends is stated once more."""
    by = encoder()
    by.activity("cmp_1", "backscroll.compaction", {"status": "running", "trigger": "ratio"})
    by.activity("cmp_2", "backscroll.compaction", {"status": "done"})

    entries = values(by.close(CANCELLED))

    assert [e["content"]["status"] for e in entries[:-1]] == ["cancelled"]
    assert entries[0]["messageId"] == "cmp_1" and entries[0]["content"]["trigger"] == "ratio"


def test_closing_twice_open_parallel_calls() -> None:
    """All open calls end in the order they were opened."""
    by = encoder()
    played([opened("m", "c1"), opened("m", "c2"), closed("m", "c2")], by)

    assert [e.get("toolCallId") for e in values(by.close(CANCELLED))[:-1]] == ["c1"]
