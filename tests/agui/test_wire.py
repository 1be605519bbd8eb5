"""Events as bytes and as entries."""

from __future__ import annotations

import json
from typing import Any

import pytest
from ag_ui import core as ag
from agui_stories import stamped
from backscroll.agui.wire import event_entry, event_json, preview, read_event
from backscroll.store.entry import STAMP


def test_absent_means_absent() -> None:
    """Null appears only where it is data."""
    event = ag.CustomEvent(name="app.x", value={"a": None})

    assert json.loads(event_json(event, 7)) == {
        "type": "CUSTOM",
        "timestamp": 7,
        "name": "app.x",
        "value": {"a": None},
    }


def test_the_stamp_is_where_the_log_puts_its_time() -> None:
    """The placeholder is told by its place, counted from 1, not by its look."""
    event = ag.TextMessageContentEvent(message_id="m", delta='{"timestamp":0000000000000}')

    entry = event_entry(event, "r1")

    assert entry.body[entry.stamp_at - 1 : entry.stamp_at + 12] == STAMP
    assert json.loads(stamped(entry.body))["delta"] == '{"timestamp":0000000000000}'


def test_text_is_utf8_on_one_line() -> None:
    """No escapes for other scripts, no raw line breaks, no half characters."""
    event = ag.TextMessageContentEvent(message_id="m", delta="你好\n🌍\ud800")

    text = event_json(event, 7)

    assert "你好" in text and "\n" not in text and json.loads(text)["delta"] == "你好\n🌍\ufffd"


def test_half_characters_are_found_everywhere() -> None:
    """In keys, lists and nested values too."""
    event = ag.CustomEvent(name="x", value={"\ud800": ["\udfff", 1, {"a": "b"}]})

    assert json.loads(event_json(event, 7))["value"] == {"\ufffd": ["\ufffd", 1, {"a": "b"}]}


@pytest.mark.parametrize(
    ("event", "ref", "line"),
    [
        (ag.RunStartedEvent(thread_id="t", run_id="r1"), "r1", ""),
        (ag.RunFinishedEvent(thread_id="t", run_id="r1"), "r1", "success"),
        (ag.RunErrorEvent(message="Gone."), "r1", "Gone."),
        (ag.StepStartedEvent(step_name="iteration-1"), "iteration-1", "iteration-1"),
        (ag.StepFinishedEvent(step_name="iteration-1"), "iteration-1", "iteration-1"),
        (ag.TextMessageStartEvent(message_id="m", role="assistant"), "m", "assistant"),
        (ag.TextMessageContentEvent(message_id="m", delta="Hi"), "m", "Hi"),
        (ag.TextMessageEndEvent(message_id="m"), "m", ""),
        (ag.ReasoningMessageContentEvent(message_id="m.r", delta="Hm"), "m.r", "Hm"),
        (ag.ToolCallStartEvent(tool_call_id="c", tool_call_name="add"), "c", "add"),
        (ag.ToolCallArgsEvent(tool_call_id="c", delta="{}"), "c", "{}"),
        (ag.ToolCallResultEvent(message_id="t", tool_call_id="c", content="3"), "c", "3"),
        (ag.StateSnapshotEvent(snapshot={"a": []}), "", '{"a":[]}'),
        (ag.CustomEvent(name="app.x", value=1), "app.x", "app.x"),
    ],
)
def test_entries_for_operators(event: Any, ref: str, line: str) -> None:
    """What an entry is about, and one line of what it holds."""
    entry = event_entry(event, "r1")

    assert (entry.ref, entry.preview, entry.type) == (ref, line, event.type.value)


def test_previews_of_messages_and_activities() -> None:
    """A start shows the last question or answer, a snapshot how much it holds."""
    message = ag.UserMessage(id="u", content=[ag.TextPart(text="Hi"), ag.TextPart(text="you")])
    reply = ag.AssistantMessage(id="a", content="Hello")
    echo = ag.RunAgentInput(thread_id="t", run_id="r", messages=[message])
    activity = ag.ActivitySnapshotEvent(
        message_id="cmp_1", activity_type="backscroll.compaction", content={"status": "done"}
    )

    assert preview(ag.RunStartedEvent(thread_id="t", run_id="r", input=echo)) == "Hi\nyou"
    echo.messages = [reply]
    assert preview(ag.RunStartedEvent(thread_id="t", run_id="r", input=echo)) == ""
    assert preview(ag.MessagesSnapshotEvent(messages=[message, reply])) == "2 messages"
    assert preview(activity) == "backscroll.compaction done"


def test_long_previews_are_short() -> None:
    """A large result is not carried twice."""
    event = ag.TextMessageContentEvent(message_id="m", delta="x" * 60_000)

    assert len(event_entry(event, "r1").preview) <= 1280


def test_what_was_logged_can_be_read() -> None:
    """The model that comes back writes the same text."""
    text = event_json(ag.StepStartedEvent(step_name="iteration-1"), 7)

    event = read_event(text.encode())

    assert isinstance(event, ag.StepStartedEvent) and event_json(event, 7) == text
