"""Chat completions bodies: the pure half of the wire."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from typing import Any

import pytest
from backscroll.kernel.content import FilePart, TextPart
from backscroll.kernel.errors import ModelError
from backscroll.kernel.message import (
    Blocks,
    Message,
    Role,
    ToolCall,
    assistant,
    system,
    tool_call,
    tool_result,
    user,
)
from backscroll.kernel.model import Cache, ModelOptions, ModelProfile, ModelRequest, Named
from backscroll.kernel.texts import Texts
from backscroll.kernel.tool import ToolSpec
from backscroll.providers.openai_request import ENCODER, allows_strict, build_request, left_out
from backscroll.providers.wire import WireConfig

CLOSED = {
    "type": "object",
    "properties": {"a": {"type": "integer"}},
    "required": ["a"],
    "additionalProperties": False,
}
ADD = ToolSpec("add", "Add numbers.", CLOSED)
CONFIG = WireConfig("m", "openai")


def build(*messages: Message, profile: ModelProfile | None = None, **more: Any) -> dict[str, Any]:
    """Build the body of a request of these messages."""
    return build_request(ModelRequest(messages, **more), profile or ModelProfile(), CONFIG)


def sent(*messages: Message, **profile: Any) -> list[dict[str, Any]]:
    """Return the messages of a body under a profile."""
    found: list[dict[str, Any]] = build(*messages, profile=ModelProfile(**profile))["messages"]
    return found


def test_a_conversation_becomes_messages_in_order() -> None:
    """OAI1: system, user, assistant with two calls, two results, assistant: six in order."""
    calls = (tool_call("c1", "x", {"a": 1}), tool_call("c2", "y"))

    found = sent(
        system("be"),
        user("hi"),
        assistant(None, calls),
        tool_result("c1", "x", {"r": 1}),
        tool_result("c2", "y", "ok"),
        assistant("done"),
    )

    assert found == [
        {"role": "system", "content": "be"},
        {"role": "user", "content": "hi"},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {"id": "c1", "type": "function", "function": {"name": "x", "arguments": '{"a":1}'}},
                {"id": "c2", "type": "function", "function": {"name": "y", "arguments": "{}"}},
            ],
        },
        {"role": "tool", "tool_call_id": "c1", "content": '{"r":1}'},
        {"role": "tool", "tool_call_id": "c2", "content": "ok"},
        {"role": "assistant", "content": "done"},
    ]


def test_there_is_one_system_message_first() -> None:
    """OAI1: request and history system texts are joined into one message at the front."""
    body = build(user("a"), system("in the middle"), user("b"), system=("first", "second"))

    assert body["messages"] == [
        {"role": "system", "content": "first\nsecond\nin the middle"},
        {"role": "user", "content": "a"},
        {"role": "user", "content": "b"},
    ]


def test_system_messages_stay_where_a_profile_leaves_them() -> None:
    """`single_system=False` keeps the messages of the history in their places."""
    found = sent(user("a"), system("now"), system(" "), single_system=False)

    assert [m["role"] for m in found] == ["user", "system"]


@pytest.mark.parametrize(
    ("profile", "first"),
    [
        ({"system_role": "developer"}, {"role": "developer", "content": "be"}),
        ({"system_role": "user"}, {"role": "user", "content": "be\n\nhi"}),
        ({}, {"role": "system", "content": "be"}),
    ],
)
def test_the_profile_places_the_system_text(profile: dict[str, Any], first: Any) -> None:
    """OAI11: system, developer, or folded into the first user message."""
    assert sent(system("be"), user("hi"), **profile)[0] == first


def test_a_folded_system_text_finds_its_place() -> None:
    """OAI11: it goes before parts, and into a message of its own where no user speaks."""
    profile = ModelProfile(system_role="user", parts={"user": ("image/*",)})
    image = FilePart("image/png", url="https://h/a.png")

    parts = build(user((image,)), system=("be",), profile=profile)["messages"][0]["content"]
    alone = build(assistant("hi"), system=("be",), profile=profile)["messages"]

    assert [part["type"] for part in parts] == ["text", "image_url"]
    assert alone[0] == {"role": "user", "content": "be"}


def test_a_call_sends_its_own_argument_text() -> None:
    """OAI6: raw text as it came, `{}` for no arguments, and broken text wrapped."""
    calls = (
        ToolCall("c1", "x", {"a": 1}, '{ "a": 1 }'),
        ToolCall("c2", "x", {}),
        ToolCall("c3", "x", None, '{"a":'),
        ToolCall("c4", "x", None, None),
    )

    (message,) = sent(assistant("t", calls))

    assert [call["function"]["arguments"] for call in message["tool_calls"]] == [
        '{ "a": 1 }', "{}", '{"invalid_arguments":"{\\"a\\":"}', '{"invalid_arguments":""}',
    ]  # fmt: skip


def test_a_name_the_model_made_up_is_made_fit() -> None:
    """A call's name goes out in the characters servers take."""
    (message, result) = sent(
        assistant("t", (ToolCall("c1", "my tool.x", {}), ToolCall("c2", "", {}))),
        tool_result("c1", "my tool.x", "r"),
        tool_name_field=True,
    )

    assert [c["function"]["name"] for c in message["tool_calls"]] == ["my_tool_x", "_"]
    assert result == {"role": "tool", "tool_call_id": "c1", "name": "my_tool_x", "content": "r"}


def test_blank_text_never_goes_out() -> None:
    """OAI12: a blank reply is left out; a blank question and an empty result have their texts."""
    call = tool_call("c1", "x")

    found = sent(
        user("  "),
        user((TextPart(" "),)),
        user(None),
        assistant(""),
        assistant(" \n"),
        assistant((TextPart(" "),)),
        assistant(" ", (call,)),
        tool_result("c1", "x", ""),
    )

    assert [m["content"] for m in found] == ["(empty message)"] * 3 + [None, "(no output)"]


def test_replaced_texts_are_sent() -> None:
    """TXT2: a text replaced on the agent is what goes out."""
    body = build(user(""), texts=Texts(empty_message="(nothing)"))

    assert body["messages"][0]["content"] == "(nothing)"


def test_what_a_filter_wrote_is_sent() -> None:
    """`model_content` goes out in place of what was said."""
    message = user("q").replace(model_content="q plus", rewritten_by=("retrieval",))

    assert sent(message)[0]["content"] == "q plus"


def test_inner_fields_never_reach_the_wire() -> None:
    """MSG3, REQ8, OAI14: writes, origin, outcome, blocks and ids of messages stay here."""
    spoken = Message(
        Role.ASSISTANT,
        "t",
        "m1",
        origin="filter:x",
        blocks=Blocks("anthropic-content", ({"type": "thinking", "thinking": "deep"},), "a"),
    )
    result = tool_result("c1", "x", "r", outcome="error", writes={"slot": 1}, id="m2")
    asked = assistant(None, (tool_call("c1", "x"),))

    text = ENCODER.encode(
        ModelRequest((spoken, asked, result)), ModelProfile(), CONFIG, True
    ).decode()

    for word in ("writes", "slot", "origin", "outcome", "blocks", "deep", "m1", "m2", "texts"):
        assert word not in text


def test_assistant_parts_are_text_or_the_wires_own() -> None:
    """Text parts of a reply are concatenated."""
    assert sent(assistant((TextPart("a"), TextPart("b"))))[0]["content"] == "ab"


@pytest.mark.parametrize(
    ("replay", "reasoning", "calls", "incomplete", "expected"),
    [
        ("never", "R1", True, False, None),
        ("tool_calls", "R1 é ", True, False, "R1 é "),
        ("tool_calls", "R1", False, False, None),
        ("tool_calls", None, True, False, ""),
        ("always", None, False, False, ""),
        ("always", "R1", False, True, None),
    ],
)
def test_reasoning_is_sent_back_where_the_profile_says_so(
    replay: Any, reasoning: str | None, calls: bool, incomplete: bool, expected: str | None
) -> None:
    """OAI10: unchanged where it is demanded, empty where it is missing, else absent."""
    message = assistant("t", (tool_call("c1", "x"),) if calls else ())
    message = message.replace(reasoning=reasoning, incomplete=incomplete)

    assert sent(message, replay_reasoning=replay)[0].get("reasoning_content") == expected


def test_neighbours_are_merged_for_strict_templates() -> None:
    """OAI11: `alternate_roles` merges texts with a blank line between, and lists."""
    image = FilePart("image/png", url="https://h/a.png")
    parts = {"user": ("image/*",)}
    call = tool_call("c1", "x")

    found = sent(
        user("a"), user("b"), assistant("c").replace(reasoning="r1"),
        assistant(None, (call,)).replace(reasoning="r2"), tool_result("c1", "x", "r"),
        user("d"), user((image,)),
        alternate_roles=True, parts=parts, replay_reasoning="always",
    )  # fmt: skip

    assert [m["role"] for m in found] == ["user", "assistant", "tool", "user"]
    assert found[0]["content"] == "a\n\nb"
    assert (found[1]["content"], found[1]["reasoning_content"]) == ("c", "r1\n\nr2")
    assert [c["id"] for c in found[1]["tool_calls"]] == ["c1"]
    assert [part["type"] for part in found[3]["content"]] == ["text", "image_url"]


def test_a_user_begins_for_strict_templates() -> None:
    """A history that starts with a reply gets a user message before it."""
    found = sent(assistant("a"), user("b"), alternate_roles=True)

    assert found[0] == {"role": "user", "content": "(The conversation continues.)"}


def test_short_call_ids_are_the_same_for_call_and_result() -> None:
    """`alnum9` maps ids to nine characters by hash; ids that fit stay."""
    calls = (tool_call("call_long_id", "x"), tool_call("AbCdEf123", "x"))
    first, *results = sent(
        assistant(None, calls),
        *(tool_result(call.id, "x", "r") for call in calls),
        call_id_style="alnum9",
    )

    ids = [call["id"] for call in first["tool_calls"]]
    assert ids == [result["tool_call_id"] for result in results]
    assert ids[1] == "AbCdEf123" and len(ids[0]) == 9 and ids[0].isalnum()


@pytest.mark.parametrize(
    ("profile", "difference"),
    [
        ({"null_content": False}, {"content": ""}),
        ({"call_id_style": "any"}, {}),
        ({"max_tokens_field": "max_completion_tokens"}, {}),
    ],
)
def test_a_profile_changes_its_field_only(profile: dict[str, Any], difference: Any) -> None:
    """OAI11: a message under another profile differs in the one field."""
    message = assistant(None, (tool_call("c1", "x"),))

    assert sent(message, **profile)[0] == {**sent(message)[0], **difference}


def test_settings_have_one_order() -> None:
    """MOD5: the keys of a body come in the order of the specification, extra_body last."""
    options = ModelOptions(
        model="other", max_output_tokens=9, temperature=0, top_p=0.5, stop=("a",), seed=1,
        reasoning_effort="low", service_tier="flex", user="u", parallel_tool_calls=False,
        response_format={"type": "json_object"}, extra_body={"seed": 2, "z": None},
    )  # fmt: skip
    request = ModelRequest((user("q"),), tools=(ADD,), tool_choice="required", options=options)

    body = build_request(request, ModelProfile(response_format="json_schema"), CONFIG, True)

    assert list(body) == [
        "model", "messages", "tools", "tool_choice", "parallel_tool_calls", "max_tokens",
        "temperature", "top_p", "stop", "seed", "reasoning_effort", "response_format",
        "service_tier", "user", "stream", "stream_options", "z",
    ]  # fmt: skip
    assert (body["model"], body["seed"], body["z"]) == ("other", 2, None)


def test_what_is_not_given_is_not_sent() -> None:
    """A plain request holds model and messages and nothing else."""
    assert list(build(user("q"))) == ["model", "messages"]


@pytest.mark.parametrize("field", ["max_tokens", "max_completion_tokens"])
def test_the_token_limit_has_the_profiles_name(field: Any) -> None:
    """OAI11: `max_tokens` or `max_completion_tokens`, never both."""
    options = ModelOptions(max_output_tokens=5)

    body = build(user("q"), options=options, profile=ModelProfile(max_tokens_field=field))

    assert {k: v for k, v in body.items() if k.startswith("max")} == {field: 5}


def test_a_stream_asks_for_usage_where_the_profile_allows_it() -> None:
    """OAI11: without `stream_usage` there is no `stream_options`."""
    request = ModelRequest((user("q"),))

    with_it = build_request(request, ModelProfile(), CONFIG, True)
    without = build_request(request, ModelProfile(stream_usage=False), CONFIG, True)

    assert with_it["stream_options"] == {"include_usage": True}
    assert without["stream"] is True and "stream_options" not in without


@pytest.mark.parametrize(
    ("choice", "expected"),
    [
        ("auto", None),
        ("required", "required"),
        (Named("add"), {"type": "function", "function": {"name": "add"}}),
    ],
)
def test_a_tool_choice_goes_with_tools(choice: Any, expected: Any) -> None:
    """auto is not sent; required and a name are."""
    body = build(user("q"), tools=(ADD,), tool_choice=choice)

    assert body.get("tool_choice") == expected
    assert body["tools"] == [
        {
            "type": "function",
            "function": {"name": "add", "description": "Add numbers.", "parameters": CLOSED},
        }
    ]


def test_no_tools_means_neither_tools_nor_choice() -> None:
    """REQ2: with `none`, and without tools, neither goes out."""
    assert "tools" not in build(user("q"), tools=(ADD,), tool_choice="none")
    assert "tool_choice" not in build(user("q"), tool_choice="required")


def test_a_choice_that_is_not_offered_is_refused() -> None:
    """Naming a tool that is not there is an invalid request."""
    with pytest.raises(ModelError, match="expected an offered tool, got 'sub'") as raised:
        build(user("q"), tools=(ADD,), tool_choice=Named("sub"))

    assert raised.value.kind == "invalid_request"


def test_a_schema_without_a_type_is_an_object() -> None:
    """Servers demand the type that client tools often leave out."""
    body = build(user("q"), tools=(ToolSpec("t", "d", {}),))

    assert body["tools"][0]["function"]["parameters"] == {"type": "object", "properties": {}}


def test_strict_is_sent_where_the_schema_allows_it() -> None:
    """A closed schema is strict under such a profile, an open one is not."""
    open_one = ToolSpec("o", "d", {"type": "object", "properties": {"a": {}}})

    body = build(user("q"), tools=(ADD, open_one), profile=ModelProfile(strict_tools=True))

    assert [tool["function"].get("strict") for tool in body["tools"]] == [True, None]
    assert allows_strict({"anyOf": [CLOSED, {"type": "string"}]})
    assert not allows_strict({"anyOf": [CLOSED, {"type": "object"}]})


@pytest.mark.parametrize(
    ("support", "kind", "is_sent"),
    [
        ("none", "json_object", False),
        ("none", "text", True),
        ("json_object", "json_object", True),
        ("json_object", "json_schema", False),
        ("json_schema", "json_schema", True),
    ],
)
def test_a_response_format_needs_support(support: Any, kind: str, is_sent: bool) -> None:
    """SO5: the format goes out only where the profile supports it."""
    options = ModelOptions(response_format={"type": kind})
    profile = ModelProfile(response_format=support)

    body = build(user("q"), options=options, profile=profile)

    assert ("response_format" in body) is is_sent
    assert ("response_format" in left_out(options, profile)) is not is_sent


def test_options_this_wire_does_not_know_are_left_out() -> None:
    """`top_k`, `thinking` and `cache` are named as left out and not sent."""
    options = ModelOptions(top_k=3, thinking={"type": "enabled"}, cache=Cache("system"))

    assert list(build(user("q"), options=options)) == ["model", "messages"]
    assert left_out(options, ModelProfile()) == ["top_k", "thinking", "cache"]


def test_the_models_defaults_are_below_the_request() -> None:
    """A request's option wins over the model's default."""
    config = replace(CONFIG, options=ModelOptions(temperature=1.0, top_p=0.3))
    request = ModelRequest((user("q"),), options=ModelOptions(temperature=0.0))

    body = build_request(request, ModelProfile(), config)

    assert (body["temperature"], body["top_p"]) == (0.0, 0.3)


def test_bytes_are_canonical_json() -> None:
    """i18n-03: UTF-8 as it is, no blanks; half a surrogate pair cannot leave."""
    body = ENCODER.encode(
        ModelRequest((user("你好 \ud83c\udf0d \ud83c"),)), ModelProfile(), CONFIG, False
    )

    text = body.decode()
    assert text == '{"model":"m","messages":[{"role":"user","content":"你好 🌍 \ufffd"}]}'


PROGRAM = """
from backscroll.kernel.message import assistant, tool_call, tool_result, user
from backscroll.kernel.model import ModelOptions, ModelProfile, ModelRequest
from backscroll.kernel.tool import ToolSpec
from backscroll.providers.openai_request import ENCODER
from backscroll.providers.wire import WireConfig
calls = (tool_call("c1", "add", {"b": 2, "a": 1}),)
messages = (user("hé"), assistant(None, calls), tool_result("c1", "add", {"z": 1, "y": [2]}))
tools = (ToolSpec("add", "d", {"type": "object", "properties": {"z": {}, "a": {}}}),)
request = ModelRequest(messages, ("s",), tools, options=ModelOptions(temperature=0.1))
profile = ModelProfile(call_id_style="alnum9")
import sys
sys.stdout.buffer.write(ENCODER.encode(request, profile, WireConfig("m", "p"), True))
"""


def test_two_processes_write_the_same_bytes() -> None:
    """MOD5: equal input gives equal bytes, whatever the hash seed."""
    runs = [
        subprocess.run(
            [sys.executable, "-c", PROGRAM], env={"PYTHONHASHSEED": seed}, capture_output=True
        )
        for seed in ("1", "2")
    ]

    assert runs[0].stdout == runs[1].stdout
    assert json.loads(runs[0].stdout)["temperature"] == 0.1
