"""Events made small enough for a reader."""

from __future__ import annotations

import json
from typing import Any

from ag_ui import core as ag
from agui_checker import assert_valid
from backscroll.agui.fit import ENVELOPE_BYTES, fit_event, fits
from backscroll.agui.messages import Shown, echo, to_wire_messages
from backscroll.agui.snapshot import messages_snapshot
from backscroll.agui.wire import event_json
from backscroll.kernel.content import FilePart, TextPart
from backscroll.kernel.message import assistant, tool_result, user

LIMIT = 200_000
PHOTO = user((TextPart("See:"), FilePart("image/png", data="A" * 4_133_334)), "u1")


def fitted(event: ag.BaseEvent, limit: int = LIMIT) -> dict[str, Any] | None:
    """Return an event as a reader with a limit gets it."""
    text = fit_event(event_json(event, 7), limit)
    if text is None:
        return None
    assert fits(text, limit)
    value: dict[str, Any] = json.loads(text)
    return value


def test_small_events_are_left_alone() -> None:
    """The text is not even read."""
    assert fit_event("no JSON at all", LIMIT) == "no JSON at all"
    assert fits("x" * 10**6, None)


def test_bytes_count_not_characters() -> None:
    """A limit is a number of bytes, the frame around the event included."""
    text = "你" * 1000

    assert fits(text, 3000 + ENVELOPE_BYTES) and not fits(text, 2999 + ENVELOPE_BYTES)


def test_large_media_become_a_line() -> None:
    """In snapshots and echoes; text beside it stays."""
    snapshot = fitted(messages_snapshot([PHOTO]) or ag.BaseEvent(type=ag.EventType.RAW))
    started = ag.RunStartedEvent(
        thread_id="t", run_id="r", protocol_version="1.0", input=echo("t", "r", [PHOTO])
    )
    echoed = fitted(started)

    line = {"type": "text", "text": "[image, image/png, 3.1 MB]"}
    assert snapshot is not None and snapshot["messages"][0]["content"][1] == line
    assert echoed is not None and echoed["input"]["messages"][0]["content"][1] == line
    assert_valid([echoed, {**snapshot, "timestamp": 8}, *_end()])


def _end() -> list[dict[str, Any]]:
    finished = ag.RunFinishedEvent(thread_id="t", run_id="r")
    return [json.loads(event_json(finished, 9))]


def test_small_media_stay() -> None:
    """Only what is large is replaced."""
    small = FilePart("image/png", data="A" * 1000)
    photo = user((small, FilePart("image/png", data="A" * 400_000), TextPart("x" * 90_000)), "u1")

    event = fitted(messages_snapshot([photo]) or ag.BaseEvent(type=ag.EventType.RAW))

    assert event is not None
    kinds = [part["type"] for part in event["messages"][0]["content"]]
    assert kinds == ["image", "text", "text"]
    assert len(event["messages"][0]["content"][2]["text"]) <= 65_536


def test_long_texts_are_cut() -> None:
    """Results, and every message of a snapshot, are cut to head and tail."""
    result = ag.ToolCallResultEvent(message_id="t1", tool_call_id="c", content="x" * 300_000)
    history = [assistant("y" * 300_000, id="a"), tool_result("c", "add", "z" * 100_000, id="t1")]

    told = fitted(result)
    snapshot = fitted(messages_snapshot(history) or result)

    assert told is not None and "characters left out" in told["content"]
    assert snapshot is not None
    assert [len(m["content"]) <= 65_536 for m in snapshot["messages"]] == [True, True]


def test_what_cannot_be_shortened() -> None:
    """Many messages, or an event that has no long texts: only a resync helps."""
    many = messages_snapshot([user("x" * 60_000, f"u{n}") for n in range(10)])
    delta = ag.TextMessageContentEvent(message_id="m", delta="x" * 300_000)

    assert many is not None and fitted(many) is None and fitted(delta) is None


def test_what_has_no_content_is_left_alone() -> None:
    """Activities and replies without text."""
    call = to_wire_messages(assistant(None, id="a").replace(reasoning="Hm"), Shown())
    activity = ag.ActivityMessage(id="x", activity_type="k", content={"a": 1})
    photo = to_wire_messages(PHOTO, Shown())
    reply = ag.AssistantMessage(id="b")

    event = fitted(ag.MessagesSnapshotEvent(messages=[*call, activity, reply, *photo]))

    assert event is not None and [m["id"] for m in event["messages"]] == ["a.r", "x", "b", "u1"]
