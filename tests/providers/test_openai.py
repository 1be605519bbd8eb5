"""What is special to chat completions models."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from backscroll.kernel.message import Message, assistant, tool_call, tool_result, user
from backscroll.kernel.model import (
    Finished,
    ModelOptions,
    ModelProfile,
    ModelRequest,
    ModelResponse,
)
from backscroll.kernel.tool import ToolSpec
from backscroll.providers.openai import OpenAIModel
from scripted_provider import Call, Reply, ScriptedProvider

ADD = ToolSpec("add", "Add numbers.", {"type": "object", "properties": {}})
REQUEST = ModelRequest((user("hi"),), ("Be brief.",), (ADD,))


@asynccontextmanager
async def model(provider: ScriptedProvider, **options: Any) -> AsyncIterator[OpenAIModel]:
    """Give a model of the scripted provider, and close it."""
    made = OpenAIModel("m", base_url=provider.base_url, trust_env=False, **options)
    try:
        yield made
    finally:
        await made.aclose()


async def play(made: OpenAIModel, request: ModelRequest = REQUEST) -> ModelResponse:
    """Stream a reply to its end and return the response."""
    deltas = [delta async for delta in made.stream(request)]
    assert isinstance(deltas[-1], Finished)
    return deltas[-1].response


async def test_two_turns_without_ids_have_different_ones(provider: ScriptedProvider) -> None:
    """OAI3, wire-openai-02: minted ids are unique, and no argument text is text."""
    calls = [{"index": n, "function": {"name": "add", "arguments": "{}"}} for n in (0, 1)]
    provider.otherwise(Reply(chunks=({"tool_calls": calls}, "data: [DONE]\n\n")))

    async with model(provider) as made:
        replies = [await play(made) for _ in range(2)]

    ids = [call.id for reply in replies for call in reply.tool_calls]
    assert len(set(ids)) == 4 and all(call_id.startswith("call_") for call_id in ids)
    assert [reply.text for reply in replies] == ["", ""]


async def test_demanded_reasoning_is_sent_back(provider: ScriptedProvider) -> None:
    """OAI10, wire-openai-05: a server that demands the reasoning gets it unchanged."""
    provider.configure(reasoning="demand")
    provider.add(Reply(reasoning="R1 é ", calls=(Call("add", {}, "c1"),)), Reply(text="done"))
    profile = ModelProfile(replay_reasoning="tool_calls")

    async with model(provider, profile=profile) as made:
        first = (await play(made)).message
        stored = Message.from_dict(json.loads(json.dumps(first.to_dict())))
        result = tool_result("c1", "add", "3")
        await play(made, ModelRequest((user("hi"), stored, result)))

    assert provider.requests[1].messages[1]["reasoning_content"] == "R1 é "
    assert provider.problems == []


async def test_one_history_for_another_server(provider: ScriptedProvider) -> None:
    """OAI10: a server that refuses reasoning gets none by default."""
    provider.configure(reasoning="refuse")
    provider.add(Reply(text="ok"))
    spoken = assistant(None, (tool_call("c1", "add"),)).replace(reasoning="R1")

    async with model(provider) as made:
        await made.generate(ModelRequest((user("q"), spoken, tool_result("c1", "add", "3"))))

    assert provider.problems == []


async def test_a_whole_answer_and_a_stream_are_the_same(provider: ScriptedProvider) -> None:
    """The wire is named, and both ways of asking give one message."""
    provider.otherwise(Reply(text="Hi", reasoning="hm", calls=(Call("add", {"a": 1}, "c1"),)))
    options = ModelOptions(top_k=3)

    async with model(provider, options=options) as made:
        whole, streamed = await made.generate(REQUEST), await play(made)

    assert whole.message == streamed.message
    assert made.wire == made.setup()["wire"] == "openai-chat/1"
    assert provider.problems == []
