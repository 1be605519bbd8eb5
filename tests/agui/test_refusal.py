"""Refusals: one table of codes, one shape."""

from __future__ import annotations

import pytest
from backscroll.agui.refusal import (
    REFUSALS,
    Problem,
    RequestRefused,
    error_body,
    http_status,
)
from backscroll.kernel.errors import ModelError


@pytest.mark.parametrize(
    ("code", "http", "close"),
    [
        ("not_json", 400, None),
        ("invalid_input", 422, None),
        ("unauthenticated", 401, 4401),
        ("forbidden", 403, 4403),
        ("not_found", 404, 1008),
        ("thread_busy", 409, None),
        ("too_large", 413, 1009),
        ("rate_limited", 429, 1008),
        ("internal_error", 500, 1011),
        ("draining", 503, 1012),
        ("unavailable", 503, 1013),
    ],
)
def test_codes_have_a_status(code: str, http: int, close: int | None) -> None:
    """Each code is an HTTP status, and a close code where it closes."""
    refusal = RequestRefused(code, "No.")

    assert (refusal.status.http, refusal.status.close) == (http, close)
    assert http_status(refusal) == REFUSALS[code]


def test_an_unknown_code_cannot_be_made() -> None:
    """The table is closed."""
    with pytest.raises(KeyError):
        RequestRefused("whatever", "No.")


def test_problems_make_the_message() -> None:
    """The first problem gives code and message, all are in the details."""
    first = Problem("tools[1].name", "a is named twice", "duplicate_tool")

    refusal = RequestRefused.of_problems([first, Problem("runId", "is empty")], runId="r")

    assert (refusal.code, str(refusal)) == ("duplicate_tool", "tools[1].name a is named twice")
    assert refusal.details["problems"][1] == {"path": "runId", "message": "is empty"}
    assert refusal.details["runId"] == "r"


def test_details_are_added_where_they_are_known() -> None:
    """A copy carries more details; None is left out."""
    refusal = RequestRefused("rate_limited", "Slow down.", retry_after_s=7)

    again = refusal.about(threadId="t", runId=None)

    assert again.details == {"threadId": "t"} and again.retry_after_s == 7
    assert refusal.details == {}


def test_the_shape_of_an_error() -> None:
    """Code, message, details; retryable where the same request may succeed later."""
    busy = RequestRefused("thread_busy", "Busy.", {"runId": "r1"})

    assert error_body(busy, request_id="req_1") == {
        "error": {
            "code": "thread_busy",
            "message": "Busy.",
            "details": {"runId": "r1", "request_id": "req_1", "retryable": True},
        }
    }
    assert error_body(RequestRefused("not_json", "No.")) == {
        "error": {"code": "not_json", "message": "No."}
    }


def test_other_errors_are_faults_of_the_server() -> None:
    """An error that is no refusal has the shape too, and the status of a fault."""
    error = ModelError("network", "gone")

    assert http_status(error).http == 500
    assert error_body(error)["error"] == {
        "code": "network",
        "message": "gone",
        "details": {"retryable": True},
    }
