"""The neutral message survives every journey and refuses what it is not."""

from __future__ import annotations

import dataclasses
import json
from datetime import date
from enum import Enum
from typing import Any

import msgpack
import pytest
from backscroll.kernel.content import TextPart
from backscroll.kernel.errors import InputError
from backscroll.kernel.message import (
    Blocks,
    Message,
    Role,
    ToolCall,
    assistant,
    parse_call,
    result_text,
    system,
    tool_call,
    tool_result,
    user,
)
from hypothesis import example, given
from hypothesis import strategies as st
from pydantic import BaseModel


class ToolName(str, Enum):  # noqa: UP042 - the older spelling, as applications have it
    """A string enum, as applications have them."""

    GET_WEATHER = "get_weather"


def test_a_call_takes_enum_names_and_no_arguments() -> None:
    """MSG1: the enum's value is the name, None is no arguments."""
    call = tool_call("c1", ToolName.GET_WEATHER, None)

    assert (call.name, call.args) == ("get_weather", {})


def test_a_result_is_text_without_empty_writes() -> None:
    """MSG2: a dict is written as JSON text, and no writes means no key."""
    result = tool_result("c1", "f", {"a": 1})

    assert result.content == '{"a":1}'
    assert "writes" not in result.to_dict()
    assert tool_result("c", "f", "x", writes={"slot": 1}).to_dict()["writes"] == {"slot": 1}


def test_roles_in_any_case_and_unknown_ones() -> None:
    """MSG4: TOOL is a tool message, developer a system one, robot is refused with its path."""
    found = Message.from_dict({"role": "TOOL", "tool_call_id": "x", "content": "r"})

    assert found.role is Role.TOOL
    assert Message.from_dict({"role": "developer", "content": "x"}).role is Role.SYSTEM
    with pytest.raises(InputError) as caught:
        Message.from_dict({"role": "robot"}, "messages[0]")
    assert caught.value.path == "messages[0].role"


def test_calls_without_text_have_no_content() -> None:
    """MSG6: an assistant message with calls and no text has None, not an empty string."""
    assert assistant(calls=[tool_call("c", "f")]).content is None


@pytest.mark.parametrize("text", ["", None, "  ", "null", {}])
def test_blank_arguments_are_none_given(text: Any) -> None:
    """MSG7: nothing, blank and null are an empty object."""
    assert parse_call("c", "f", text) == ToolCall("c", "f", {})


@pytest.mark.parametrize("text", ['{"ids":[1,2', "[1]", '"x"', "NaN", '{"a":NaN}', "1"])
def test_broken_arguments_are_kept_raw(text: str) -> None:
    """MSG7: what is not a JSON object has no args and keeps its text unchanged."""
    call = parse_call("c", "f", text)

    assert (call.args, call.raw, call.args_text) == (None, text, text)


def test_odd_spelling_is_kept_beside_the_arguments() -> None:
    """The raw text stays only when it differs from canonical JSON."""
    assert parse_call("c", "f", '{"a":1}').raw is None
    assert parse_call("c", "f", '{"a": 1}') == ToolCall("c", "f", {"a": 1}, '{"a": 1}')


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3)
    ),
    max_leaves=6,
)
CALLS = st.builds(
    parse_call,
    st.text(min_size=1, max_size=6),
    st.text(min_size=1, max_size=6),
    st.sampled_from(["", '{"a": "🌍 "}', '{"a":1}', "[1", '"x"']),
)
MESSAGES = st.builds(
    Message,
    role=st.sampled_from([Role.USER, Role.ASSISTANT, Role.SYSTEM]),
    content=st.none() | st.text() | st.just((TextPart("a "), TextPart("你"))),
    id=st.none() | st.text(min_size=1, max_size=8),
    tool_calls=st.lists(CALLS, max_size=2).map(tuple),
    reasoning=st.none() | st.text(min_size=1, max_size=8),
    blocks=st.none()
    | st.builds(
        Blocks, st.just("f"), st.lists(JSON, min_size=1, max_size=2).map(tuple), st.just("s")
    ),
    incomplete=st.booleans(),
    origin=st.none() | st.just("filter:x"),
)


THOUGHT = {"type": "thinking", "zz": "🌍 你好  ", "new": {"b": [1, None], "a": " "}}


@given(MESSAGES)
@example(Message(Role.ASSISTANT, "", blocks=Blocks("f", (THOUGHT, {"type": "text"}, 1), "s")))
def test_messages_survive_dict_and_msgpack(message: Message) -> None:
    """MSG8: a message comes back equal, blocks with every character and key in order."""
    value = message.to_dict()

    for back in (value, msgpack.unpackb(msgpack.packb(value))):
        assert Message.from_dict(back) == message
        assert json.dumps(Message.from_dict(back).to_dict()) == json.dumps(value)


def test_openai_nesting_is_read() -> None:
    """A call nested in `function` with an argument text is read like a neutral one."""
    value = {
        "role": "assistant",
        "tool_calls": [{"id": "c", "function": {"name": "f", "arguments": '{"a":1}'}}],
    }
    assert Message.from_dict(value).tool_calls == (ToolCall("c", "f", {"a": 1}),)


@pytest.mark.parametrize(
    ("value", "path"),
    [
        ({"role": "tool", "content": "x"}, "message.tool_call_id"),
        ({"role": "user", "content": "x", "id": 1}, "message.id"),
        ({}, "message.role"),
        ({"role": "assistant", "tool_calls": "x"}, "message.tool_calls"),
        ({"role": "assistant", "tool_calls": ["x"]}, "message.tool_calls[0]"),
        ({"role": "assistant", "tool_calls": [{"id": "c"}]}, "message.tool_calls[0].name"),
        ({"role": "assistant", "tool_calls": [{"name": "c"}]}, "message.tool_calls[0].id"),
        ({"role": "tool", "tool_call_id": "c", "outcome": "fine"}, "message.outcome"),
        ({"role": "assistant", "blocks": 1}, "message.blocks"),
    ],
)
def test_bad_members_are_named(value: dict[str, Any], path: str) -> None:
    """What cannot be read is refused with the path of the member."""
    with pytest.raises(InputError) as caught:
        Message.from_dict(value)
    assert caught.value.path == path


def test_a_rewritten_message_sends_what_the_filter_wrote() -> None:
    """People see the content, a view sends the model content."""
    message = user("hi").replace(model_content="hi, with context", rewritten_by=("retrieval",))

    assert message.for_model() == "hi, with context"
    assert message.text == "hi"
    assert user("x").for_model() == "x"
    assert system("s").role is Role.SYSTEM


class Point(BaseModel):
    """A model, as tools return them."""

    x: int


@dataclasses.dataclass
class Pair:
    """A dataclass, as tools return them."""

    day: date


def test_results_are_written_as_json() -> None:
    """Text stays, None is nothing, models and dates are JSON."""
    assert result_text("a ") == "a "
    assert result_text(None) == ""
    assert result_text(Point(x=1)) == '{"x":1}'
    assert result_text(Pair(date(2026, 1, 2))) == '{"day":"2026-01-02"}'
    assert result_text(["你"]) == '["你"]'


@pytest.mark.parametrize("value", [b"x", object(), ValueError("x"), float("nan")])
def test_what_cannot_be_written_says_so(value: object) -> None:
    """Bytes, exceptions, objects and NaN are refused with a reason."""
    with pytest.raises((TypeError, ValueError)):
        result_text(value)


def test_failed_outcomes() -> None:
    """All outcomes but ok and replied count as failed on a wire."""
    assert not tool_result("c", "f", "").failed
    assert tool_result("c", "f", "", outcome="refused").failed
