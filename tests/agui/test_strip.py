"""Pre-strip: what a newer or sloppier peer may send without harm."""

from __future__ import annotations

from typing import Any

from backscroll.agui.strip import Stripped, strip_request

TEXT = {"type": "text", "text": "Hi"}


def stripped(*messages: Any, **members: Any) -> Stripped:
    """Return what is left of a request."""
    return strip_request({"threadId": "t", "runId": "r", "messages": list(messages), **members})


def user(content: Any, **members: Any) -> dict[str, Any]:
    """Return a user message."""
    return {"id": "u", "role": "user", "content": content, **members}


def test_unknown_members_are_removed() -> None:
    """At every depth, but not inside what belongs to the application."""
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}", "x": 1}}
    reply = {"id": "a", "role": "assistant", "toolCalls": [{**call, "x": 1}], "x": 1}
    out = stripped(
        reply,
        user([{**TEXT, "x": 1, "metadata": {"x": 1}}]),
        state={"x": 1},
        tools=[{"name": "f", "description": "", "parameters": {"x": 1}, "x": 1}],
        context=[{"description": "", "value": "", "x": 1}],
        data=1,
        type="x",
    ).value

    assert "x" not in out["messages"][0] and "data" not in out and "type" not in out
    assert out["messages"][0]["toolCalls"][0]["function"] == {"name": "f", "arguments": "{}"}
    assert out["messages"][1]["content"] == [{**TEXT, "metadata": {"x": 1}}]
    assert out["state"] == {"x": 1} and out["tools"][0]["parameters"] == {"x": 1}
    assert out["tools"][0].keys() == {"name", "description", "parameters"}
    assert out["context"] == [{"description": "", "value": ""}]


def test_nulls_of_optional_members_are_absent() -> None:
    """Null counts as absent where a member is optional, and stays where it is not."""
    reply = {"id": "a", "role": "assistant", "content": None, "toolCalls": None, "name": None}
    out = stripped(reply, user(None), state=None, tools=None).value

    assert out["messages"] == [{"id": "a", "role": "assistant"}, user(None)]
    assert "state" not in out and "tools" not in out


def test_what_is_ignored_may_hold_anything() -> None:
    """Attribution and encrypted values are not read at all."""
    out = stripped(user("Hi", subagentRunId=7, encryptedValue=7))

    assert out.value["messages"] == [user("Hi")]


def test_activities_are_removed_without_a_word() -> None:
    """They never come back to a server; the message before is the last one then."""
    out = stripped(user("Hi"), {"id": "x", "role": "activity", "content": {}})

    assert len(out.value["messages"]) == 1 and out.notes() == () and out.problems == []
    assert out.origins[("messages",)] == [0]


def test_unknown_roles_are_removed_or_refused() -> None:
    """Removed and noted inside the list, refused at its end."""
    inside = stripped({"id": "x", "role": "robot"}, user("Hi"))
    last = stripped(user("Hi"), {"id": "x", "role": "robot"}, {"id": "y", "role": "activity"})

    assert inside.origins[("messages",)] == [1] and inside.notes()[0].kind == "stripped"
    assert inside.notes()[0].data == {"paths": ["messages[0].role"]}
    assert [str(problem) for problem in last.problems] == ["messages[1].role is not a known role"]


def test_unknown_parts_are_removed() -> None:
    """A part of an unknown type, or with an unknown source, is left out and noted."""
    strange = {"type": "image", "source": {"type": "ether", "value": "x"}}
    out = stripped(user([{"type": "hologram"}, TEXT, strange]))

    assert out.value["messages"][0]["content"] == [TEXT]
    assert out.origins["messages", 0, "content"] == [1]
    assert out.left_out == ["messages[0].content[0]", "messages[0].content[2]"]


def test_a_message_without_parts_is_as_an_unknown_role() -> None:
    """Nothing is left of it: removed inside the list, refused at its end."""
    empty = user([{"type": "hologram"}])

    assert len(stripped(empty, user("Hi")).value["messages"]) == 1
    assert [p.path for p in stripped(empty).problems] == ["messages[0].content"]


def test_binary_parts_become_todays() -> None:
    """The part of before 1.0 is told by its media type, inline or by address."""
    inline = {"type": "binary", "mimeType": "image/png", "data": "AA", "filename": "a.png"}
    linked = {"type": "binary", "mimeType": "application/pdf", "url": "https://x"}
    handle = {"type": "binary", "mimeType": "audio/wav", "id": "f1"}

    out = stripped(user([inline, linked, handle])).value["messages"][0]["content"]

    assert out == [
        {
            "type": "image",
            "source": {"type": "data", "value": "AA", "mimeType": "image/png"},
            "metadata": {"filename": "a.png"},
        },
        {
            "type": "document",
            "source": {"type": "url", "value": "https://x", "mimeType": "application/pdf"},
        },
    ]


def test_what_is_no_object_is_left_to_the_checks() -> None:
    """Wrong shapes stay as they are and are refused with their path."""
    out = stripped(5, {"id": "x", "role": 7}, user([5, {"x": 1}]), tools=[5])

    assert out.value["messages"][0] == 5 and out.value["messages"][2]["content"] == [5, {"x": 1}]
    assert strip_request({"messages": 5}).value == {"messages": 5}
    odd = {"id": "a", "role": "assistant", "toolCalls": [5, {"function": 5}]}
    assert stripped(odd).value["messages"][0]["toolCalls"] == [5, {"function": 5}]
