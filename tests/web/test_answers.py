"""Answers of the operator API, and reading its parameters."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from backscroll.agui.refusal import RequestRefused
from backscroll.store.keys import ThreadKey
from backscroll.web.answers import (
    choice,
    json_answer,
    number,
    path_number,
    read_body,
    thread_of,
    words,
)
from served import served
from starlette.requests import Request
from working import agent_of


def asking(**path: str) -> Request:
    """Return a request with these path parameters."""
    return Request(
        {
            "type": "http",
            "path": "/x",
            "headers": [],
            "query_string": b"",
            "server": ("localhost", 80),
            "path_params": path,
        }
    )


def refusal_of(call: Callable[[], Any]) -> RequestRefused:
    """Return what a call is refused with."""
    with pytest.raises(RequestRefused) as error:
        call()
    return error.value


def receiving(*parts: bytes, ends: bool = True) -> Any:
    """Return a receive that gives a body in parts."""
    messages: list[dict[str, Any]] = [
        {"type": "http.request", "body": part, "more_body": True} for part in parts
    ]
    if ends:
        messages[-1]["more_body"] = False
    messages.append({"type": "http.disconnect"})

    async def receive() -> dict[str, Any]:
        return messages.pop(0)

    return receive


def test_an_answer_is_kept_by_nobody() -> None:
    """JSON in UTF-8, under the policy of the console."""
    answer = json_answer({"text": "你好\ud800"}, 202)

    assert answer.status_code == 202 and answer.headers["cache-control"] == "no-store"
    assert "require-trusted-types-for 'script'" in answer.headers["content-security-policy"]
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert "你好" in bytes(answer.body).decode("utf-8")
    assert json.loads(bytes(answer.body))["text"].startswith("你好")


@pytest.mark.parametrize(
    ("segment", "key"),
    [
        ("support-1", ThreadKey("local", "support-1")),
        ("a%2520b", ThreadKey("local", "a b")),
        ("ann%2Fsupport-1", ThreadKey("ann", "support-1")),
        ("a%252Fb", ThreadKey("local", "a/b")),
        ("%257Bx%257D", ThreadKey("local", "{x}")),
        ("%25E4%25BC%259A%25E8%25AF%259D", ThreadKey("local", "会话")),
    ],
)
def test_a_thread_is_named_by_one_segment(segment: str, key: ThreadKey) -> None:
    """The key is encoded as a whole once more; whatever is in it, it is one segment."""
    assert thread_of(asking(thread=segment)) == key


@pytest.mark.parametrize("segment", ["a b", "%", "%20", "a%2F", "%2Fa", "a%2Fb%2Fc", "%FF"])
def test_what_is_no_key_is_not_found(segment: str) -> None:
    """A key is spelt in one way only."""
    assert refusal_of(lambda: thread_of(asking(thread=segment))).code == "not_found"


def test_numbers_of_a_query() -> None:
    """Absent is the default, too many are the most allowed."""
    assert number({}, "limit") is None and number({}, "limit", 50) == 50
    assert number({"limit": "7"}, "limit") == 7
    assert number({"limit": "900"}, "limit", 50, 200) == 200


@pytest.mark.parametrize("text", ["-1", "x", "", "1.5", "1_0", "+1", " 1", "٣", "9" * 16])
def test_what_is_no_number_is_named(text: str) -> None:
    """The parameter is the path of the problem."""
    refusal = refusal_of(lambda: number({"after": text}, "after"))

    assert (refusal.code, refusal.details["problems"][0]["path"]) == ("invalid_input", "after")


def test_numbers_of_a_path() -> None:
    """What is no number leads nowhere."""
    assert path_number(asking(seq="41"), "seq") == 41
    for text in ("x", "-1", "9" * 40, "٣"):
        assert refusal_of(lambda text=text: path_number(asking(seq=text), "seq")).code == (
            "not_found"
        )


def test_choices_and_words() -> None:
    """A word that is not offered is named with those that are; a list is split at commas."""
    refusal = refusal_of(lambda: choice({"fields": "all"}, "fields", ("head", "full"), "head"))

    assert str(refusal) == "fields must be one of head, full"
    assert choice({}, "fields", ("head", "full"), "head") == "head"
    assert words({"kind": "note,,call"}, "kind") == {"note", "call"}
    assert words({}, "kind") == frozenset()


async def test_a_body_is_read_to_its_end() -> None:
    """However many parts it comes in."""
    assert await read_body(receiving(b"ab", b"cd"), {b"content-length": b"4"}, 10) == b"abcd"
    assert await read_body(receiving(b""), {}, 10) == b""


@pytest.mark.parametrize(
    ("headers", "parts"),
    [
        ({b"content-length": b"11"}, (b"x",)),
        ({}, (b"x" * 6, b"x" * 6)),
        ({b"content-length": b"1"}, (b"x" * 11,)),
        ({b"content-length": b"9" * 5000}, (b"x" * 11,)),
    ],
)
async def test_no_more_than_the_limit_is_held(headers: Any, parts: Any) -> None:
    """What is stated or sent beyond it is refused, and the limit is named."""
    with pytest.raises(RequestRefused) as error:
        await read_body(receiving(*parts), headers, 10)

    assert error.value.code == "too_large" and error.value.details == {"limit": 10}


async def test_a_body_that_breaks_off() -> None:
    """Who leaves in the middle has asked for nothing."""
    with pytest.raises(RequestRefused, match="ended early"):
        await read_body(receiving(b"ab", ends=False), {}, 10)


async def test_a_body_may_be_left_out(valkey_url: str, prefix: str) -> None:
    """No body is an empty object; what is none is named."""
    async with served(agent_of("x"), valkey_url, prefix) as server:
        await server.run("t", "r", "hi")
        path = "/console/api/threads/t/cancel"
        answers = [await server.http.post(path, content=data) for data in (b"", b"{}", b"[]", b"{")]
        wrong = await server.http.post(path, json={"run": 7})

    assert [a.status_code for a in answers] == [200, 200, 400, 400]
    assert wrong.json()["error"]["details"]["problems"][0]["path"] == "run"
