"""Messages between our shape and AG-UI's."""

from __future__ import annotations

import json
from typing import Any

import pytest
from ag_ui import core as ag
from backscroll.agui.messages import (
    Shown,
    WireMessage,
    echo,
    from_wire_message,
    is_reasoning,
    is_visible,
    to_wire_messages,
)
from backscroll.kernel.message import (
    Message,
    Role,
    assistant,
    parse_call,
    system,
    tool_result,
    user,
)
from pydantic import TypeAdapter

WIRE: TypeAdapter[WireMessage] = TypeAdapter(ag.Message)


def dumped(message: Message, shown: Shown | None = None) -> list[dict[str, Any]]:
    """Return a message as AG-UI's JSON values."""
    wire = to_wire_messages(message, shown or Shown())
    return [json.loads(item.model_dump_json(by_alias=True)) for item in wire]


def read(value: dict[str, Any]) -> Message:
    """Return what a client sent in our shape."""
    return from_wire_message(WIRE.validate_python(value))


@pytest.mark.parametrize(
    ("message", "wire"),
    [
        (user("Hi", "u"), {"id": "u", "role": "user", "content": "Hi"}),
        (system("Be nice", "s"), {"id": "s", "role": "system", "content": "Be nice"}),
        (
            tool_result("c", "add", 3, id="t"),
            {"id": "t", "role": "tool", "content": "3", "toolCallId": "c"},
        ),
        (
            tool_result("c", "add", "No.", id="t", outcome="refused"),
            {"id": "t", "role": "tool", "content": "No.", "toolCallId": "c", "error": "refused"},
        ),
        (
            assistant("Half", id="a").replace(incomplete=True),
            {
                "id": "a",
                "role": "assistant",
                "content": "Half",
                "metadata": {"backscroll": {"incomplete": True}},
            },
        ),
    ],
)
def test_messages_as_clients_see_them(message: Message, wire: dict[str, Any]) -> None:
    """What is absent is left out."""
    assert dumped(message) == [wire]


def test_calls_are_as_the_model_wrote_them() -> None:
    """Arguments are text, broken ones too; there is no empty content beside them."""
    call = parse_call("c", "add", '{"a": 1,')

    (wire,) = dumped(assistant("", [call], id="a"))

    function = {"name": "add", "arguments": '{"a": 1,'}
    assert wire == {
        "id": "a",
        "role": "assistant",
        "toolCalls": [{"id": "c", "type": "function", "function": function}],
    }


def test_reasoning_stands_before_its_message() -> None:
    """It is a message of its own, unless it is blank or not to be shown."""
    thought = assistant("Yes.", id="a").replace(reasoning="Hmm.")

    assert dumped(thought)[0] == {"id": "a.r", "role": "reasoning", "content": "Hmm."}
    assert len(dumped(thought)) == 2 and len(dumped(thought, Shown(reasoning=False))) == 1
    assert len(dumped(thought.replace(reasoning="  "))) == 1
    assert [m["role"] for m in dumped(thought.replace(content=None))] == ["reasoning"]


def test_a_blank_reply_is_not_shown() -> None:
    """It had no events either."""
    assert dumped(assistant(" \n", id="a")) == [] and not is_visible(assistant(None, id="a"))
    assert is_visible(user("", "u"))


def test_long_results_are_cut() -> None:
    """Results alone are shortened for clients."""
    (wire,) = dumped(tool_result("c", "add", "x" * 500, id="t"), Shown(result_chars=200))

    assert len(wire["content"]) <= 200
    assert len(dumped(user("x" * 500, "u"), Shown(result_chars=200))[0]["content"]) == 500


def test_what_clients_send() -> None:
    """Roles, calls, results and reasoning in our shape."""
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": ""}}
    reply = read({"id": "a", "role": "assistant", "content": "", "toolCalls": [call]})
    failed = {"id": "t", "role": "tool", "toolCallId": "c", "content": "x", "error": "boom"}

    assert (reply.content, reply.tool_calls[0].args) == (None, {})
    assert read(failed).outcome == "error" and read({**failed, "error": ""}).outcome == "ok"
    assert read({"id": "d", "role": "developer", "content": "x"}).role is Role.SYSTEM
    assert read({"id": "u", "role": "user", "content": "Hi"}) == user("Hi", "u")
    thought = read({"id": "a.r", "role": "reasoning", "content": "Hmm"})
    assert is_reasoning(thought) and thought.reasoning == "Hmm" and not is_reasoning(reply)


def test_the_echo_holds_what_the_run_added() -> None:
    """Nothing added, no echo."""
    assert echo("t", "r", []) is None
    made = echo("t", "r", [user("Hi", "u")])
    assert made is not None and (made.tools, made.context, len(made.messages)) == ([], [], 1)
