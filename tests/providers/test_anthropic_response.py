"""Reading a whole messages answer."""

from __future__ import annotations

import json
from itertools import count
from typing import Any

import pytest
from backscroll.kernel.errors import ModelError
from backscroll.kernel.message import Blocks, ToolCall
from backscroll.kernel.model import ModelResponse
from backscroll.kernel.usage import FinishReason, Usage
from backscroll.providers.anthropic_response import (
    read_body,
    read_count,
    read_response,
    read_usage,
)
from backscroll.providers.failures import Source

SOURCE = Source("anthropic", secrets=("KEY-PROV-789",))


def read(*content: Any, **more: Any) -> ModelResponse:
    """Read a body with these blocks."""
    numbers = count()
    body = {"content": list(content), "stop_reason": "end_turn", **more}
    return read_response(body, SOURCE, lambda: f"minted_{next(numbers)}")


def use(call_id: Any, value: Any = None) -> dict[str, Any]:
    """Make a tool_use block."""
    return {"type": "tool_use", "id": call_id, "name": "t", "input": {} if value is None else value}


def test_text_blocks_are_concatenated() -> None:
    """Texts join without a separator; id, model and reason are kept; no block list is needed."""
    found = read({"type": "text", "text": "a"}, {"type": "text", "text": " b"}, id="m1", model="c")

    assert (found.text, found.finish_reason) == ("a b", FinishReason.STOP)
    assert (found.response_id, found.model, found.provider) == ("m1", "c", "anthropic")
    assert found.message.blocks is None and found.raw["id"] == "m1"


def test_calls_are_read() -> None:
    """Calls without text have content None; a missing or repeated id is replaced."""
    found = read(use("t1", {"a": 1}), use("t1"), use(None), stop_reason="tool_use")

    assert found.tool_calls == (
        ToolCall("t1", "t", {"a": 1}), ToolCall("minted_0", "t", {}), ToolCall("minted_1", "t", {}),
    )  # fmt: skip
    assert found.message.content is None and found.message.blocks is None
    assert found.finish_reason is FinishReason.TOOL_CALLS


def test_thinking_keeps_the_whole_list() -> None:
    """ANT4: thinking is reasoning, and the content list is kept with unknown keys."""
    thinking = {"type": "thinking", "thinking": "深く é ", "signature": "s", "new": 1}
    hidden = {"type": "redacted_thinking", "data": "x"}
    blocks = (thinking, hidden, {"type": "text", "text": "a"}, use("t1"))

    found = read(*blocks)

    assert (found.text, found.reasoning) == ("a", "深く é ")
    assert found.message.blocks == Blocks("anthropic-content", blocks, "anthropic")


@pytest.mark.parametrize("body", [[], "x", {}, {"content": "text"}])
def test_an_answer_without_content_is_a_parse_error(body: Any) -> None:
    """What holds no list of blocks cannot be read."""
    with pytest.raises(ModelError) as raised:
        read_response(body, SOURCE, str)

    assert raised.value.kind == "parse"


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("", "parse"),
        ("<html> KEY-PROV-789", "parse"),
        ("Context size has been exceeded.", "context_overflow"),
        (json.dumps({"error": {"type": "overloaded_error", "message": "m"}}), "provider"),
        (json.dumps({"error": {"type": "new_error", "message": "m"}}), "invalid_request"),
    ],
)
def test_other_bodies(text: str, kind: str) -> None:
    """Errors inside a success are mapped; unknown ones are bad requests; secrets stay hidden."""
    with pytest.raises(ModelError) as raised:
        read_body(text, SOURCE, str)

    assert raised.value.kind == kind
    assert "KEY-PROV-789" not in str(raised.value)


def test_a_body_is_read() -> None:
    """The text of a body gives the same."""
    assert read_body('{"content":[{"type":"text","text":"a"}]}', SOURCE, str).text == "a"


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (
            {"input_tokens": 100, "cache_read_input_tokens": 800,
             "cache_creation_input_tokens": 200, "output_tokens": 5},
            Usage(1100, 5, 800, 200),
        ),
        ({"input_tokens": 9, "output_tokens": 3, "cache_read_input_tokens": None}, Usage(9, 3)),
        (
            {"input_tokens": 1, "cache_creation": {"ephemeral_5m": 2, "x": 3, "y": "z"}},
            Usage(6, None, None, 5),
        ),
        ({"input_tokens": 1, "cache_creation": {}}, Usage(1)),
        ({"output_tokens": 0}, Usage(None, 0)),
        ({}, None),
        (None, None),
    ],
)  # fmt: skip
def test_usage_includes_its_parts(value: Any, expected: Usage | None) -> None:
    """USE2: input includes what was read from caches and put there; nothing is made up."""
    assert read_usage(value) == expected


def test_a_count_is_read() -> None:
    """The number that an answer to a request to count states."""
    assert read_count('{"input_tokens":42,"more":1}', SOURCE) == 42


@pytest.mark.parametrize(
    "text",
    ["", "<html> KEY-PROV-789", "[1]", "{}", '{"input_tokens":0}', '{"input_tokens":"9"}'],
)
def test_what_states_no_count_cannot_be_read(text: str) -> None:
    """Anything else is a `parse` error, without secrets."""
    with pytest.raises(ModelError, match="expected the number input_tokens") as raised:
        read_count(text, SOURCE)

    assert raised.value.kind == "parse" and "KEY-PROV-789" not in str(raised.value)
