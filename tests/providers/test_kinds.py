"""Every profile against a strict server that behaves like its provider."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest
from backscroll.kernel.errors import ModelError
from backscroll.kernel.message import assistant, tool_call, tool_result, user
from backscroll.kernel.model import (
    Finished,
    ModelOptions,
    ModelProfile,
    ModelRequest,
    ModelResponse,
    Named,
)
from backscroll.kernel.tool import ToolSpec
from backscroll.kernel.usage import Usage
from backscroll.providers.openai import OpenAIModel
from backscroll.providers.profiles import VENDORS, profile_for
from provider_kinds import KINDS
from scripted_provider import Call, Reply, ScriptedProvider, usage_of

MODELS = {"openai": "o3", "azure": "gpt-5", "deepseek": "deepseek-chat"}
CASES = [(name, name, MODELS.get(name, "m")) for name in VENDORS if name != "anthropic"]
CASES += [("deepseek thinking", "deepseek", model) for model in ("deepseek-reasoner",)]
CASES += [("deepseek thinking", "deepseek", "deepseek-v4-pro"), ("openai", "openai", "gpt-4o")]
IDS = [f"{kind}: {model}" for kind, _, model in CASES]

SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}}}
TOOLS = (ToolSpec("add", "Add.", SCHEMA), ToolSpec("sub", "Subtract.", SCHEMA))
LONG = "chatcmpl-tool-" + "2" * 32
"""An id as some servers make it, longer than others take."""

ASKED = (tool_call("call_one", "add", {"a": 1}), tool_call(LONG, "sub"))
HISTORY = (
    user("hi"),
    assistant(None, ASKED).replace(reasoning="R0"),
    tool_result("call_one", "add", "1"),
    tool_result(LONG, "sub", ""),
    user("stop, what else?"),
)
WHOLE_TURN = (*HISTORY[:-1], assistant("done").replace(reasoning="R1"), user("and now?"))
ALL_OPTIONS = ModelOptions(
    max_output_tokens=50, temperature=0.5, top_p=0.9, stop=("END",), seed=7, user="u",
    service_tier="auto", parallel_tool_calls=True, response_format={"type": "json_object"},
)  # fmt: skip


@asynccontextmanager
async def model(
    provider: ScriptedProvider, case: tuple[str, str, str], **options: Any
) -> AsyncIterator[OpenAIModel]:
    """Play a kind of server, and give a model of it."""
    kind, name, model_name = case
    provider.configure(kind=kind)
    given = {"base_url": provider.base_url, "api_key": "KEY-PROV-789", "trust_env": False}
    made = OpenAIModel(model_name, provider=name, **{**given, **options})
    try:
        yield made
    finally:
        await made.aclose()


async def play(made: OpenAIModel, request: ModelRequest) -> ModelResponse:
    """Stream a reply to its end and return the response."""
    deltas = [delta async for delta in made.stream(request)]
    assert isinstance(deltas[-1], Finished)
    return deltas[-1].response


@pytest.mark.parametrize("case", CASES, ids=IDS)
async def test_a_conversation_is_accepted_and_read(
    provider: ScriptedProvider, case: tuple[str, str, str]
) -> None:
    """Tools, an interrupted batch, every option: nothing refused; reasoning and usage are read."""
    reply = Reply(text="Hi", reasoning="hm", calls=(Call("add", {"a": 1}, "c1"),))
    provider.otherwise(replace(reply, usage=usage_of(12, 3)))
    choices: tuple[Any, ...] = ("auto", "required", Named("add"), "none")

    async with model(provider, case) as made:
        await made.generate(ModelRequest(WHOLE_TURN, ("Be brief.",), TOOLS))
        for choice in choices:
            request = ModelRequest(HISTORY, ("Be brief.",), TOOLS, choice, ALL_OPTIONS)
            streamed, whole = await play(made, request), await made.generate(request)
            assert (streamed.text, streamed.reasoning, streamed.usage) == ("Hi", "hm", Usage(12, 3))
            assert streamed.message == whole.message

    assert provider.problems == []


@pytest.mark.parametrize("case", CASES, ids=IDS)
async def test_a_named_tool_is_asked_for_as_far_as_it_goes(
    provider: ScriptedProvider, case: tuple[str, str, str]
) -> None:
    """By name, else by offering that tool alone and saying `required`, else by offering it."""
    provider.otherwise(Reply(text="a"))

    async with model(provider, case) as made:
        await made.generate(ModelRequest((user("q"),), (), TOOLS, Named("sub")))
        form = made.profile.tool_choice

    body = provider.requests[0].json
    named = {"type": "function", "function": {"name": "sub"}}
    assert body.get("tool_choice") == {"all": named, "words": "required", "none": None}[form]
    names = [tool["function"]["name"] for tool in body["tools"]]
    assert names == (["add", "sub"] if form == "all" else ["sub"])


@pytest.mark.parametrize("case", CASES, ids=IDS)
async def test_a_wrong_key_is_auth_and_hidden(
    provider: ScriptedProvider, case: tuple[str, str, str]
) -> None:
    """ERR4: whatever the shape of a provider's 401, the kind is auth and the key is not shown."""
    provider.configure(api_key="another")

    async with model(provider, case) as made:
        with pytest.raises(ModelError) as raised:
            await made.generate(ModelRequest((user("q"),)))

    assert raised.value.kind == "auth"
    assert "***" in str(raised.value) and "KEY-PROV-789" not in str(raised.value.to_dict())


SILENT_ON_LIMIT = ("ollama", "groq")


@pytest.mark.parametrize("case", CASES, ids=IDS)
async def test_an_overflow_is_recognised(
    provider: ScriptedProvider, case: tuple[str, str, str]
) -> None:
    """OVF1: in each provider's own words, with the limit where they name it."""
    provider.configure(window=1000)

    async with model(provider, case) as made:
        with pytest.raises(ModelError) as raised:
            await play(made, ModelRequest((user("x" * 8000),)))

    assert raised.value.kind == "context_overflow" and raised.value.refusal is not None
    assert raised.value.refusal.cls == "overflow"
    assert raised.value.refusal.limit == (None if case[0] in SILENT_ON_LIMIT else 1000)


@pytest.mark.parametrize("case", CASES, ids=IDS)
async def test_reasoning_goes_back_under_the_servers_name(
    provider: ScriptedProvider, case: tuple[str, str, str]
) -> None:
    """OAI10: where a server takes reasoning, replaying it is a field of the profile."""
    rules = KINDS[case[0]].rules
    provider.otherwise(Reply(text="a"))
    profile = replace(profile_for(*case[1:]), replay_reasoning="tool_calls")

    async with model(provider, case, profile=profile) as made:
        if rules.reasoning == "refuse":
            with pytest.raises(ModelError, match="not permitted"):
                await made.generate(ModelRequest(HISTORY))
            return
        await made.generate(ModelRequest(HISTORY))

    spoken = next(m for m in provider.requests[0].messages if m["role"] == "assistant")
    assert spoken[rules.reasoning_field] == "R0" and provider.problems == []


PLAIN_IS_REFUSED = [
    ("openai", {"options": ModelOptions(max_output_tokens=5)}, "max_tokens"),
    ("azure", {"options": ModelOptions(max_output_tokens=5)}, "max_tokens"),
    ("llama.cpp", {"tools": TOOLS, "tool_choice": Named("add")}, "Invalid tool_choice type"),
    ("ollama", {"tools": TOOLS, "tool_choice": Named("add")}, "Invalid tool_choice type"),
    ("lm-studio", {"tools": TOOLS, "tool_choice": Named("add")}, "Invalid tool_choice type"),
    ("deepseek thinking", {"tools": TOOLS, "tool_choice": "required"}, "not support this"),
    ("deepseek thinking", {"messages": HISTORY}, "must be passed back"),
    (
        "deepseek thinking",
        {
            "messages": WHOLE_TURN,
            "profile": {"replay_reasoning": "tool_calls"},
        },
        "must be passed back",
    ),
    ("mistral", {"messages": HISTORY}, "but must be"),
    (
        "azure",
        {
            "messages": (
                user("a"), assistant(None, (tool_call(LONG, "x"),)),
                tool_result(LONG, "x", "r"),
            )
        },
        "got a string with length 46",
    ),
    ("mistral", {"options": ModelOptions(seed=1)}, "argument supplied: seed"),
    (
        "mistral",
        {
            "messages": (
                user("a"), assistant(None, (tool_call("Abcdef123", "x"),)),
                tool_result("Abcdef123", "x", "r"), user("b"),
            )
        },
        "Unexpected role 'user' after role 'tool'",
    ),
    (
        "lm-studio",
        {"options": ModelOptions(response_format={"type": "json_object"})},
        "must be 'json_schema' or 'text'",
    ),
    (
        "deepseek",
        {"options": ModelOptions(response_format={"type": "json_schema", "json_schema": {}})},
        "must be 'text' or 'json_object'",
    ),
    ("llama.cpp", {"profile": {"system_role": "developer"}}, "Invalid value for role"),
    ("groq", {"messages": HISTORY, "profile": {"tool_name_field": True}}, "name"),
    ("vllm", {"messages": HISTORY, "profile": {"replay_reasoning": "always"}}, "reasoning_content"),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "asked", "words"), PLAIN_IS_REFUSED)
async def test_a_plain_profile_is_refused(
    provider: ScriptedProvider, kind: str, asked: dict[str, Any], words: str
) -> None:
    """Each field of a profile is needed: without it the server refuses, and we say its words."""
    profile = replace(
        ModelProfile(response_format="json_schema"), stream_usage=False, **asked.get("profile", {})
    )
    request = ModelRequest(
        asked.get("messages", (user("q"),)), ("s",), asked.get("tools", ()),
        asked.get("tool_choice", "auto"), asked.get("options", ModelOptions()),
    )  # fmt: skip

    async with model(provider, (kind, kind.split()[0], "m"), profile=profile) as made:
        with pytest.raises(ModelError, match=words) as raised:
            await made.generate(request)

    assert raised.value.kind == "invalid_request"


async def test_a_stream_that_ends_in_an_error_with_choices(provider: ScriptedProvider) -> None:
    """OAI9: an error beside a choice that says `error` is that error, not a finished reply."""
    last = {
        "id": "x", "error": {"code": 502, "message": "upstream broke off"},
        "choices": [{"index": 0, "delta": {"content": ""}, "finish_reason": "error"}],
    }  # fmt: skip
    provider.add(Reply(chunks=({"content": "Hel"}, last)))

    async with model(provider, ("openrouter", "openrouter", "m")) as made:
        with pytest.raises(ModelError, match="upstream broke off") as raised:
            await play(made, ModelRequest((user("q"),)))

    assert raised.value.kind == "provider" and raised.value.partial is not None
    assert raised.value.partial.text == "Hel"


@pytest.mark.parametrize("stream", [False, True])
async def test_a_bare_error_object_is_that_error(provider: ScriptedProvider, stream: bool) -> None:
    """OAI9: an answer that itself is the error, with status 200, is mapped."""
    body = {"object": "error", "message": "busy", "type": "rate_limit_error", "code": 429}
    provider.add(Reply(chunks=(f"data: {json.dumps(body)}\n\n",), body=None))
    whole = Reply(body=body)

    async with model(provider, ("vllm", "vllm", "m")) as made:
        if not stream:
            provider.reset()
            provider.add(whole)
        with pytest.raises(ModelError, match="busy") as raised:
            await (play if stream else _whole)(made, ModelRequest((user("q"),)))

    assert raised.value.kind == "rate_limit"


async def _whole(made: OpenAIModel, request: ModelRequest) -> ModelResponse:
    return await made.generate(request)
