"""Requests are values, streams know whether they have begun, reports may go nowhere."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import pytest
from backscroll.kernel.message import assistant, user
from backscroll.kernel.model import Cache, Delta, ModelOptions, ModelRequest, Text
from backscroll.kernel.request import (
    ChatRequest,
    ChatResponse,
    Note,
    Stream,
    ToolRequest,
    ToolResponse,
)
from backscroll.kernel.tool import ToolInfo


class Listener:
    """An observer that keeps what it is told."""

    def __init__(self) -> None:
        self.reports: list[Any] = []

    async def started(self, start: Any) -> None: ...
    async def retried(self, retry: Any) -> None: ...
    async def finished(self, end: Any) -> None: ...

    async def report(self, report: Any) -> None:
        """Keep the report."""
        self.reports.append(report)


def test_a_model_request_cannot_carry_what_is_not_for_models() -> None:
    """REQ8: there is no field for context, notes, observers or sinks."""
    names = {field.name for field in fields(ModelRequest)}

    assert not names & {"context", "notes", "observer", "stream", "sink", "cancel", "reply_id"}


def test_changing_a_request_makes_another() -> None:
    """A filter that rewrites leaves the original as it was."""
    request = ChatRequest((user("a"),), context={"conversation_id": "t"})
    changed = request.replace(system=("s",))

    assert (request.system, changed.system) == ((), ("s",))
    assert changed.conversation_id == "t"
    assert ChatRequest(()).conversation_id is None


async def test_a_stream_knows_that_it_began() -> None:
    """Nothing was delivered until the first delta."""
    got: list[Delta] = []

    async def sink(delta: Delta) -> None:
        got.append(delta)

    stream = Stream(sink)
    assert not stream.started
    await stream.send(Text("a"))
    assert stream.started and got == [Text("a")]


async def test_reports_reach_the_observer_or_nobody() -> None:
    """Without an observer a report is a no-op."""
    listener = Listener()
    info = ToolInfo("f", "Do.", {})

    await ChatRequest(()).report(Note("k", "t"))
    await ToolRequest(info, {}, "c", {}).report(Note("k", "t"))
    await ChatRequest((), observer=listener).report(Note("k", "a"))
    await ToolRequest(info, {}, "c", {}, observer=listener).report(Note("k", "b"))

    assert [note.text for note in listener.reports] == ["a", "b"]


def test_responses_are_values_too() -> None:
    """Text, calls and reasoning come from the message; a copy changes one thing."""
    response = ChatResponse(assistant("hi").replace(reasoning="r"))

    assert (response.text, response.reasoning, response.tool_calls) == ("hi", "r", ())
    assert response.replace(model="m").model == "m"
    assert ToolResponse("x").replace(outcome="refused").outcome == "refused"
    assert ToolRequest(ToolInfo("f", "Do.", {}), {}, "c", {}).replace(args={"a": 1}).args


def test_cache_marks_are_kept_only_where_they_still_fit() -> None:
    """Messages behind the marks may come and go; others before them make the places worthless."""
    messages = tuple(user(f"m{n}") for n in range(4))
    request = ChatRequest(messages, options=ModelOptions(cache=Cache("stable", "1h", (0, 2))))

    longer = request.replace(messages=(*messages, user("more")))
    shifted = request.replace(messages=(user("first"), *messages))
    chosen = request.replace(messages=messages[1:], options=request.options)

    assert longer.options == chosen.options == request.options
    assert shifted.options.cache == Cache("stable", "1h")
    assert request.replace(reply_id="r").options == request.options


@pytest.mark.parametrize("field", ["system", "notes"])
def test_one_text_is_no_tuple_of_texts(field: str) -> None:
    """One text where several are meant is refused; its letters are not taken for texts."""
    with pytest.raises(TypeError, match=f"{field}: expected a tuple of texts, got 'Be brief.'"):
        ChatRequest(messages=()).replace(**{field: "Be brief."})
