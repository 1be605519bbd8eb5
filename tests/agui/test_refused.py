"""A refused request on a socket."""

from __future__ import annotations

import json

from agui_checker import assert_valid
from backscroll.agui.refusal import RequestRefused
from backscroll.agui.refused import refusal_event, refusal_notice

BUSY = RequestRefused("thread_busy", "Thread t is busy with run r1.", {"runId": "r1"})


def test_a_refusal_is_a_lone_event() -> None:
    """On a socket that watches nothing it is one RUN_ERROR that names its request."""
    refusal = RequestRefused(
        "invalid_input", "messages is missing", {"threadId": "t", "runId": "r2", "problems": []}
    )

    text = refusal_event(refusal, 1764465600123)

    assert_valid([text])
    assert json.loads(text) == {
        "type": "RUN_ERROR",
        "timestamp": 1764465600123,
        "message": "messages is missing",
        "code": "invalid_input",
        "metadata": {
            "backscroll": {
                "refused": True,
                "threadId": "t",
                "runId": "r2",
                "details": {"problems": []},
            }
        },
    }


def test_a_refusal_without_details() -> None:
    """What is not known is absent; what may succeed later says so."""
    plain = json.loads(refusal_event(RequestRefused("not_json", "not JSON"), 1))
    later = json.loads(refusal_event(RequestRefused("draining", "Restarting."), 1))

    assert plain["metadata"] == {"backscroll": {"refused": True}}
    assert later["metadata"]["backscroll"]["details"] == {"retryable": True}


def test_a_refusal_is_a_notice_beside_a_watch() -> None:
    """On a socket that watches, it must not enter the stream."""
    about = RequestRefused("already_answered", "No.", {"threadId": "t", "runId": "r2", "x": 1})

    assert json.loads(refusal_notice(about)) == {
        "type": "refusal",
        "threadId": "t",
        "runId": "r2",
        "error": {"code": "already_answered", "message": "No.", "details": {"x": 1}},
    }
    assert json.loads(refusal_notice(RequestRefused("not_json", "No."))) == {
        "type": "refusal",
        "error": {"code": "not_json", "message": "No."},
    }
