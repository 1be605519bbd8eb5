"""The checker itself: each rule is broken once, and found."""

from __future__ import annotations

import json
from typing import Any

import pytest
from agui_checker import assert_valid, problems_of

START = {"type": "RUN_STARTED", "threadId": "t", "runId": "r1", "protocolVersion": "1.0"}
DONE = {"type": "RUN_FINISHED", "threadId": "t", "runId": "r1", "outcome": {"type": "success"}}
ERROR = {"type": "RUN_ERROR", "message": "Gone.", "code": "network"}
TEXT = {"type": "TEXT_MESSAGE_START", "messageId": "m", "role": "assistant"}
SAID = {"type": "TEXT_MESSAGE_CONTENT", "messageId": "m", "delta": "Hi"}
TEXT_END = {"type": "TEXT_MESSAGE_END", "messageId": "m"}
THINK = {"type": "REASONING_START", "messageId": "m.r"}
THOUGHT = {"type": "REASONING_MESSAGE_START", "messageId": "m.r", "role": "reasoning"}
CALL = {
    "type": "TOOL_CALL_START",
    "toolCallId": "c",
    "toolCallName": "add",
    "parentMessageId": "m",
}
CALL_END = {"type": "TOOL_CALL_END", "toolCallId": "c"}
RESULT = {
    "type": "TOOL_CALL_RESULT",
    "messageId": "t1",
    "toolCallId": "c",
    "content": "3",
    "role": "tool",
}
STEP = {"type": "STEP_STARTED", "stepName": "iteration-1"}
STATE = {"type": "STATE_SNAPSHOT", "snapshot": {"a": 1}}
PATCH = {"type": "STATE_DELTA", "delta": [{"op": "remove", "path": "/b"}]}
ACTIVITY = {"type": "ACTIVITY_DELTA", "messageId": "x", "activityType": "k", "patch": []}
USER = {"id": "u", "role": "user", "content": "q"}


def stream(*events: dict[str, Any]) -> list[dict[str, Any]]:
    """Return events with timestamps."""
    return [{"timestamp": 1000 + at, **event} for at, event in enumerate(events)]


def snapshot(*messages: dict[str, Any]) -> dict[str, Any]:
    """Return a snapshot of messages."""
    return {"type": "MESSAGES_SNAPSHOT", "messages": list(messages)}


def test_a_good_stream_has_no_problems() -> None:
    """Two runs with everything in them."""
    first = [START, STEP, THINK, THOUGHT, _end("REASONING_MESSAGE_END"), _end("REASONING_END")]
    first += [TEXT, SAID, TEXT_END, CALL, CALL_END, RESULT, STATE, snapshot(USER)]
    first += [{**STEP, "type": "STEP_FINISHED"}, DONE]
    second = [{**START, "runId": "r2"}, {**DONE, "runId": "r2"}]

    assert_valid([json.dumps(event) for event in stream(*first, *second)])


def _end(kind: str) -> dict[str, Any]:
    return {"type": kind, "messageId": "m.r"}


@pytest.mark.parametrize(
    ("rule", "events"),
    [
        ("V1", [STEP]),
        ("V2", [START, START]),
        ("V3", [START, DONE, STEP]),
        ("V4", [START, ERROR, ERROR]),
        ("V5", [START, TEXT, TEXT]),
        ("V6", [START, SAID]),
        ("V6", [START, CALL_END]),
        ("V7", [START, STEP, STEP]),
        ("V7", [START, {**STEP, "type": "STEP_FINISHED"}]),
        ("V8", [START, TEXT, DONE]),
        ("V8", [START, STEP, ERROR]),
        ("V11", [START, {**STEP, "subagentRunId": "s"}]),
        ("V12", [START, {**SAID, "delta": None}]),
        ("V12", [START, {**STEP, "timestamp": 0.5}]),
        ("V12", [START, {**TEXT, "name": None}]),
        ("V13", [START, {**STEP, "extra": 1}]),
        ("E3", [{**START, "timestamp": 2000}, {**STEP, "timestamp": 1999}]),
        ("E4", [{k: v for k, v in START.items() if k != "protocolVersion"}]),
        ("E6", [START, {"type": "RAW", "event": {}}]),
        ("E8", [START, TEXT, {**SAID, "delta": ""}]),
        ("runs", [START, {**DONE, "runId": "r2"}]),
        ("runs", [START, DONE, START]),
        ("lanes", [START, TEXT, CALL]),
        ("lanes", [START, TEXT, {**TEXT, "messageId": "n"}]),
        ("spans", [START, THINK, THOUGHT, {"type": "REASONING_END", "messageId": "m.r"}]),
        ("ids", [START, THINK, {**THOUGHT, "messageId": "m"}, TEXT]),
        ("ids", [START, CALL, CALL_END, CALL]),
        ("results", [START, RESULT]),
        ("results", [START, CALL, RESULT]),
        ("results", [START, CALL, CALL_END, RESULT, {**RESULT, "messageId": "t2"}]),
        ("pending", [START, {**DONE, "outcome": {"type": "success", "pendingToolCallIds": ["c"]}}]),
        ("snapshot", [START, snapshot()]),
        ("snapshot", [START, snapshot(USER, USER)]),
        ("snapshot", [START, TEXT, snapshot(USER)]),
        ("state", [START, PATCH]),
        ("patch", [START, STATE, PATCH]),
        ("activity", [START, ACTIVITY]),
    ],
)
def test_a_broken_rule_is_found(rule: str, events: list[dict[str, Any]]) -> None:
    """Each fault is named by its rule."""
    found = problems_of(stream(*events))

    assert any(f" {rule}: " in problem for problem in found), found


def test_a_run_without_an_end_is_found() -> None:
    """A stream that stops inside a run."""
    assert problems_of(stream(START)) == ["run r1 has no terminal event"]
    with pytest.raises(AssertionError, match="no terminal event"):
        assert_valid(stream(START))
