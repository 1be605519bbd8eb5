"""A client without filters is the model itself, byte for byte on the wire."""

from __future__ import annotations

import pytest
from backscroll.kernel.client import ChatClient
from backscroll.kernel.message import assistant, tool_call, tool_result, user
from backscroll.kernel.model import ChatModel, Delta, ModelOptions, ModelRequest
from backscroll.kernel.request import ChatRequest, Stream
from backscroll.kernel.tool import tool
from backscroll.providers.anthropic import AnthropicModel
from backscroll.providers.openai import OpenAIModel
from scripted_provider import Reply, ScriptedProvider


@tool
def look(at: str) -> str:
    """Look at something."""
    return at


MESSAGES = (
    user("hi 🌍"),
    assistant("Looking.", [tool_call("c1", "look", {"at": "x"})]),
    tool_result("c1", "look", "saw"),
    user("and?"),
)
OPTIONS = ModelOptions(temperature=0.25, max_output_tokens=50, stop=("END",), retry=False)


async def ignore(delta: Delta) -> None:
    """Take a delta."""


@pytest.mark.parametrize("streams", [True, False], ids=["streaming", "in one piece"])
@pytest.mark.parametrize("vendor", ["openai", "anthropic"])
async def test_no_filter_is_the_bare_model_call(
    provider: ScriptedProvider, vendor: str, streams: bool
) -> None:
    """LAY4: both send the same bytes to the same path, and both come back with the same reply."""
    model: ChatModel = (
        OpenAIModel("m", base_url=provider.base_url, api_key="k")
        if vendor == "openai"
        else AnthropicModel("m", base_url=provider.url, api_key="k")
    )
    provider.add(Reply("hello"), Reply("hello"))
    asked = {"system": ("Be brief.",), "tools": (look.spec(),), "tool_choice": "required"}

    bare = ModelRequest(MESSAGES, options=OPTIONS, **asked)  # type: ignore[arg-type]
    if streams:
        last = [delta async for delta in model.stream(bare)][-1]
        direct = last.response  # type: ignore[union-attr]
    else:
        direct = await model.generate(bare)
    stream = Stream(ignore) if streams else None
    request = ChatRequest(MESSAGES, options=OPTIONS, stream=stream, **asked)  # type: ignore[arg-type]
    through = await ChatClient(model).chat(request)
    await model.aclose()

    one, two = provider.requests
    assert one.body == two.body and len(one.body) > 300
    assert one.json["model"] == "m" and provider.problems == []
    assert through.message.content == direct.message.content == "hello"
    assert (through.usage, through.finish_reason) == (direct.usage, direct.finish_reason)
