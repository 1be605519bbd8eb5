"""Reading a chat completions stream, event by event."""

from __future__ import annotations

import json
from itertools import count
from typing import Any

import pytest
from backscroll.kernel.errors import ModelError
from backscroll.kernel.message import ToolCall
from backscroll.kernel.model import (
    CallArgs,
    CallClosed,
    CallOpened,
    Delta,
    Finished,
    ModelResponse,
    Partial,
    Reasoning,
    Text,
)
from backscroll.kernel.usage import FinishReason, Usage
from backscroll.providers.failures import Source
from backscroll.providers.openai_stream import StreamReader

SOURCE = Source("openai", secrets=("KEY-PROV-789",))


def reader() -> StreamReader:
    """Make a reader for a request with one tool."""
    numbers = count()
    return StreamReader(SOURCE, ["add"], lambda: f"minted_{next(numbers)}", "It broke off.")


def chunk(delta: Any = None, finish: str | None = None, **more: Any) -> str:
    """Write one event with a choice."""
    return json.dumps({"choices": [{"delta": delta or {}, "finish_reason": finish}], **more})


def play(*events: str) -> tuple[list[Delta], ModelResponse]:
    """Feed events to the end; return the deltas and the response."""
    stream = reader()
    deltas = [delta for event in events for delta in stream.feed(event)] + stream.finish()
    last = deltas.pop()
    assert isinstance(last, Finished)
    return deltas, last.response


def test_text_becomes_deltas_and_a_response() -> None:
    """The response is complete: its text is that of all deltas together."""
    deltas, response = play(
        chunk({"role": "assistant"}, id="r1", model="m-1"),
        chunk({"content": "He"}),
        chunk({"content": "llo"}, "stop"),
        "[DONE]",
    )

    assert deltas == [Text("He"), Text("llo")]
    assert (response.text, response.finish_reason) == ("Hello", FinishReason.STOP)
    assert (response.response_id, response.model, response.provider) == ("r1", "m-1", "openai")


def test_empty_and_null_values_give_nothing() -> None:
    """protocol-06: role only, empty text and nulls are no deltas."""
    empty = {"content": "", "reasoning_content": None, "tool_calls": None, "refusal": None}

    deltas, response = play(
        chunk({"role": "assistant", "content": ""}),
        chunk({"content": "Hi"}),
        chunk(empty),
        json.dumps({"choices": [{"delta": None, "finish_reason": None}]}),
        json.dumps({"choices": [3]}),
        chunk({"content": ""}, "stop"),
    )

    assert deltas == [Text("Hi")]
    assert response.text == "Hi"


def test_empty_chunks_and_a_call_open_no_text() -> None:
    """protocol-06: a reply with only empty text and a call has content None."""
    call = {"index": 0, "id": "c1", "function": {"name": "add", "arguments": "{}"}}

    deltas, response = play(
        chunk({"content": ""}), chunk({"tool_calls": [call]}), chunk({}, "stop")
    )

    assert deltas == [CallOpened("c1", "add"), CallArgs("c1", "{}"), CallClosed("c1")]
    assert response.message.content is None


def test_chunks_without_choices_are_read() -> None:
    """OAI7: filter data first, usage last; the answer is complete and the usage kept."""
    _, response = play(
        json.dumps({"choices": [], "prompt_filter_results": []}),
        chunk({"content": "a"}),
        chunk({}, "stop"),
        json.dumps({"choices": [], "usage": {"prompt_tokens": 12, "completion_tokens": 3}}),
        "[DONE]",
    )

    assert response.usage == Usage(12, 3)


def test_usage_that_is_missing_stays_missing() -> None:
    """OAI7, USE3: without a report there is no usage, not a zero."""
    assert play(chunk({"content": "a"}, "stop", usage=None))[1].usage is None


def test_the_last_usage_wins() -> None:
    """Usage may come in every chunk, or inside the choice."""
    first = {"prompt_tokens": 5, "completion_tokens": 1}
    inside = {"delta": {}, "finish_reason": "stop", "usage": {"prompt_tokens": 5}}

    assert play(chunk({"content": "a"}, usage=first), chunk({}, "stop"))[1].usage == Usage(5, 1)
    assert play(json.dumps({"choices": [inside]}))[1].usage == Usage(5)


@pytest.mark.parametrize("name", ["reasoning_content", "reasoning"])
def test_reasoning_comes_before_text(name: str) -> None:
    """Within one chunk reasoning is delivered first; it is never part of the text."""
    deltas, response = play(chunk({"content": "b", name: "a é"}), chunk({}, "stop"))

    assert deltas == [Reasoning("a é"), Text("b")]
    assert (response.text, response.reasoning) == ("b", "a é")


def test_content_may_come_as_parts() -> None:
    """A list of parts gives its texts and its thinking."""
    parts = [{"type": "thinking", "thinking": [{"text": "hm"}]}, {"type": "text", "text": "a"}]

    assert play(chunk({"content": parts}, "stop"))[0] == [Reasoning("hm"), Text("a")]


def test_a_refusal_is_text_with_its_own_reason() -> None:
    """The words of a refusal are delivered; the finish reason says so."""
    deltas, response = play(
        chunk({"refusal": "I can"}), chunk({"refusal": "not."}), chunk({}, "stop")
    )

    assert deltas == [Text("I can"), Text("not.")]
    assert response.finish_reason is FinishReason.REFUSAL


def test_half_a_character_waits_for_its_other_half() -> None:
    """MSG10, i18n-03: a pair cut between two deltas is joined, in text and in reasoning."""
    deltas, response = play(
        '{"choices":[{"delta":{"content":"a\\ud83c","reasoning":"\\ud83c"}}]}',
        '{"choices":[{"delta":{"content":"\\udf0d","reasoning":"\\udf0d"}}]}',
        '{"choices":[{"delta":{"content":"\\ud83c","reasoning":"\\ud83c"},"finish_reason":"stop"}]}',
    )

    assert response.text == "a🌍\ufffd" and response.reasoning == "🌍\ufffd"
    assert deltas == [Text("a"), Reasoning("🌍"), Text("🌍"), Reasoning("\ufffd"), Text("\ufffd")]


@pytest.mark.parametrize(
    ("events", "reason"),
    [
        (["[DONE]"], FinishReason.STOP),
        ([chunk({}, "length"), chunk({}, "stop"), "[DONE]"], FinishReason.STOP),
        ([chunk({}, "weird")], FinishReason.UNKNOWN),
        ([" [DONE] "], FinishReason.STOP),
    ],
)
def test_a_finish_marker_completes(events: list[str], reason: FinishReason) -> None:
    """OAI8: `[DONE]` or a finish reason completes; the last reason given counts."""
    assert play(chunk({"content": "a"}), *events)[1].finish_reason is reason


def test_calls_without_a_reason_end_in_tool_calls() -> None:
    """Without a finish reason, calls say why the reply ended."""
    call = {"index": 0, "id": "c1", "function": {"name": "add", "arguments": ""}}

    _, response = play(chunk({"tool_calls": [call]}), "[DONE]")

    assert response.finish_reason is FinishReason.TOOL_CALLS
    assert response.tool_calls == (ToolCall("c1", "add", {}),)


def test_a_reply_that_just_ends_is_incomplete() -> None:
    """OAI8: end of body without a marker keeps what had arrived, calls as raw text."""
    stream = reader()
    call = {"index": 0, "id": "c1", "function": {"name": "add", "arguments": '{"a"'}}
    stream.feed(chunk({"content": "Hel"}))
    stream.feed(chunk({"tool_calls": [call]}))

    with pytest.raises(ModelError, match=r"It broke off\.") as raised:
        stream.finish()

    assert (raised.value.kind, raised.value.retryable) == ("incomplete_stream", False)
    assert raised.value.partial == Partial("Hel", "", ('add {"a"',))


def test_what_follows_is_known_to_be_nothing() -> None:
    """`done` says that nothing more is expected: after `[DONE]`, or usage after the reason."""
    stream = reader()
    stream.feed(chunk({"content": "a"}, usage={"prompt_tokens": 1}))
    before = (stream.finished, stream.done)
    stream.feed(chunk({}, "stop"))
    after_reason = (stream.finished, stream.done)
    stream.feed(json.dumps({"choices": [], "usage": {"prompt_tokens": 2}}))

    assert (before, after_reason) == ((False, False), (True, False))
    assert stream.done


def test_an_error_object_is_mapped_with_the_partial_reply() -> None:
    """OAI9: an error inside the stream, with its code; what had arrived is kept."""
    stream = reader()
    stream.feed(chunk({"content": "Hel"}))

    with pytest.raises(ModelError) as raised:
        stream.feed('{"error":{"message":"zu lang","code":"context_length_exceeded"}}')

    assert (raised.value.kind, raised.value.partial) == ("context_overflow", Partial("Hel"))


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        ("Reached context length of 4096 tokens with model x", "context_overflow"),
        ('"Context size has been exceeded."', "context_overflow"),
        ("{broken KEY-PROV-789", "parse"),
        ("[1]", "parse"),
        ("[" * 100_000, "parse"),
    ],
)
def test_data_that_is_no_object(data: str, kind: str) -> None:
    """A bare sentence about size is that error; other data is `parse`, never lost silently."""
    with pytest.raises(ModelError) as raised:
        reader().feed(data)

    assert raised.value.kind == kind
    assert "KEY-PROV-789" not in str(raised.value)


def test_the_old_form_of_a_call_is_read() -> None:
    """`function_call` fragments make one call; beside the new form they are ignored."""
    old = [{"name": "add", "arguments": ""}, {"arguments": '{"a":1}'}]
    new = {"index": 0, "id": "c1", "function": {"name": "add", "arguments": "{}"}}

    _, alone = play(*(chunk({"function_call": part}) for part in old), "[DONE]")
    _, beside = play(
        chunk({"tool_calls": [new], "function_call": old[0]}),
        chunk({"tool_calls": None, "function_call": old[1]}),
        "[DONE]",
    )

    assert alone.tool_calls == (ToolCall("minted_0", "add", {"a": 1}),)
    assert beside.tool_calls == (ToolCall("c1", "add", {}),)
