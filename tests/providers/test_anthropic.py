"""A messages model against a strict server: real sockets, real bytes."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from backscroll.kernel.content import FilePart
from backscroll.kernel.errors import AssemblyError, ModelError
from backscroll.kernel.message import Message, assistant, tool_call, tool_result, user
from backscroll.kernel.model import (
    Delta,
    Finished,
    ModelOptions,
    ModelRequest,
    ModelResponse,
    Partial,
    Text,
)
from backscroll.kernel.tool import ToolSpec
from backscroll.kernel.usage import Usage
from backscroll.providers.anthropic import AnthropicModel
from provider_script_anthropic import anthropic_error
from scripted_provider import Call, Hold, Reply, ScriptedProvider

ADD = ToolSpec("add", "Add numbers.", {"type": "object", "properties": {}})
REQUEST = ModelRequest((user("hi"),), ("Be brief.",), (ADD,))
THOUGHT = Reply(text="Hi you", reasoning="深く 🌍 é ", calls=(Call("add", {}, "t1"),))


@asynccontextmanager
async def model(provider: ScriptedProvider, **options: Any) -> AsyncIterator[AnthropicModel]:
    """Give a model of the scripted provider, and close it."""
    given = {"base_url": provider.url, "api_key": "KEY-PROV-789", "trust_env": False}
    made = AnthropicModel("m", **{**given, **options})
    try:
        yield made
    finally:
        await made.aclose()


async def play(
    made: AnthropicModel, request: ModelRequest = REQUEST
) -> tuple[list[Delta], ModelResponse]:
    """Stream a reply to its end; return the deltas and the response."""
    deltas = [delta async for delta in made.stream(request)]
    last = deltas.pop()
    assert isinstance(last, Finished)
    return deltas, last.response


async def fails(made: AnthropicModel, request: ModelRequest = REQUEST) -> ModelError:
    """Stream a reply that breaks; return its error."""
    with pytest.raises(ModelError) as raised:
        await play(made, request)
    return raised.value


async def test_a_whole_answer_and_a_stream_are_the_same(provider: ScriptedProvider) -> None:
    """One reply, asked for in both ways, gives one message; usage is reported."""
    provider.otherwise(THOUGHT)

    async with model(provider) as made:
        whole, (_, streamed) = await made.generate(REQUEST), await play(made)

    assert whole.message == streamed.message
    assert whole.message.reasoning == "深く 🌍 é "
    assert isinstance(whole.usage, Usage) and whole.usage == streamed.usage
    assert made.wire == "anthropic-messages/1" and provider.problems == []


async def test_key_and_version_are_headers(provider: ScriptedProvider) -> None:
    """The key goes into `x-api-key`, or is a bearer token by setting; betas go along."""
    provider.otherwise(Reply(text="a"))
    provider.configure(api_key="KEY-PROV-789")

    async with model(provider, betas=("b-1", "b-2")) as made:
        await made.generate(REQUEST)
    async with model(provider, auth="bearer") as made:
        await made.generate(REQUEST)

    first, second = (record.headers for record in provider.requests)
    assert first["anthropic-version"] == "2023-06-01" and first["anthropic-beta"] == "b-1,b-2"
    assert second["authorization"] == "Bearer KEY-PROV-789" and "anthropic-beta" not in second


async def test_what_is_sent_is_what_encode_says(provider: ScriptedProvider) -> None:
    """MOD5: the recorded body equals `encode`, byte for byte."""
    provider.add(Reply(text="a"))

    async with model(provider) as made:
        await play(made)
        expected = made.encode(REQUEST, True)

    assert provider.requests[0].body == expected


async def test_characters_arrive_whole_however_they_are_cut(provider: ScriptedProvider) -> None:
    """HTTP1, i18n-03: byte by byte, with CRLF, comments and a BOM, the text is exact."""
    provider.add(Reply(text="你好世界🌍", split=1, crlf=True, comments=True, bom=True))

    async with model(provider) as made:
        assert (await play(made))[1].text == "你好世界🌍"


async def test_thinking_survives_a_store_and_goes_back_as_it_came(
    provider: ScriptedProvider,
) -> None:
    """ANT4, wire-anthropic-02: after a reload the follow-up's list equals the received one."""
    provider.add(THOUGHT, Reply(text="done"))

    async with model(provider) as made:
        (deltas, first) = await play(made)
        stored = Message.from_dict(json.loads(json.dumps(first.message.to_dict())))
        follow_up = (user("hi"), stored, tool_result("t1", "add", "3"))
        await play(made, ModelRequest(follow_up, tools=(ADD,)))

    sent = provider.requests[1].messages[1]["content"]
    assert sent == list(first.message.blocks.data) if first.message.blocks else False
    assert sent[0]["signature"] and sent[0]["signature"] not in str(deltas)
    assert provider.problems == []


@pytest.mark.parametrize("end", ["eof", "drop", "reset"])
async def test_a_stream_without_its_end_is_incomplete(provider: ScriptedProvider, end: Any) -> None:
    """ANT6: however the body ends, without a marker the reply is partial."""
    provider.add(Reply(text="Hello", end=end))

    async with model(provider) as made:
        found = await fails(made)

    assert (found.kind, found.partial) == ("incomplete_stream", Partial("Hello"))


async def test_a_stop_reason_is_enough(provider: ScriptedProvider) -> None:
    """A stop reason with all blocks closed completes without `message_stop`."""
    provider.add(Reply(text="Hi", end="no_done"))

    async with model(provider) as made:
        assert (await play(made))[1].text == "Hi"


async def test_errors_are_mapped(provider: ScriptedProvider) -> None:
    """ANT7: by status and type, in the answer and in the stream; overflow is recognised."""
    error = {"type": "error", "error": {"type": "overloaded_error", "message": "busy"}}
    provider.add(anthropic_error(529, "busy", "overloaded_error"), Reply(chunks=(error,)))

    async with model(provider) as made:
        kinds = [(await fails(made)).kind, (await fails(made)).kind]
        provider.configure(window=10)
        overflow = await fails(made, ModelRequest((user("x" * 99),)))
        fits = ModelRequest((user("x"),), options=ModelOptions(max_output_tokens=9))
        together = await fails(made, fits)

    assert kinds == ["provider", "provider"]
    assert overflow.refusal is not None and together.refusal is not None
    assert (overflow.refusal.cls, together.refusal.cls) == ("overflow", "sum")


async def test_no_error_shows_the_key(provider: ScriptedProvider) -> None:
    """ERR4, security-05: an answer that echoes what was sent is shown without it."""
    provider.configure(api_key="another")

    async with model(provider) as made:
        found = await fails(made)

    assert (found.kind, found.retryable) == ("auth", False)
    assert "***" in str(found) and "KEY-PROV-789" not in str(found) + repr(found.to_dict())


@pytest.mark.parametrize(
    "reply",
    [
        Reply(text="x", hold_after=0),
        Reply(chunks=({"type": "ping"}, Hold())),
        Reply(chunks=('event: content_block_delta\ndata: {"type": "content_', Hold())),
    ],
    ids=["before the first byte", "between chunks", "in mid-chunk"],
)
async def test_cancel_closes_the_connection(provider: ScriptedProvider, reply: Reply) -> None:
    """HTTP3: the server sees its socket closed within a second."""
    provider.add(reply)

    async with model(provider) as made:
        task = asyncio.create_task(play(made))
        await provider.await_held()
        task.cancel()
        await provider.await_closed(0, within_s=1)
        with pytest.raises(asyncio.CancelledError):
            await task


async def test_a_plain_answer_to_a_streaming_request(provider: ScriptedProvider) -> None:
    """HTTP5: JSON in answer to a stream yields deltas and the response of a stream of it."""
    provider.add(THOUGHT)

    async with model(provider) as made:
        whole = await made.generate(REQUEST)
        provider.add(Reply(body=whole.raw))
        deltas, plain = await play(made)

    assert plain.message == whole.message
    assert Text("Hi you") in deltas


async def test_another_vendors_history_goes_on(provider: ScriptedProvider) -> None:
    """ANT9: calls with foreign ids, reasoning and failed results are accepted."""
    provider.add(Reply(text="ok"))
    spoken = assistant(None, (tool_call("functions.add:0", "add"),)).replace(reasoning="R1")
    failed = tool_result("functions.add:0", "add", "no", outcome="error")

    async with model(provider) as made:
        await play(made, ModelRequest((user("q"), spoken, failed, user("and?")), tools=(ADD,)))

    assert provider.problems == []


async def test_it_says_what_it_cannot_send(provider: ScriptedProvider) -> None:
    """PART2: any audio is refused; options without a place are left out."""
    sound = FilePart("audio/wav", data="aGk=")
    provider.add(Reply(text="a"))

    async with model(provider, options=ModelOptions(seed=1)) as made:
        reason = made.refuses(sound, "user")
        found = await fails(made, ModelRequest((user((sound,)),)))
        await play(made)

    assert found.kind == "unsupported_content" and str(reason) in str(found)
    assert "seed" not in provider.requests[0].json


def test_it_says_what_maximum_it_sends() -> None:
    """BUD2: compaction learns the maximum output that goes out although nobody asked for one."""
    known = AnthropicModel("claude-sonnet-4-5", api_key="k")
    unknown = AnthropicModel("m", base_url="http://h")

    assert (known.default_output, unknown.default_output) == (64_000, 4_096)
    assert json.loads(known.encode(REQUEST, True))["max_tokens"] == 64_000


def test_the_public_api_needs_a_key(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a key the error names the remedy; the provider is known by its host."""
    for name in ("ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(AssemblyError, match="Set ANTHROPIC_API_KEY"):
        AnthropicModel("claude-sonnet-4-5")

    made = AnthropicModel("claude-sonnet-4-5", api_key="KEY-PROV-789")

    assert made.provider == "anthropic" and made.profile.max_output_tokens == 64_000
    assert AnthropicModel("m", base_url="https://openrouter.ai/api").provider == "openrouter"
    assert "KEY-PROV-789" not in repr(made) + json.dumps(made.setup())


async def test_a_prompt_is_counted_by_its_provider(provider: ScriptedProvider) -> None:
    """The count is that of the prompt which is sent, with nothing of the answer's settings."""
    provider.otherwise(Reply(text="a"))
    options = ModelOptions(temperature=0, max_output_tokens=9, extra_body={"container": "x"})

    async with model(provider, options=options) as made:
        counted = await made.count_tokens(REQUEST)
        provider.configure(extra_keys=("container",))
        response = await made.generate(REQUEST)

    assert response.usage is not None and counted == response.usage.input_tokens
    asked, sent = provider.counts[0], provider.requests[0]
    assert asked.path == "/v1/messages/count_tokens" and provider.problems == []
    assert asked.json == {key: sent.json[key] for key in asked.json}
    assert set(asked.json) == {"model", "system", "messages", "tools", "tool_choice"}
    assert asked.headers["x-api-key"] == "KEY-PROV-789"


@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        (200, {"input_tokens": 0}, "parse"),
        (200, "<html>", "parse"),
        (404, {"type": "error", "error": {"type": "not_found_error", "message": "no"}},
         "invalid_request"),
        (401, {"error": {"message": "wrong key KEY-PROV-789"}}, "auth"),
        (529, {"error": {"type": "overloaded_error", "message": "KEY-PROV-789"}}, "provider"),
    ],
)  # fmt: skip
async def test_a_count_that_fails_is_a_model_error(
    provider: ScriptedProvider, status: int, body: Any, kind: str
) -> None:
    """ERR4: whatever the endpoint answers, it is one error, without the key."""
    provider.configure(routes={"/v1/messages/count_tokens": (status, body)})

    async with model(provider) as made:
        with pytest.raises(ModelError) as raised:
            await made.count_tokens(REQUEST)

    assert raised.value.kind == kind and "KEY-PROV-789" not in str(raised.value)
