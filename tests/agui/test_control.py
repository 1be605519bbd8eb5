"""Control frames of a socket."""

from __future__ import annotations

from typing import Any

import pytest
from backscroll.agui.control import Abort, Answer, Ping, Unwatch, Watch, is_control, parse_control
from backscroll.agui.cursor import Cursor
from backscroll.agui.input import ResumeEntry
from backscroll.agui.refusal import RequestRefused

ANSWER = {"type": "answer", "threadId": "t", "interruptId": "c", "status": "resolved"}


@pytest.mark.parametrize(
    ("frame", "control"),
    [
        ({"type": "abort", "runId": "r1"}, Abort("r1")),
        ({"type": "watch", "threadId": "t"}, Watch("t")),
        ({"type": "watch", "threadId": "t", "offset": "57.k3f0"}, Watch("t", Cursor(57, "k3f0"))),
        ({"type": "unwatch", "threadId": "t"}, Unwatch("t")),
        ({"type": "ping"}, Ping()),
        (
            {"type": "answer", "threadId": "t", "interruptId": "c", "status": "cancelled"},
            Answer("t", ResumeEntry("c", "cancelled")),
        ),
        (
            {**ANSWER, "payload": {"approved": True}, "runId": "r9"},
            Answer("t", ResumeEntry("c", "resolved", {"approved": True}), "r9"),
        ),
    ],
)
def test_frames_are_read(frame: dict[str, Any], control: object) -> None:
    """Each type is a value of its own."""
    assert is_control(frame) and parse_control(frame) == control


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        ({"type": "abort"}, "runId is missing"),
        ({"type": "abort", "runId": 5}, "runId must be text"),
        ({**ANSWER, "status": "yes"}, "status must be resolved or cancelled"),
        ({**ANSWER, "interruptId": ""}, "interruptId is empty"),
        ({**ANSWER, "runId": 5}, "runId must be text"),
        ({"type": "watch", "threadId": ""}, "threadId is empty"),
        ({"type": "watch", "threadId": "t", "offset": 5}, "offset must be text"),
        ({"type": "watch", "threadId": "t", "offset": "x"}, "offset must be a cursor"),
    ],
)
def test_bad_members_are_named(frame: dict[str, Any], message: str) -> None:
    """A refusal says which member is wrong."""
    with pytest.raises(RequestRefused, match=message):
        parse_control(frame)


@pytest.mark.parametrize("kind", [None, "RUN_STARTED", ["abort"], 5])
def test_everything_else_is_a_request(kind: Any) -> None:
    """A frame with another type, or without one, is no control frame."""
    assert not is_control({"type": kind})
