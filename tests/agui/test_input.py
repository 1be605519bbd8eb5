"""Requests: what is read, what is refused and with which words."""

from __future__ import annotations

import json
from typing import Any

import pytest
from backscroll.agui.input import (
    ContextEntry,
    InputLimits,
    ResumeEntry,
    RunInput,
    check_for_agent,
    fingerprint,
    is_older,
    parse_object,
    read_request,
)
from backscroll.agui.options import AgentRules, Options
from backscroll.agui.refusal import RequestRefused, error_body
from backscroll.kernel.message import Role
from backscroll.kernel.tool import ToolSpec

USER = {"id": "u1", "role": "user", "content": "Hi"}


def body(*messages: Any, **members: Any) -> str:
    """Return a request as text."""
    return json.dumps({"threadId": "t", "runId": "r", "messages": list(messages), **members})


def refusal(text: str | bytes, limits: InputLimits | None = None) -> RequestRefused:
    """Return the refusal of a request."""
    with pytest.raises(RequestRefused) as caught:
        read_request(text, limits)
    return caught.value


def paths(text: str) -> list[str]:
    """Return the paths of all problems of a request."""
    return [problem["path"] for problem in refusal(text).details["problems"]]


def test_a_plain_request() -> None:
    """A minimal request is read, and its messages are in our shape."""
    request = read_request(body(USER, protocolVersion="1.0", parentRunId="r0"))

    assert (request.thread_id, request.run_id, request.parent_run_id) == ("t", "r", "r0")
    assert request.messages[0].role is Role.USER and request.messages[0].content == "Hi"
    assert not request.is_older_peer and request.options == Options()


def test_everything_a_request_may_bring() -> None:
    """Tools, context, state, properties and answers are values of ours."""
    request = read_request(
        body(
            USER,
            tools=[{"name": "pick", "description": "Pick.", "parameters": {"type": "object"}}],
            context=[{"description": "page", "value": "cart"}, {"description": "x", "value": " "}],
            state={"a": None},
            forwardedProps={"backscroll.timeline": "off", "user": {"id": 1}},
            resume=[{"interruptId": "c1", "status": "resolved", "payload": {"approved": True}}],
        )
    )

    assert request.tools == (ToolSpec("pick", "Pick.", {"type": "object"}),)
    assert request.context == (ContextEntry("page", "cart"),)
    assert request.state == {"a": None} and request.props == {"user": {"id": 1}}
    assert request.options.timeline == "off"
    assert request.resume == (ResumeEntry("c1", "resolved", {"approved": True}),)


def test_a_missing_id_is_named() -> None:
    """protocol-09: the path of the message, and the ids of the request."""
    found = refusal(body({"role": "user", "content": "Hi"}))

    assert (found.code, str(found)) == ("invalid_input", "messages[0].id is missing")
    assert error_body(found)["error"]["details"] == {
        "problems": [{"path": "messages[0].id", "message": "is missing"}],
        "threadId": "t",
        "runId": "r",
    }


def test_an_unknown_role_at_the_end_is_named() -> None:
    """protocol-09: a role of tomorrow as the last message could mean anything."""
    found = refusal(body({**USER, "role": "robot"}))

    assert str(found) == "messages[0].role is not a known role"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("hello", "not JSON: Expecting value at line 1, column 1"),
        ('{"a":', "not JSON: Expecting value at line 1, column 6"),
        ('{"a":NaN}', "not JSON: NaN is not JSON"),
        ("[]", "not a JSON object but a list"),
        ("7", "not a JSON object but a number"),
        (b"\xff{}", "not UTF-8 at byte 0"),
    ],
)
def test_text_that_is_not_json(text: str | bytes, message: str) -> None:
    """protocol-09: it says where the fault is; nothing of the text is repeated."""
    found = refusal(text)

    assert (found.code, str(found)) == ("not_json", message)


def test_a_good_request_after_bad_ones() -> None:
    """Reading keeps no state: the correct request is read as if nothing had been."""
    refusal("no")

    assert read_request(body(USER)).messages[0].id == "u1"


def test_every_problem_is_named_up_to_a_limit() -> None:
    """A refusal names every problem found, at most 20 of them."""
    many = [{"role": "user", "content": "x"} for _ in range(30)]

    assert paths(body({"id": 5, "role": "user", "content": 5})) == [
        "messages[0].id",
        "messages[0].content",
    ]
    assert len(paths(body(*many))) == 20


def test_missing_members_of_the_request() -> None:
    """threadId, runId and messages are needed."""
    assert paths("{}") == ["threadId", "runId", "messages"]


def test_sizes() -> None:
    """Too many bytes, messages, tools, schemas or context bytes: `too_large` names the limit."""
    small = InputLimits(input_bytes=300, messages=1, tools=1, schema_bytes=20, context_bytes=10)
    tool = {"name": "a", "description": "", "parameters": {"type": "object", "x": "yyyyyyyyy"}}

    assert refusal("x" * 301, small).details == {"limit": 300}
    assert refusal(body(USER, {**USER, "id": "u2"}), small).code == "too_large"
    assert refusal(body(tools=[tool]), small).code == "too_large"
    context = [{"description": "page", "value": "long value"}]
    assert refusal(body(context=context), small).code == "too_large"


def test_depth_and_numbers() -> None:
    """Deep nesting and numbers that JSON cannot carry are refused, naming the member."""
    deep = '{"state":' + "[" * 80 + "]" * 80 + "}"

    assert str(refusal(deep)) == "state is nested deeper than 64 levels"
    assert refusal("[" * 100_000).code == "invalid_input"
    assert str(refusal('{"state":1e999}')) == "state holds a number that is too large"


def test_lone_surrogates_become_the_replacement_character() -> None:
    """What enters is valid Unicode, in keys and texts; pairs are left alone."""
    value = parse_object('{"a\\ud800":["\\udc00","\\ud83c\\udf0d",{"b":"\\ud83c"}],"n":1}')

    assert value == {"a\ufffd": ["\ufffd", "🌍", {"b": "\ufffd"}], "n": 1}


def test_versions() -> None:
    """Another major is refused; whoever declares no 1.x is an older peer."""
    assert refusal(body(USER, protocolVersion="2.0")).code == "unsupported_version"
    assert read_request(body(USER)).is_older_peer
    assert not is_older("1.7") and is_older("1") and is_older(None)


def test_options_and_properties_are_checked() -> None:
    """A bad value of ours is refused by its path; properties must be an object."""
    assert paths(body(USER, forwardedProps={"backscroll.busy": "never"})) == [
        "forwardedProps.backscroll.busy"
    ]
    assert paths(body(USER, forwardedProps=[1])) == ["forwardedProps"]


def test_what_was_left_out_is_noted() -> None:
    """Parts of tomorrow and unknown options become operator notes."""
    message = {**USER, "content": [{"type": "hologram"}, {"type": "text", "text": "Hi"}]}

    notes = read_request(body(message, forwardedProps={"backscroll.later": 1})).notes

    assert [note.kind for note in notes] == ["stripped", "unknown_option"]
    assert notes[0].data["paths"] == ["messages[0].content[0]"]


def test_the_fingerprint_leaves_out_what_we_made() -> None:
    """Replies and results of ours do not change it; question, answers and agent do."""
    minted = {"id": "msg_" + "A" * 17, "role": "tool", "toolCallId": "c", "content": "x"}
    answer = {"id": "t1", "role": "tool", "toolCallId": "c", "content": "x"}
    plain = read_request(body(USER))

    mark = fingerprint("a", plain)

    assert fingerprint("a", read_request(body(USER, minted))) == mark
    assert fingerprint("a", read_request(body(USER, answer))) != mark
    assert fingerprint("b", plain) != mark
    assert fingerprint("a", read_request(body({**USER, "content": "Ho"}))) != mark
    assert fingerprint("a", read_request(body())) != mark


def test_an_agent_keeps_its_tools_and_choices() -> None:
    """A tool of the server cannot be replaced, and options must be allowed."""
    rules = AgentRules("a", tool_names=frozenset({"add"}))
    request = RunInput("t", "r", tools=(ToolSpec("x", "", {}), ToolSpec("add", "", {})))

    with pytest.raises(RequestRefused) as caught:
        check_for_agent(request, rules)

    assert caught.value.code == "duplicate_tool"
    assert caught.value.details["problems"][0]["path"] == "tools[1].name"
    check_for_agent(RunInput("t", "r", options=Options(busy="reject")), rules)
    with pytest.raises(RequestRefused, match="forwardedProps.backscroll.busy"):
        check_for_agent(RunInput("t", "r", options=Options(busy="queue")), rules)
