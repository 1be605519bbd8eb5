"""One run as events: how it begins and what it shows on the way."""

from __future__ import annotations

from typing import Any

import pytest
from agui_stories import (
    COMPLETED,
    answered,
    args,
    called,
    encoder,
    iteration,
    opened,
    played,
    replied,
    returned,
    said,
    thought,
    types,
    values,
)
from backscroll.agent.events import TurnEnded
from backscroll.agui.messages import Shown
from backscroll.kernel.errors import ModelError
from backscroll.kernel.message import assistant, tool_result, user
from backscroll.kernel.turn import TurnResult


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

    assert types(played([iteration(0), *answered("m", "Hi")], by))[1] == "TEXT_MESSAGE_START"
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


def test_entries_name_what_they_are_about() -> None:
    """Each entry has run, audience, ref and a preview for operators."""
    started, _, content, *_ = played(answered("m", "Hello\nthere"))
    first = encoder().start([user("Refund order 42", "u1")])[0]

    assert (started.run, started.kind, started.audience, started.ref) == (
        "r1",
        "event",
        "client",
        "r1",
    )
    assert (content.ref, content.preview) == ("m", "Hello\nthere")
    assert first.preview == "Refund order 42"
