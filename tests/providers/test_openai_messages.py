"""The messages of chat completions bodies."""

from __future__ import annotations

import re
from typing import Any

import pytest
from backscroll.kernel.content import FilePart, TextPart
from backscroll.kernel.message import (
    ToolCall,
    assistant,
    system,
    tool_call,
    tool_result,
    user,
)
from backscroll.kernel.model import ModelProfile
from backscroll.kernel.texts import Texts
from providers.openai_bodies import build, sent


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
        ("always", "R1", False, True, ""),
        ("tool_calls", "R1", True, True, ""),
        ("never", "R1", True, True, None),
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


@pytest.mark.parametrize(
    ("style", "kept", "form"),
    [
        ("alnum9", "AbCdEf123", "[A-Za-z0-9]{9}"),
        ("short", "toolu_" + "x" * 34, "call_[A-Za-z0-9]{24}"),
    ],
)
def test_call_ids_are_fitted_alike_in_call_and_result(style: Any, kept: str, form: str) -> None:
    """OAI11: ids that a server does not take are written from their hash; others stay."""
    calls = tuple(tool_call(i, "x") for i in ("chatcmpl-tool-" + "1" * 32, kept, "y" * 41))
    first, *results = sent(
        assistant(None, calls),
        *(tool_result(call.id, "x", "r") for call in calls),
        call_id_style=style,
    )

    ids = [call["id"] for call in first["tool_calls"]]
    assert ids == [result["tool_call_id"] for result in results]
    assert ids[1] == kept and len(set(ids)) == 3
    assert re.fullmatch(form, ids[0]) and re.fullmatch(form, ids[2])


@pytest.mark.parametrize("name", ["reasoning_content", "reasoning"])
def test_reasoning_goes_back_under_the_profiles_name(name: Any) -> None:
    """OAI10: what reasoning is called is a field of the profile, also where replies are merged."""
    spoken = [assistant(text).replace(reasoning=f"r{text}") for text in ("a", "b")]

    found = sent(user("q"), *spoken, replay_reasoning="always", reasoning_field=name)
    merged = sent(
        user("q"), *spoken, replay_reasoning="always", reasoning_field=name, alternate_roles=True
    )

    assert [m.get(name) for m in found] == [None, "ra", "rb"]
    assert merged[1] == {"role": "assistant", "content": "a\n\nb", name: "ra\n\nrb"}


def test_a_reply_comes_between_results_and_the_user() -> None:
    """OAI11: `reply_after_tools` puts one there, and nowhere else."""
    history = (
        user("a"),
        assistant(None, (tool_call("c1", "x"),)),
        tool_result("c1", "x", "r"),
        user("b"),
        assistant("c"),
    )

    found = sent(*history, reply_after_tools=True)

    assert [m["role"] for m in found] == [
        "user", "assistant", "tool", "assistant", "user", "assistant",
    ]  # fmt: skip
    assert found[3] == {"role": "assistant", "content": "(The conversation continues.)"}
    assert [m for n, m in enumerate(found) if n != 3] == sent(*history)
