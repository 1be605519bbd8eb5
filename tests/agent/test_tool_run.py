"""A call's result in the forms it is needed in."""

from __future__ import annotations

from typing import Any

import pytest
from backscroll.agent.tool_run import ToolRun, readable
from backscroll.kernel.content import TextPart
from backscroll.kernel.errors import ToolFailure
from backscroll.kernel.message import parse_call
from backscroll.kernel.request import ToolResponse
from backscroll.kernel.texts import Texts


def run_with(response: ToolResponse) -> ToolRun:
    """Return a call that has its result."""
    return ToolRun(parse_call("c1", "look", {"a": 1}), "m1", response=response)


def test_the_message_and_the_record() -> None:
    """Both carry the call's ids, its content and its outcome."""
    run = run_with(ToolResponse("seen", {"x": 1}))

    assert (run.message.id, run.message.tool_call_id, run.message.name) == ("m1", "c1", "look")
    assert (run.message.content, run.message.outcome) == ("seen", "ok")
    assert (run.record.args, run.record.content, run.record.outcome) == ({"a": 1}, "seen", "ok")


def test_a_failed_call_writes_nothing() -> None:
    """CTX3: writes beside a failure are dropped, in the context and in the message."""
    run = run_with(ToolResponse("no", {"x": 1}, ToolFailure("semantic", "no"), "error"))

    assert run.writes is None and run.message.writes is None
    assert run.message.failed


@pytest.mark.parametrize(
    ("value", "kept"),
    [
        ({"a": [1, None]}, {"a": [1, None]}),
        (float("nan"), None),
        (b"\xff", "_w=="),
        ("\ud800", "'\\ud800'"),
        (Texts, repr(Texts)),
    ],
)
def test_writes_are_kept_as_json(value: Any, kept: Any) -> None:
    """What is no JSON value is kept in words; the context has the value itself."""
    run = run_with(ToolResponse("ok", {"x": value}))

    assert run.message.writes == {"x": kept}
    assert run.writes == {"x": value} or value != value


def test_readable_content() -> None:
    """Text and parts stay, other values become text, what has none is a failure."""
    parts = (TextPart("x"),)
    same = ToolResponse("x")

    assert readable(same, Texts()) is same
    assert readable(ToolResponse(parts), Texts()).content == parts
    assert readable(ToolResponse(None), Texts()).content == ""
    assert readable(ToolResponse({"a": 1}), Texts()).content == '{"a":1}'
    assert readable(ToolResponse(b"\xff"), Texts()).error is not None


def test_edited_arguments() -> None:
    """What is to run has the edited arguments; the record keeps both, and counts earlier tries."""
    run = ToolRun(parse_call("c1", "look", '{"a": 1}'), "m1", edited_args={"a": 2}, start=3)
    run.attempts, run.response = 1, ToolResponse("ok")

    assert (run.asked.args, run.asked.raw) == ({"a": 2}, None)
    assert (run.record.args, run.record.edited_args, run.record.attempts) == ({"a": 1}, {"a": 2}, 3)
    assert run_with(ToolResponse("ok")).asked is not None
