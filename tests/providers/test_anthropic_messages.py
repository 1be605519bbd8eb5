"""Turns of blocks: grouping, blank text, ids, replay."""

from __future__ import annotations

from typing import Any

import pytest
from backscroll.kernel.content import FilePart, TextPart
from backscroll.kernel.message import (
    Blocks,
    Message,
    ToolCall,
    assistant,
    system,
    tool_call,
    tool_result,
    user,
)
from backscroll.kernel.model import ModelProfile, ModelRequest
from backscroll.kernel.tool import ToolSpec
from backscroll.providers.anthropic_messages import FORMAT, Conversation, has_tool_blocks

CALLS = tuple(tool_call(f"c{n}", "t", {"n": n}) for n in (1, 2, 3))


def converse(*messages: Message, **more: Any) -> Conversation:
    """Build the conversation of these messages."""
    profile = more.pop("profile", ModelProfile())
    return Conversation(ModelRequest(messages, **more), profile, "anthropic")


def turns(*messages: Message, **more: Any) -> list[dict[str, Any]]:
    """Return the turns of these messages."""
    return converse(*messages, **more).messages()


def text(value: str) -> dict[str, Any]:
    """Make a text block."""
    return {"type": "text", "text": value}


def test_a_conversation_becomes_alternating_turns() -> None:
    """ANT1: system text apart, and four turns with both results in one of them."""
    made = converse(
        system("be"),
        user("hi"),
        assistant("let me", CALLS[:2]),
        tool_result("c1", "t", {"r": 1}),
        tool_result("c2", "t", "ok"),
        assistant("done"),
        system=("first",),
    )

    assert made.system() == [text("first\nbe")]
    assert made.messages() == [
        {"role": "user", "content": [text("hi")]},
        {
            "role": "assistant",
            "content": [
                text("let me"),
                {"type": "tool_use", "id": "c1", "name": "t", "input": {"n": 1}},
                {"type": "tool_use", "id": "c2", "name": "t", "input": {"n": 2}},
            ],
        },
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "c1", "content": '{"r":1}'},
                {"type": "tool_result", "tool_use_id": "c2", "content": "ok"},
            ],
        },
        {"role": "assistant", "content": [text("done")]},
    ]


def test_results_come_first_and_in_call_order() -> None:
    """ANT2, wire-anthropic-01: results c1, c2, c3, then what the user said; a failure says so."""
    *_, last = turns(
        user("q"),
        assistant(None, CALLS),
        tool_result("c3", "t", "three", outcome="error"),
        tool_result("c1", "t", "one"),
        tool_result("c2", "t", "two", outcome="replied"),
        user("and hurry"),
    )

    assert last == {
        "role": "user",
        "content": [
            {"type": "tool_result", "tool_use_id": "c1", "content": "one"},
            {"type": "tool_result", "tool_use_id": "c2", "content": "two"},
            {"type": "tool_result", "tool_use_id": "c3", "content": "three", "is_error": True},
            text("and hurry"),
        ],
    }


def test_a_result_may_hold_an_image() -> None:
    """A tool's parts become blocks inside its result."""
    image = FilePart("image/png", url="https://h/a.png")
    profile = ModelProfile(parts={"tool": ("image/*",)})
    result = tool_result("c1", "t", (TextPart("see"), image))

    *_, last = turns(user("q"), assistant(None, CALLS[:1]), result, profile=profile)

    assert [block["type"] for block in last["content"][0]["content"]] == ["text", "image"]


def test_blank_text_never_goes_out() -> None:
    """ANT5, wire-anthropic-03: blanks are left out or have their text; roles alternate."""
    found = turns(
        user("   "),
        assistant(""),
        assistant(" \n"),
        user((TextPart(" "),)),
        assistant("", CALLS[:1]),
        tool_result("c1", "t", ""),
        assistant(None),
        user("now"),
    )

    assert [(turn["role"], len(turn["content"])) for turn in found] == [
        ("user", 2), ("assistant", 1), ("user", 2),
    ]  # fmt: skip
    assert found[0]["content"] == [text("(empty message)")] * 2
    assert found[2]["content"][0]["content"] == "(no output)"


def test_a_user_always_begins() -> None:
    """ANT11: a history that starts with a reply gets a user message before it."""
    assert turns(assistant("a"), user("b"))[0] == {
        "role": "user",
        "content": [text("(The conversation continues.)")],
    }


def test_white_space_at_the_very_end_is_cut() -> None:
    """The last reply of a request may not end in white space; others stay as they are."""
    found = turns(user("q"), assistant("a \n"), user("q"), assistant("b \n"))

    assert [turn["content"][0]["text"] for turn in found] == ["q", "a \n", "q", "b"]
    assert turns(user("q"), assistant("a", CALLS[:1]))[-1]["content"][0] == text("a")


def test_foreign_ids_are_made_fit_and_stay_different() -> None:
    """ANT9: ids of another vendor are accepted, pairs stay intact, `a.b` and `a:b` differ."""
    calls = tuple(tool_call(call_id, "t") for call_id in ("functions.add:0", "a.b", "a:b"))
    _, asked, answered = turns(
        user("q"), assistant(None, calls), *(tool_result(c.id, "t", "r") for c in calls)
    )

    ids = [block["id"] for block in asked["content"]]
    assert ids == [block["tool_use_id"] for block in answered["content"]]
    assert len(set(ids)) == 3 and all(i.replace("_", "").isalnum() for i in ids)
    assert ids[0].startswith("functions_add_0")


def test_invalid_calls_and_odd_names_are_sent() -> None:
    """An invalid call carries its raw text; a made-up name is made fit."""
    odd = (ToolCall("c1", "my tool", None, '{"a"'), ToolCall("c2", "", None))

    _, asked = turns(user("q"), assistant(None, odd))

    assert asked["content"] == [
        {"type": "tool_use", "id": "c1", "name": "my_tool", "input": {"invalid_arguments": '{"a"'}},
        {"type": "tool_use", "id": "c2", "name": "_", "input": {"invalid_arguments": ""}},
    ]  # fmt: skip


def test_tools_may_have_to_be_told_as_text() -> None:
    """Gateways that refuse tool blocks without tools read them as text."""
    profile = ModelProfile(tools_with_history=True)
    history = (
        user("q"), assistant("a", CALLS[:1]), tool_result("c1", "t", "r"),
        assistant(None, CALLS[1:2]), tool_result("c2", "t", ""),
    )  # fmt: skip

    told = turns(*history, profile=profile)
    with_tools = turns(*history, profile=profile, tools=(ToolSpec("t", "d", {}),))

    assert [block["text"] for turn in told for block in turn["content"]] == [
        "q", "a", '[called t with {"n":1}]', "[t returned: r]",
        '[called t with {"n":2}]', "[t returned: (no output)]",
    ]  # fmt: skip
    assert has_tool_blocks(with_tools) and not has_tool_blocks(told)


THINKING = {"type": "thinking", "thinking": "深く 🌍 é ", "signature": "s1", "unknown": [1]}
OWN = (
    THINKING,
    {"type": "text", "text": " "},
    {"type": "redacted_thinking", "data": "xyz"},
    {"type": "tool_use", "id": "toolu_1", "name": "t", "input": {"b": 1, "a": 2}},
)


def replayed(message: Message, **more: Any) -> list[dict[str, Any]]:
    """Return the blocks a message is sent as."""
    blocks: list[dict[str, Any]] = turns(user("q"), message, **more)[1]["content"]
    return blocks


def own(format: str = FORMAT, source: str = "anthropic", data: Any = OWN) -> Message:
    """Make a reply that carries its provider's own list."""
    call = tool_call("toolu_1", "t", {"b": 1, "a": 2})
    return assistant("said", (call,)).replace(blocks=Blocks(format, tuple(data), source))


def test_a_providers_own_list_is_sent_as_it_was() -> None:
    """ANT4, wire-anthropic-02: every block and unknown key in order; blank text never goes."""
    assert replayed(own()) == [THINKING, *OWN[2:]]


def test_a_changed_call_id_is_changed_inside_the_list() -> None:
    """Only ids that we changed are changed."""
    renamed = own().replace(tool_calls=(tool_call("call:9", "t"),))

    blocks = replayed(renamed)

    assert blocks[0] is THINKING
    assert blocks[-1]["id"].startswith("call_9") and blocks[-1]["input"] == {"b": 1, "a": 2}


@pytest.mark.parametrize(
    "message",
    [
        own(format="other-parts"),
        own(source="a-gateway"),
        own(data=()),
        own().replace(incomplete=True),
        own().replace(model_content="said", rewritten_by=("x",)),
        own(data=OWN[:3]),
        own(data=(OWN[3], THINKING)),
        own(data=(*OWN[3:], THINKING, text(" "))),
    ],
    ids=["format", "source", "empty", "incomplete", "rewritten", "other calls", "ends thinking",
         "ends thinking and blank"],
)  # fmt: skip
def test_a_foreign_list_is_rebuilt(message: Message) -> None:
    """ANT10: blocks of another format or provider are ignored; text and calls are rebuilt."""
    assert [block["type"] for block in replayed(message)] == ["text", "tool_use"]


def test_places_say_where_messages_went() -> None:
    """Each message of the request is found again in its turn; what was left out is not."""
    made = converse(system("s"), user("a"), user("b"), assistant(""), assistant("c"))

    assert sorted(made.places) == [1, 2, 4]
    turn, block = made.places[2]
    assert turn is made.messages()[0] and block == text("b")
    assert made.system() == [text("s")]
    assert converse(user("a")).system() == []
    assert converse().messages() == []
