"""Reading a messages stream, event by event."""

from __future__ import annotations

import json
from itertools import count
from typing import Any

import pytest
from backscroll.kernel.errors import ModelError
from backscroll.kernel.message import Blocks, ToolCall
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
from backscroll.providers.anthropic_stream import StreamReader
from backscroll.providers.failures import Source
from provider_script_anthropic import block_events, end_events

SOURCE = Source("anthropic", secrets=("KEY-PROV-789",))
START = {"type": "message_start", "message": {"id": "m1", "model": "c", "usage": {}}}
USE = {"type": "tool_use", "id": "t1", "name": "look", "input": {}}
END = end_events("end_turn", {"output_tokens": 3})


def reader() -> StreamReader:
    """Make a reader."""
    numbers = count()
    return StreamReader(SOURCE, lambda: f"minted_{next(numbers)}", "It broke off.")


def feed(stream: StreamReader, *events: Any) -> list[Delta]:
    """Feed events, objects as JSON."""
    texts = (event if isinstance(event, str) else json.dumps(event) for event in events)
    return [delta for event in texts for delta in stream.feed(event)]


def play(*events: Any) -> tuple[list[Delta], ModelResponse]:
    """Feed events to the end; return the deltas and the response."""
    stream = reader()
    deltas = feed(stream, *events) + stream.finish()
    last = deltas.pop()
    assert isinstance(last, Finished)
    return deltas, last.response


def said(text: str) -> dict[str, Any]:
    """Make a text delta."""
    return {"type": "text_delta", "text": text}


def part(text: str) -> dict[str, Any]:
    """Make a piece of arguments."""
    return {"type": "input_json_delta", "partial_json": text}


def test_text_becomes_deltas_and_a_response() -> None:
    """Deltas as they come; id, model, reason, provider; a plain reply needs no block list."""
    block = block_events(0, {"type": "text", "text": ""}, said("He"), said(""), said("llo"))

    deltas, response = play(START, {"type": "ping"}, *block, {"type": "new_event"}, *END)

    assert deltas == [Text("He"), Text("llo")]
    assert (response.text, response.finish_reason) == ("Hello", FinishReason.STOP)
    assert (response.response_id, response.model, response.provider) == ("m1", "c", "anthropic")
    assert response.message.blocks is None


@pytest.mark.parametrize(
    ("start", "deltas", "args"),
    [
        (
            {},
            [part(""), part('{"ci'), part('ty":"x"}')],
            [CallArgs("t1", '{"ci'), CallArgs("t1", 'ty":"x"}')],
        ),
        ({"city": "x"}, [], [CallArgs("t1", '{"city":"x"}')]),
    ],
)  # fmt: skip
def test_arguments_come_in_pieces_or_with_the_start(
    start: Any, deltas: list[Any], args: list[Delta]
) -> None:
    """ANT3: the usual `{}` of the start is no text; an input there counts without a delta."""
    block = block_events(0, {**USE, "input": start}, *deltas)

    found, response = play(START, *block, *end_events("tool_use", {}))

    assert found == [CallOpened("t1", "look"), *args, CallClosed("t1")]
    assert response.tool_calls[0].args == {"city": "x"}
    assert response.message.content is None


def test_no_arguments_at_all_are_an_empty_object() -> None:
    """A call without input and without deltas has `{}` and no arguments delta."""
    found, response = play(START, *block_events(0, USE), *END)

    assert found == [CallOpened("t1", "look"), CallClosed("t1")]
    assert response.tool_calls == (ToolCall("t1", "look", {}),)


def test_thinking_comes_before_text_and_is_kept() -> None:
    """ANT4: reasoning deltas first; signature and redacted data are kept, never delivered."""
    start = {"type": "thinking", "thinking": "", "signature": ""}
    hidden = {"type": "redacted_thinking", "data": "xyz"}
    pieces = [{"type": "thinking_delta", "thinking": text} for text in ("深く ", "🌍 é ")]
    signed = [{"type": "signature_delta", "signature": text} for text in ("si", "g")]

    deltas, response = play(
        START,
        *block_events(0, start, *pieces, *signed),
        *block_events(1, hidden),
        *block_events(2, {"type": "text", "text": ""}, said("a")),
        *block_events(3, USE, part('{"x":1}')),
        *END,
    )

    assert deltas[:3] == [Reasoning("深く "), Reasoning("🌍 é "), Text("a")]
    assert response.message.blocks == Blocks(
        "anthropic-content",
        (
            {"type": "thinking", "thinking": "深く 🌍 é ", "signature": "sig"},
            hidden,
            {"type": "text", "text": "a"},
            {**USE, "input": {"x": 1}},
        ),
        "anthropic",
    )
    assert response.reasoning == "深く 🌍 é "


def test_other_blocks_are_kept_and_not_delivered() -> None:
    """A server's own tool is no call of ours; citations stay on their block."""
    server = {"type": "server_tool_use", "id": "s1", "name": "search", "input": {}}
    cited = {"type": "citations_delta", "citation": {"url": "u"}}

    deltas, response = play(
        START,
        *block_events(0, server, part('{"q":1}')),
        *block_events(1, {"type": "text", "text": "a"}, cited, cited, {"type": "new_delta"}),
        *END,
    )

    assert deltas == [Text("a")] and response.tool_calls == ()
    blocks = response.message.blocks
    assert blocks is not None and blocks.data[0] == {**server, "input": {"q": 1}}
    assert blocks.data[1]["citations"] == [{"url": "u"}, {"url": "u"}]


def test_invalid_arguments_stay_text() -> None:
    """Cut arguments make an invalid call, and an input that can be sent back."""
    thinking = block_events(0, {"type": "thinking", "thinking": "t", "signature": "s"})

    _, response = play(START, *thinking, *block_events(1, USE, part('{"a":')), *END)

    assert response.tool_calls == (ToolCall("t1", "look", None, '{"a":'),)
    blocks = response.message.blocks
    assert blocks is not None and blocks.data[1]["input"] == {"invalid_arguments": '{"a":'}


def test_calls_without_a_usable_id_get_one() -> None:
    """A missing or repeated id is replaced within the reply."""
    blocks = [block_events(n, {**USE, "id": given}) for n, given in enumerate(("t", "t", ""))]

    _, response = play(START, *(event for block in blocks for event in block), *END)

    assert [call.id for call in response.tool_calls] == ["t", "minted_0", "minted_1"]


def test_half_a_character_waits_for_its_other_half() -> None:
    """MSG10: a pair cut between two deltas is joined; a lone half is replaced at the end."""
    text = block_events(0, {"type": "text", "text": ""}, said("\ud83c"), said("\udf0d\ud83c"))
    call = block_events(1, USE, part('{"a":"\ud83c'), part('\udf0d"}'), part("\ud83c"))

    deltas, response = play(START, *text, *call, *END)

    assert response.text == "🌍\ufffd"
    assert deltas[:2] == [Text("🌍"), Text("\ufffd")]
    assert deltas[-2:] == [CallArgs("t1", "\ufffd"), CallClosed("t1")]


def test_usage_is_merged() -> None:
    """ANT8: later numbers win, but for a zero behind a positive one."""
    start = {"input_tokens": 0, "cache_read_input_tokens": 5, "output_tokens": 1}
    begin = {"type": "message_start", "message": {"usage": start}}
    later = {"input_tokens": 9, "cache_read_input_tokens": 0, "output_tokens": 7, "x": None}

    _, response = play(begin, *end_events("end_turn", later))

    assert response.usage == Usage(14, 7, 5)


@pytest.mark.parametrize(
    ("events", "finished"),
    [
        ([START], False),
        ([START, *block_events(0, USE)], False),
        ([START, *block_events(0, USE)[:1], END[0]], False),
        ([START, *block_events(0, USE), END[0]], True),
        ([START, END[1]], True),
    ],
)
def test_what_counts_as_a_finish_marker(events: list[Any], finished: bool) -> None:
    """`message_stop`, or a stop reason with all blocks closed; anything less is none."""
    stream = reader()
    feed(stream, *events)

    assert stream.finished is finished


def test_a_stream_cut_in_a_call_is_incomplete() -> None:
    """ANT6, wire-anthropic-04: end of body inside arguments; what had arrived is told."""
    stream = reader()
    text = block_events(0, {"type": "text", "text": ""}, said("Hel"))
    thought = block_events(1, {"type": "thinking", "thinking": "hm"})
    feed(stream, START, *text, *thought, *block_events(2, USE, part('{"a'))[:2])

    with pytest.raises(ModelError, match=r"It broke off\.") as raised:
        stream.finish()

    assert (raised.value.kind, raised.value.retryable) == ("incomplete_stream", False)
    assert raised.value.partial == Partial("Hel", "hm", ('look {"a',))


@pytest.mark.parametrize(
    ("kind", "mapped"),
    [
        ("overloaded_error", "provider"),
        ("api_error", "provider"),
        ("rate_limit_error", "rate_limit"),
        ("authentication_error", "auth"),
        ("permission_error", "auth"),
        ("request_too_large", "context_overflow"),
        ("something_new", "invalid_request"),
    ],
)
def test_an_error_event_is_mapped(kind: str, mapped: str) -> None:
    """ANT7: each type has its kind; what had arrived is kept."""
    stream = reader()
    feed(stream, START, *block_events(0, {"type": "text", "text": "Hel"}))

    with pytest.raises(ModelError) as raised:
        feed(stream, {"type": "error", "error": {"type": kind, "message": "m"}})

    assert (raised.value.kind, raised.value.partial) == (mapped, Partial("Hel"))


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        ("{broken KEY-PROV-789", "parse"),
        ("[1]", "parse"),
        ("Context size has been exceeded.", "context_overflow"),
    ],
)
def test_data_that_is_no_object(data: str, kind: str) -> None:
    """A bare sentence about size is that error; other data is `parse`."""
    with pytest.raises(ModelError) as raised:
        reader().feed(data)

    assert raised.value.kind == kind and "KEY-PROV-789" not in str(raised.value)


def test_odd_events_do_no_harm() -> None:
    """Deltas and ends of blocks nobody opened, odd types and missing members are ignored."""
    odd = [
        {"type": "content_block_delta", "index": 7, "delta": said("x")},
        {"type": "content_block_stop", "index": 7},
        {"type": "content_block_start"},
        {"type": "content_block_delta", "delta": said("x")},
        {"type": "content_block_delta", "index": 0, "delta": part("{}")},
        {"type": "content_block_stop", "index": "x"},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta"},
        {"type": ["list"]},
    ]

    deltas, response = play({"type": "message_start"}, *odd, *END)

    assert deltas == [] and response.text == ""
    assert response.finish_reason is FinishReason.STOP
