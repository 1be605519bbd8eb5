"""Messages bodies: settings, tools, order."""

from __future__ import annotations

import json
from typing import Any

import pytest
from backscroll.kernel.errors import ModelError
from backscroll.kernel.message import assistant, tool_call, tool_result, user
from backscroll.kernel.model import ModelOptions, ModelProfile, ModelRequest, Named
from backscroll.kernel.tool import ToolSpec
from backscroll.providers.anthropic_request import (
    COUNTER,
    ENCODER,
    build_request,
    left_out,
)
from backscroll.providers.wire import WireConfig

CONFIG = WireConfig("m", "anthropic")
ADD = ToolSpec("add", "Add.", {"type": "object", "properties": {}})
SCHEMA = {"type": "object", "properties": {"a": {"type": "string"}}}
FORMAT = {"type": "json_schema", "json_schema": {"name": "x", "schema": SCHEMA}}
WITH_CALLS = (user("q"), assistant(None, (tool_call("c", "add"),)), tool_result("c", "add", "r"))


def build(*messages: Any, profile: ModelProfile | None = None, **more: Any) -> dict[str, Any]:
    """Build a body."""
    request = ModelRequest(messages or (user("q"),), **more)
    return build_request(request, profile or ModelProfile(), CONFIG)


def test_a_plain_request_is_short() -> None:
    """Model, limit and messages; a user message of one text is text."""
    assert build() == {
        "model": "m",
        "max_tokens": 4096,
        "messages": [{"role": "user", "content": "q"}],
    }


def test_settings_have_one_order() -> None:
    """MOD5: the keys of a body come in the order of the specification, extra_body last."""
    options = ModelOptions(
        model="other", max_output_tokens=9, temperature=0, top_p=0.5, top_k=3, stop=("a",),
        thinking={"type": "disabled"}, response_format=FORMAT, user="u",
        service_tier="auto", extra_body={"z": 1},
    )  # fmt: skip
    request = ModelRequest((user("q"),), ("s",), (ADD,), options=options)

    body = build_request(request, ModelProfile(response_format="json_schema"), CONFIG, True)

    assert list(body) == [
        "model", "max_tokens", "system", "messages", "tools", "tool_choice", "temperature",
        "top_p", "top_k", "stop_sequences", "thinking", "output_config", "metadata",
        "service_tier", "stream", "z",
    ]  # fmt: skip
    closed = {**SCHEMA, "additionalProperties": False}
    assert body["output_config"] == {"format": {"type": "json_schema", "schema": closed}}
    assert body["metadata"] == {"user_id": "u"}
    assert body["system"] == "s"


@pytest.mark.parametrize(
    ("asked", "known", "expected"), [(None, None, 4096), (None, 64, 64), (7, 64, 7)]
)
def test_the_token_limit_is_always_there(asked: Any, known: Any, expected: int) -> None:
    """`max_tokens` is what was asked for, else the profile's, else 4096."""
    options, profile = ModelOptions(max_output_tokens=asked), ModelProfile(max_output_tokens=known)

    assert build(options=options, profile=profile)["max_tokens"] == expected


@pytest.mark.parametrize(
    ("choice", "parallel", "expected"),
    [
        ("auto", None, {"type": "auto"}),
        ("required", None, {"type": "any"}),
        (Named("add"), None, {"type": "tool", "name": "add"}),
        ("auto", False, {"type": "auto", "disable_parallel_tool_use": True}),
        ("auto", True, {"type": "auto"}),
    ],
)
def test_a_tool_choice_goes_with_tools(choice: Any, parallel: Any, expected: Any) -> None:
    """auto, any, one by name; side by side unless it is switched off."""
    options = ModelOptions(parallel_tool_calls=parallel)

    body = build(tools=(ADD, ToolSpec("c", "d", {})), tool_choice=choice, options=options)

    assert body["tool_choice"] == expected
    assert body["tools"] == [
        {"name": "add", "description": "Add.", "input_schema": dict(ADD.schema)},
        {"name": "c", "description": "d", "input_schema": {"type": "object", "properties": {}}},
    ]


def test_no_tools_means_neither_tools_nor_choice() -> None:
    """REQ2: without tools, and with `none` before any call, neither goes out."""
    for body in (build(tool_choice="required"), build(tools=(ADD,), tool_choice="none")):
        assert "tools" not in body and "tool_choice" not in body


def test_none_keeps_the_tools_of_a_history_with_calls() -> None:
    """Tool blocks in the messages need their tools, with choice `none`."""
    options = ModelOptions(parallel_tool_calls=False)

    body = build(*WITH_CALLS, tools=(ADD,), tool_choice="none", options=options)

    assert body["tool_choice"] == {"type": "none"} and len(body["tools"]) == 1


def test_a_choice_that_is_not_offered_is_refused() -> None:
    """Naming a tool that is not there is an invalid request."""
    with pytest.raises(ModelError, match="expected an offered tool, got 'sub'"):
        build(tools=(ADD,), tool_choice=Named("sub"))


@pytest.mark.parametrize(
    "value",
    [
        {"type": "json_object"},
        {"type": "json_schema"},
        {"type": "json_schema", "json_schema": {}},
        {"type": "json_schema", "json_schema": {"schema": {"type": "array"}}},
    ],
)
def test_a_format_without_a_schema_is_left_out(value: Any) -> None:
    """This wire takes schemas only."""
    options, profile = (
        ModelOptions(response_format=value),
        ModelProfile(response_format="json_schema"),
    )

    assert "output_config" not in build(options=options, profile=profile)
    assert left_out(options, profile) == ["response_format"]


def test_options_this_wire_does_not_know_are_left_out() -> None:
    """`seed` and `reasoning_effort`, and a format the profile does not support."""
    options = ModelOptions(seed=1, reasoning_effort="low", response_format=FORMAT)

    assert "output_config" not in build(options=options)
    assert left_out(options, ModelProfile()) == ["seed", "reasoning_effort", "response_format"]
    assert left_out(ModelOptions(), ModelProfile()) == []


def test_what_this_api_refuses_is_not_sent() -> None:
    """A blank stop text, thinking that does not fit, sampling beside thinking."""
    thinking = {"type": "enabled", "budget_tokens": 2_000}
    options = ModelOptions(stop=("\n", "END"), thinking=thinking, temperature=0, top_k=3)

    body = build(options=options)
    forced = build(tools=(ADD,), tool_choice="required", options=options)

    assert (body["stop_sequences"], body["thinking"]) == (["END"], thinking)
    assert not {"temperature", "top_k"} & body.keys()
    assert "thinking" not in forced and (forced["temperature"], forced["top_k"]) == (0, 3)
    assert "stop_sequences" not in build(options=ModelOptions(stop=(" ",)))


def test_bytes_are_canonical_json() -> None:
    """MOD5: UTF-8 as it is, no blanks."""
    body = ENCODER.encode(ModelRequest((user("你好 🌍"),)), ModelProfile(), CONFIG, True)

    assert body.decode() == (
        '{"model":"m","max_tokens":4096,"messages":[{"role":"user","content":"你好 🌍"}],'
        '"stream":true}'
    )


def test_a_request_to_count_holds_the_prompt_alone() -> None:
    """The same model, system text, messages and tools; no limits, no sampling, nothing merged."""
    options = ModelOptions(max_output_tokens=9, temperature=0, stop=("a",), extra_body={"z": 1})
    request = ModelRequest((user("q"),), ("s",), (ADD,), options=options)

    counted = json.loads(COUNTER.encode(request, ModelProfile(), CONFIG, False))

    assert list(counted) == ["model", "system", "messages", "tools", "tool_choice"]
    sent = build_request(request, ModelProfile(), CONFIG)
    assert counted == {name: sent[name] for name in counted}
