"""The strict scripted provider itself: its rules, its streams, its records."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest
from provider_rules import Refused, Rules, check_openai
from scripted_provider import (
    Call,
    Hold,
    ProviderControl,
    Reply,
    ScriptedProcess,
    ScriptedProvider,
)

USER = {"role": "user", "content": "hi"}
TOOL = {"type": "function", "function": {"name": "add", "parameters": {"type": "object"}}}


def asked(call_id: str = "c1", name: str = "add", arguments: str = "{}") -> dict[str, Any]:
    """Make an assistant message with one call."""
    function = {"name": name, "arguments": arguments}
    call = {"id": call_id, "type": "function", "function": function}
    return {"role": "assistant", "content": None, "tool_calls": [call]}


def result(call_id: str = "c1", content: Any = "r") -> dict[str, Any]:
    """Make the result of a call."""
    return {"role": "tool", "tool_call_id": call_id, "content": content}


def check(body: Any, **rules: Any) -> None:
    """Check a body, or messages, by the rules."""
    if isinstance(body, list):
        body = {"model": "m", "messages": body}
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    check_openai(raw, Rules(**rules))


def spec(**function: Any) -> dict[str, Any]:
    """Make a body with one tool."""
    return {"model": "m", "messages": [USER], "tools": [{"type": "function", "function": function}]}


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"{", "could not parse"),
        (b'{"a":1,"a":2}', "occurs twice"),
        (b"\xff", "could not parse"),
        (b'{"a":NaN}', "not JSON"),
        (b"[]", "not an object"),
        (b'{"model":"\\ud83c"}', "lone surrogate"),
        ({"model": "m", "messages": [USER], "origin": 1}, "Unrecognized request argument"),
        ({"messages": [USER]}, "must provide a model"),
        ([], "too short"),
        ([{"role": "robot"}], "Invalid value for role"),
        ([{**USER, "id": "m1"}], "Additional properties"),
        ([USER, {"role": "system", "content": "a"}], "must be at the beginning"),
        ([{"role": "user", "content": " "}], "non-empty"),
        ([{"role": "user", "content": None}], "Invalid type"),
        ([{"role": "user", "content": [{"type": "text", "text": ""}]}], "non-empty"),
        ([{"role": "user", "content": [{"type": "video"}]}], "Invalid content type"),
        ([{"role": "user", "content": [{"type": "image_url"}]}], "Missing required"),
        ([USER, {"role": "assistant", "content": None}], "got null"),
        ([USER, {"role": "assistant", "content": ""}], "non-empty"),
        ([USER, {"role": "assistant", "content": "a", "tool_calls": []}], "too short"),
        ([USER, asked()], "must be followed by tool messages"),
        ([USER, asked(), USER, result()], "must be followed by tool messages"),
        ([USER, result()], "must be a response to a preceding message"),
        ([USER, asked(), result(), result()], "must be a response"),
        ([USER, asked(), result(), asked(), result()], "Duplicate tool call id"),
        ([USER, asked(call_id=""), result("")], "empty id"),
        ([USER, asked(name="a b"), result()], "Invalid 'function.name'"),
        ([USER, asked(arguments="[1]"), result()], "expected a JSON object"),
        ([USER, asked(), result(content="")], "non-empty"),
        ([USER, asked(), {"role": "tool", "content": "r"}], "Missing parameter"),
        ({"model": "m", "messages": [USER], "tools": []}, "too short"),
        ({"model": "m", "messages": [USER], "tools": [TOOL, TOOL]}, "must be unique"),
        ({"model": "m", "messages": [USER], "tool_choice": "auto"}, "only allowed when 'tools'"),
        (spec(name="a b", parameters={"type": "object"}), "Invalid 'tools"),
        (spec(name="a", parameters={}), "type: \"object\"'"),
        (spec(name="a", parameters={"type": "object", "properties": 3}), "Invalid schema"),
        (spec(name="a", strict=True, parameters={"type": "object", "properties": {"x": {}}}),
         "'required' must list"),
        ({**spec(name="a", parameters={"type": "object"}), "tool_choice": "all"}, "tool_choice"),
        ({"model": "m", "messages": [USER], "max_tokens": 0}, "at least 1"),
        ({"model": "m", "messages": [USER], "temperature": 3}, "expected 0 to 2"),
        ({"model": "m", "messages": [USER], "stream_options": {}}, "only allowed when 'stream'"),
        ({"model": "m", "messages": [USER], "stop": []}, "1 to 4"),
        ({"model": "m", "messages": [USER], "response_format": {"type": "x"}}, "response_format"),
        ({"model": "m", "messages": [USER], "response_format": {"type": "json_schema"}}, "name"),
    ],
)  # fmt: skip
def test_a_violation_is_refused(body: Any, words: str) -> None:
    """Each rule of real servers has its sentence."""
    with pytest.raises(Refused, match=words.replace("(", r"\(")):
        check(body)


def test_what_is_well_formed_is_accepted() -> None:
    """A whole conversation with tools, parts and settings passes."""
    image = {"type": "image_url", "image_url": {"url": "https://h/a.png"}}
    spoken = {"role": "assistant", "content": "a"}

    check(
        {
            "model": "m",
            "messages": [
                {"role": "system", "content": "be"},
                {"role": "user", "content": [{"type": "text", "text": "a"}, image]},
                asked(), result(), spoken, USER,
            ],
            "tools": [TOOL],
            "tool_choice": {"type": "function", "function": {"name": "add"}},
            "stream": True,
            "stream_options": {"include_usage": True},
        }
    )  # fmt: skip


def test_servers_differ_in_their_rules() -> None:
    """Alternation, reasoning and further keys are settings."""
    spoken = {"role": "assistant", "content": "a", "reasoning_content": "r"}

    with pytest.raises(Refused, match="must alternate"):
        check([USER, USER], alternate=True)
    with pytest.raises(Refused, match="must alternate"):
        check([spoken], alternate=True)
    with pytest.raises(Refused, match="not permitted"):
        check([USER, spoken], reasoning="refuse")
    with pytest.raises(Refused, match="Missing `reasoning_content`"):
        check([USER, asked(), result()], reasoning="demand")
    check({"model": "m", "messages": [USER], "top_k": 3}, extra_keys=("top_k",))


def post(provider: ProviderControl, **body: Any) -> httpx.Response:
    """Send a request without a client of ours."""
    given = {"model": "m", "messages": [USER], **body}
    url = f"{provider.base_url}/chat/completions"
    return httpx.post(url, json=given, trust_env=False, timeout=10)


def test_the_script_is_played_in_order(provider: ScriptedProvider) -> None:
    """Rules by content first, then the queue, the fallback, and a clear end."""
    provider.add(Reply(text="one"))
    provider.when("SUM", Reply(text="rule 1"), Reply(text="rule 2"))
    asks_sum = [{"role": "user", "content": "SUM it"}]

    texts = [
        post(provider, messages=messages).json()["choices"][0]["message"]["content"]
        for messages in (asks_sum, [USER], asks_sum, asks_sum)
    ]
    end = post(provider)
    provider.otherwise(Reply(text="again"))

    assert texts == ["rule 1", "one", "rule 2", "rule 2"]
    assert (end.status_code, "the script has ended" in end.text) == (400, True)
    assert post(provider).json()["choices"][0]["message"]["content"] == "again"


def test_a_request_is_recorded(provider: ScriptedProvider) -> None:
    """Exact bytes, headers, what was refused, and when it was finished."""
    provider.add(Reply(text="a"))
    post(provider)
    refused = post(provider, messages=[{"role": "user", "content": ""}])

    first, second = provider.wait_requests(2)
    assert first.body == b'{"model":"m","messages":[{"role":"user","content":"hi"}]}'
    assert (first.status, first.problem, first.headers["accept"]) == (200, None, "*/*")
    assert first.finished_at is not None and first.messages == [USER]
    assert refused.json()["error"]["param"] == "messages.[0].content"
    assert provider.problems == [second.problem] == ["text content must be non-empty"]


def test_a_window_is_kept(provider: ScriptedProvider) -> None:
    """Above its window it refuses as OpenAI does (prompt plus output), or as llama.cpp does."""
    provider.otherwise(Reply(text="a"))
    provider.configure(window=20)
    long = [{"role": "user", "content": "x" * 100}]

    assert "resulted in 30 tokens" in post(provider, messages=long).text
    assert "requested 26 tokens (6 in the messages, 20" in post(provider, max_tokens=20).text
    assert post(provider).json()["usage"]["prompt_tokens"] == 6
    provider.configure(overflow="llama.cpp")
    assert post(provider, max_tokens=20).status_code == 200
    assert post(provider, messages=long).json()["error"]["n_ctx"] == 20


def test_what_it_answers_can_be_computed(provider: ScriptedProvider) -> None:
    """In the same process, functions may answer and count."""
    provider.script.answer = lambda record: Reply(text=f"{len(record.messages)}")
    provider.script.count = lambda body: 7

    answer = post(provider).json()

    assert answer["choices"][0]["message"]["content"] == "1"
    assert answer["usage"]["prompt_tokens"] == 7


def test_it_runs_as_a_process_of_its_own() -> None:
    """The same commands over HTTP; replies survive the way there."""
    reply = Reply(calls=(Call("add", {"a": 1}),), chunks=({"content": "a"}, Hold("x")))

    with ScriptedProcess() as provider:
        provider.add(Reply(text="hi"), reply)
        provider.configure(routes={"/v1/models": (200, {"data": []})})
        answer = post(provider).json()
        models = httpx.get(f"{provider.base_url}/models", trust_env=False).json()
        provider.configure(api_key="right")
        refused = post(provider)
        provider.reset()

        assert provider.requests == []
    assert answer["choices"][0]["message"]["content"] == "hi"
    assert models == {"data": []}
    assert (refused.status_code, Reply.from_json(reply.to_json())) == (401, reply)
