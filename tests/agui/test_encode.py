"""One run as events: every rule of the wire that binds the writer."""

from __future__ import annotations

import json
from typing import Any

import pytest
from ag_ui_validate.pytest_plugin import assert_valid_agui
from agui_checker import assert_valid
from agui_client import Client
from agui_stories import (
    COMPLETED,
    FakeModel,
    Log,
    Story,
    args,
    asked,
    called,
    closed,
    encoder,
    iteration,
    opened,
    played,
    replied,
    returned,
    said,
    stories,
    thought,
    types,
    values,
)
from backscroll.agent.events import TurnEnded
from backscroll.agui.messages import Shown
from backscroll.agui.run_end import CANCELLED, RunEnd, failed, failed_with
from backscroll.agui.snapshot import visible_messages
from backscroll.kernel.errors import ModelError
from backscroll.kernel.message import assistant, parse_call, tool_call, tool_result, user
from backscroll.kernel.turn import TurnResult
from backscroll.kernel.usage import Usage
from hypothesis import given, settings

FALSE_POSITIVES = {"AGUI101": "off", "AGUI102": "off", "AGUI104": "off", "AGUI204": "off"}


def texts(name: str, text: str) -> list[Any]:
    """Return a reply of text alone."""
    return [asked(name), *said(name, text), replied(name)]


def test_a_run_begins_with_its_question() -> None:
    """RUN_STARTED echoes what the run added, with the lists old clients demand."""
    (started,) = values(encoder().start([user("Refund order 42", "u1")]))

    assert started == {
        "type": "RUN_STARTED",
        "threadId": "t",
        "runId": "r1",
        "protocolVersion": "1.0",
        "input": {
            "threadId": "t",
            "runId": "r1",
            "messages": [{"id": "u1", "role": "user", "content": "Refund order 42"}],
            "tools": [],
            "context": [],
        },
    }


def test_a_run_that_added_nothing_echoes_nothing() -> None:
    """Absent means absent."""
    (started,) = values(encoder().start())

    assert "input" not in started and "parentRunId" not in started


def test_a_text_message_and_a_call_in_order() -> None:
    """protocol-01: no TOOL_CALL event lies inside a text message."""
    steps = [*said("m", "Let me look"), *called("m", "c", '{"a":1,"b":2}'), replied("m")]

    assert types(played(steps))[1:] == [
        "TEXT_MESSAGE_START",
        "TEXT_MESSAGE_CONTENT",
        "TEXT_MESSAGE_END",
        "TOOL_CALL_START",
        "TOOL_CALL_ARGS",
        "TOOL_CALL_END",
    ]


def test_name_and_arguments_in_one_chunk() -> None:
    """protocol-12: both are forwarded, and the result follows."""
    result = tool_result("c1", "add", 3, id="t1")

    (_, start, arguments, end, answer) = values(
        played([*called("m", "c1", '{"a":1,"b":2}'), returned(result)])
    )

    assert start["toolCallName"] == "add" and start["parentMessageId"] == "m"
    assert arguments["delta"] == '{"a":1,"b":2}' and end["toolCallId"] == "c1"
    assert (answer["content"], answer["role"], answer["messageId"]) == ("3", "tool", "t1")


def test_only_visible_text_opens_a_message() -> None:
    """protocol-06: empty deltas open nothing; a reply with a call alone has no text events."""
    alone = played([*said("m", "", "Hi", ""), replied("m")])
    with_call = played([*said("m", ""), *called("m", "c", "{}"), replied("m")])

    assert types(alone)[1:] == ["TEXT_MESSAGE_START", "TEXT_MESSAGE_CONTENT", "TEXT_MESSAGE_END"]
    assert not any(kind.startswith("TEXT") for kind in types(with_call))


def test_steps_are_named_by_iteration() -> None:
    """Each iteration is a step; it ends when the next begins or the run ends."""
    by = encoder()
    entries = played([iteration(0), iteration(1)], by) + by.close(COMPLETED)

    assert [e.get("stepName") for e in values(entries)[1:-1]] == [
        "iteration-1",
        "iteration-1",
        "iteration-2",
        "iteration-2",
    ]


def test_timeline_off_shows_no_steps_and_no_activities() -> None:
    """At level off clients see texts, calls and results alone."""
    by = encoder(timeline="off")

    assert types(played([iteration(0), *texts("m", "Hi")], by))[1] == "TEXT_MESSAGE_START"
    assert by.activity("cmp_1", "backscroll.compaction", {"status": "done"}) == []


def test_custom_events_are_for_the_full_timeline() -> None:
    """Calls and retries are shown at level full alone."""
    value = {"call": 41, "attempt": 1}

    assert encoder().custom("backscroll.call", value) == []
    (event,) = values(encoder(timeline="full").custom("backscroll.call", value))
    assert event == {"type": "CUSTOM", "name": "backscroll.call", "value": value}


def test_reasoning_can_be_hidden() -> None:
    """Without show_reasoning nothing of it is sent."""
    hidden = encoder(shown=Shown(reasoning=False))

    assert types(played(thought("m", "Hmm"), hidden)) == ["RUN_STARTED"]
    assert "REASONING_START" in types(played(thought("m", "Hmm")))


@pytest.mark.parametrize(
    ("outcome", "told"),
    [("ok", None), ("replied", None), ("error", "error"), ("unknown", "unknown")],
)
def test_outcomes_of_results(outcome: Any, told: str | None) -> None:
    """A result says how the call went, unless it went well."""
    result = tool_result("c", "add", "x", id="t1", outcome=outcome)

    event = values(played([*called("m", "c", "{}"), returned(result)]))[-1]

    assert event.get("metadata", {}).get("backscroll", {}).get("outcome") == told


def test_long_results_are_cut_for_clients() -> None:
    """Head and tail are sent, and a line says how much is left out."""
    by = encoder(shown=Shown(result_chars=1000))
    result = tool_result("c", "add", "a" * 900 + "b" * 900, id="t1")

    event = values(played([*called("m", "c", "{}"), returned(result)], by))[-1]

    assert len(event["content"]) <= 1000 and "900 characters left out" in event["content"]


def test_a_result_ends_its_call_first() -> None:
    """A call that nobody closed is closed before its result."""
    result = tool_result("c", "add", "x", id="t1")

    kinds = types(played([opened("m", "c"), args("m", "c", "{}"), returned(result)]))

    assert kinds[-2:] == ["TOOL_CALL_END", "TOOL_CALL_RESULT"]


def test_a_reply_that_broke_off_is_marked() -> None:
    """Text cut short ends with the mark that is stored with it."""
    broken = replied("m", error=ModelError("incomplete_stream", "gone"))

    end = values(played([*said("m", "Half"), broken]))[-1]

    assert end["metadata"] == {"backscroll": {"incomplete": True}}


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


def test_settled_calls_get_their_results_at_the_start() -> None:
    """Results made up for calls nobody answered follow RUN_STARTED."""
    made = tool_result("c", "pick", "Not executed.", id="t1", outcome="cancelled")

    entries = encoder().start([user("next", "u2")], [made])

    assert types(entries) == ["RUN_STARTED", "TOOL_CALL_RESULT"]


def test_superseding_sends_the_history() -> None:
    """Where something is superseded, all clients get the history without it."""
    entries = encoder().start(superseding=[user("Hi", "u1")])

    assert types(entries) == ["RUN_STARTED", "MESSAGES_SNAPSHOT"]
    assert values(entries)[1]["messages"] == [{"id": "u1", "role": "user", "content": "Hi"}]


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
    played(texts("m", "raw words"), by)

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


def test_a_filters_answer_is_shown_once() -> None:
    """An answer that was not streamed is shown at the end; one that was is not repeated."""
    stored = assistant("Stopped.", id="m2")
    told = TurnResult("completed", text="Stopped.", message=stored, store=True)
    ended = TurnEnded(agent="a", conversation_id="t", turn_id="x", result=told)
    by = encoder()

    assert values(by.feed(ended))[0]["messageId"] == "m2"
    assert by.feed(ended) == []
    direct = TurnEnded(
        agent="a", conversation_id="t", turn_id="x", result=told.replace(return_direct=True)
    )
    assert encoder().feed(direct) == []


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


def test_entries_name_what_they_are_about() -> None:
    """Each entry has run, audience, ref and a preview for operators."""
    started, _, content, *_ = played(texts("m", "Hello\nthere"))
    first = encoder().start([user("Refund order 42", "u1")])[0]

    assert (started.run, started.kind, started.audience, started.ref) == (
        "r1",
        "event",
        "client",
        "r1",
    )
    assert (content.ref, content.preview) == ("m", "Hello\nthere")
    assert first.preview == "Refund order 42"


@given(stories())
@settings(max_examples=150, deadline=None)
def test_every_log_is_valid(story: Story) -> None:
    """V1 to V12, lanes, ids, results: no generated run breaks a rule of our own checker."""
    assert_valid(story.told().events())


@given(stories("a"), stories("b"))
@settings(max_examples=30, deadline=None)
def test_every_log_passes_the_public_validator(first: Story, second: Story) -> None:
    """The events of two runs, one after another, pass ag-ui-validate."""
    log = second.told("r2", first.told("r1"), "u2")

    lines = "\n".join(json.dumps(event) for event in log.events())
    assert_valid_agui(lines, severity_overrides=FALSE_POSITIVES, max_warnings=0)


@given(stories())
@settings(max_examples=100, deadline=None)
def test_folding_the_events_gives_the_stored_history(story: Story) -> None:
    """What a client holds at the end is what is stored."""
    log = story.told()

    wire = visible_messages(log.messages())
    snapshot = {
        "type": "MESSAGES_SNAPSHOT",
        "messages": [json.loads(m.model_dump_json(by_alias=True)) for m in wire],
    }
    assert Client().apply(*log.events()).shown() == Client().apply(snapshot).shown()


def test_a_log_can_be_read_back() -> None:
    """Stamps are where the log puts its time, whatever the event holds."""
    log = Story([*texts("m", '"timestamp":1'), assistant('"timestamp":1', id="m")]).told(log=Log())

    times = [event["timestamp"] for event in log.events()]
    assert times == sorted(times) and len({len(str(time)) for time in times}) == 1
    assert [e.seq for e in log.entries] == list(range(1, log.head + 1))


def test_closing_twice_open_parallel_calls() -> None:
    """All open calls end in the order they were opened."""
    by = encoder()
    played([opened("m", "c1"), opened("m", "c2"), closed("m", "c2")], by)

    assert [e.get("toolCallId") for e in values(by.close(CANCELLED))[:-1]] == ["c1"]
