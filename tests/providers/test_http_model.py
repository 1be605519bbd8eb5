"""A model of an endpoint against a strict server: real sockets, real bytes."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing, asynccontextmanager
from typing import Any

import pytest
from backscroll.kernel.content import FilePart, TextPart
from backscroll.kernel.errors import AssemblyError, ModelError
from backscroll.kernel.message import user
from backscroll.kernel.model import (
    CallArgs,
    CallClosed,
    CallOpened,
    Delta,
    EncodingModel,
    Finished,
    ModelOptions,
    ModelRequest,
    ModelResponse,
    Partial,
    Reasoning,
    StreamingModel,
    Text,
)
from backscroll.kernel.texts import Texts
from backscroll.kernel.tool import ToolSpec
from backscroll.kernel.usage import FinishReason, Usage
from backscroll.providers.failures import Timeouts
from backscroll.providers.openai import OpenAIModel
from scripted_provider import Call, Hold, Reply, ScriptedProvider, error, usage_of

ADD = ToolSpec("add", "Add numbers.", {"type": "object", "properties": {}})
REQUEST = ModelRequest((user("hi"),), ("Be brief.",), (ADD,))


@asynccontextmanager
async def model(provider: ScriptedProvider, **options: Any) -> AsyncIterator[OpenAIModel]:
    """Give a model of the scripted provider, and close it."""
    given = {"base_url": provider.base_url, "api_key": "KEY-PROV-789", "trust_env": False}
    made = OpenAIModel("m", **{**given, **options})
    try:
        yield made
    finally:
        await made.aclose()


async def play(
    made: OpenAIModel, request: ModelRequest = REQUEST
) -> tuple[list[Delta], ModelResponse]:
    """Stream a reply to its end; return the deltas and the response."""
    deltas = [delta async for delta in made.stream(request)]
    last = deltas.pop()
    assert isinstance(last, Finished)
    return deltas, last.response


async def fails(made: OpenAIModel, request: ModelRequest = REQUEST) -> ModelError:
    """Stream a reply that breaks; return its error."""
    with pytest.raises(ModelError) as raised:
        await play(made, request)
    return raised.value


async def test_it_is_a_model_that_streams_and_encodes(provider: ScriptedProvider) -> None:
    """It has what the kernel looks for in a model."""
    async with model(provider) as made:
        streaming: StreamingModel = made
        encoding: EncodingModel = made

    assert streaming.name == encoding.name == "m"


async def test_a_whole_answer(provider: ScriptedProvider) -> None:
    """`generate` returns text, reasoning, calls and usage."""
    calls = (Call("add", {"a": 1}, "c1"),)
    provider.add(Reply(text="Hi", reasoning="hm", calls=calls, usage=usage_of(12, 3, 4)))

    async with model(provider) as made:
        found = await made.generate(REQUEST)

    assert (found.text, found.reasoning, found.provider) == ("Hi", "hm", "generic")
    assert found.tool_calls[0].args == {"a": 1}
    assert found.usage == Usage(12, 3, 4)


async def test_a_streamed_answer(provider: ScriptedProvider) -> None:
    """Deltas come in order; the response is the same as that of a whole answer."""
    provider.otherwise(Reply(text="Hi you", calls=(Call("add", '{"a":1}', "c1"),)))

    async with model(provider) as made:
        deltas, response = await play(made)
        whole = await made.generate(REQUEST)

    assert deltas == [
        Text("Hi"), Text(" you"), CallOpened("c1", "add"),
        CallArgs("c1", '{"a'), CallArgs("c1", '":1}'), CallClosed("c1"),
    ]  # fmt: skip
    assert (response.message, response.finish_reason) == (whole.message, FinishReason.TOOL_CALLS)


@pytest.mark.parametrize("stream", [False, True])
async def test_what_is_sent_is_what_encode_says(provider: ScriptedProvider, stream: bool) -> None:
    """MOD5: the recorded body equals `encode`, byte for byte, and was accepted."""
    provider.add(Reply(text="a"))
    request = ModelRequest((user("你好 🌍 é "),), ("s",), options=ModelOptions(temperature=0.5))

    async with model(provider) as made:
        await (play(made, request) if stream else made.generate(request))
        expected = made.encode(request, stream)

    assert provider.requests[0].body == expected
    assert provider.problems == []


async def test_the_key_and_headers_are_sent(provider: ScriptedProvider) -> None:
    """The key is a bearer token; extra headers of model and request go along."""
    provider.configure(api_key="KEY-PROV-789")
    provider.otherwise(Reply(text="a"))
    options = ModelOptions(extra_headers={"X-Title": "t"})

    async with model(provider) as made:
        await made.generate(ModelRequest((user("q"),), options=options))
        await play(made)

    assert provider.requests[0].headers["x-title"] == "t"
    assert provider.requests[1].headers["accept"] == "text/event-stream"


async def test_characters_arrive_whole_however_they_are_cut(provider: ScriptedProvider) -> None:
    """HTTP1: byte by byte, with CRLF, comments and a BOM, the text is exact (i18n-03)."""
    escape = '{"choices":[{"delta":{"content":"\\ud83c'
    chunks = (
        {"content": "你好世界"},
        f"data: {escape}",
        '\\udf0d"}}]}\n\n',
        {"content": "!"},
    )
    provider.add(Reply(chunks=chunks, split=1, crlf=True, comments=False, bom=True))

    async with model(provider) as made:
        _, response = await play(made)

    assert response.text == "你好世界🌍!"


async def test_a_stream_with_comments_byte_by_byte(provider: ScriptedProvider) -> None:
    """HTTP1: comment lines between events say nothing."""
    provider.add(Reply(text="你好世界🌍", split=1, crlf=True, comments=True))

    async with model(provider) as made:
        assert (await play(made))[1].text == "你好世界🌍"


async def test_a_plain_answer_to_a_streaming_request(provider: ScriptedProvider) -> None:
    """HTTP5: JSON in answer to a stream yields deltas and the response of a stream of it."""
    reply = Reply(text="Hi", reasoning="hm", calls=(Call("add", '{"a":1}', "c1"),))
    provider.add(reply)

    async with model(provider) as made:
        whole = await made.generate(REQUEST)
        provider.add(Reply(body=whole.raw), reply)
        plain = await play(made)
        streamed = await play(made)

    assert plain[0] == [
        Reasoning("hm"), Text("Hi"), CallOpened("c1", "add"),
        CallArgs("c1", '{"a":1}'), CallClosed("c1"),
    ]  # fmt: skip
    assert plain[1].message == streamed[1].message


@pytest.mark.parametrize("content_type", ["text/event-stream", "application/json"])
async def test_an_empty_answer_is_an_incomplete_stream(
    provider: ScriptedProvider, content_type: str
) -> None:
    """An empty 200 body says nothing, so it may be tried again."""
    provider.add(Reply(body="", headers={"content-type": content_type}))

    async with model(provider) as made:
        found = await fails(made)

    assert (found.kind, found.retryable, found.partial) == ("incomplete_stream", True, Partial())


async def test_a_web_page_is_a_parse_error(provider: ScriptedProvider) -> None:
    """A login page of some proxy is not an answer."""
    provider.add(Reply(body="<html>sign in</html>", headers={"content-type": "text/html"}))

    async with model(provider) as made:
        assert (await fails(made)).kind == "parse"


@pytest.mark.parametrize("end", ["eof", "drop", "reset"])
async def test_a_stream_without_a_marker_is_incomplete(
    provider: ScriptedProvider, end: Any
) -> None:
    """OAI8: however the body ends, without a marker the text is partial and not retried."""
    provider.add(Reply(chunks=({"content": "Hel"}, {"content": "lo"}), end=end))

    async with model(provider) as made:
        found = await fails(made, ModelRequest((user("q"),), texts=Texts(incomplete_stream="Oh.")))

    assert (found.kind, found.retryable) == ("incomplete_stream", False)
    assert (str(found), found.partial) == ("Oh.", Partial("Hello"))


async def test_a_stream_cut_inside_arguments_is_incomplete(provider: ScriptedProvider) -> None:
    """OAI8: half a call is no call."""
    half = {"tool_calls": [{"index": 0, "id": "c1", "function": {"name": "add", "arguments": "{"}}]}
    provider.add(Reply(chunks=(half,), end="drop"))

    async with model(provider) as made:
        found = await fails(made)

    assert (found.kind, found.partial) == ("incomplete_stream", Partial(calls=("add {",)))


@pytest.mark.parametrize("end", ["done", "no_done", "open"])
async def test_a_marker_completes(provider: ScriptedProvider, end: Any) -> None:
    """OAI8: a finish reason is enough, and a connection left open ends after a while."""
    provider.add(Reply(text="Hi", end=end))

    async with model(provider, timeouts=Timeouts(linger_s=0.2)) as made:
        assert (await play(made))[1].text == "Hi"


async def test_done_alone_completes(provider: ScriptedProvider) -> None:
    """OAI8: `[DONE]` without a finish reason is complete; what follows it is not read."""
    provider.add(Reply(chunks=({"content": "Hi"}, "data: [DONE]\n\n", "data: {broken\n\n")))

    async with model(provider) as made:
        assert (await play(made))[1].text == "Hi"


async def test_a_read_timeout_keeps_what_had_arrived(provider: ScriptedProvider) -> None:
    """A stream that stalls is a timeout with the partial reply."""
    provider.add(Reply(text="Hello you", hold_after=2))

    async with model(provider, timeouts=Timeouts(read_s=0.2)) as made:
        found = await fails(made)

    assert (found.kind, found.partial) == ("timeout", Partial("Hello"))


@pytest.mark.parametrize("stream", [False, True])
async def test_an_error_answer_is_mapped(provider: ScriptedProvider, stream: bool) -> None:
    """compaction-06: an overflow answer is recognised, streamed or not."""
    provider.configure(window=10)
    long = ModelRequest((user("x" * 100),))

    async with model(provider) as made:
        with pytest.raises(ModelError) as raised:
            await (play(made, long) if stream else made.generate(long))

    assert raised.value.kind == "context_overflow"
    assert raised.value.refusal is not None and raised.value.refusal.limit == 10


async def test_an_error_inside_the_stream_is_mapped(provider: ScriptedProvider) -> None:
    """OAI9: an error object in the stream, with what had arrived before it."""
    body = error(400, "zu lang", "context_length_exceeded").body
    provider.add(Reply(chunks=({"content": "Hel"}, body)), Reply(body=body))

    async with model(provider) as made:
        inside = await fails(made)
        plain = await fails(made)

    assert (inside.kind, inside.partial) == ("context_overflow", Partial("Hel"))
    assert plain.kind == "context_overflow"


async def test_a_key_that_is_echoed_stays_hidden(
    provider: ScriptedProvider, caplog: pytest.LogCaptureFixture
) -> None:
    """ERR4, security-05: neither error, repr nor log shows the key."""
    provider.configure(api_key="another")
    caplog.set_level(logging.DEBUG)

    async with model(provider) as made:
        found = await fails(made)
        shown = f"{found!r} {found.to_dict()} {made!r} {made.setup()} {made.endpoint}"

    assert (found.kind, str(found)) == ("auth", "Incorrect API key provided: ***.")
    assert "KEY-PROV-789" not in shown + caplog.text


async def test_cancel_closes_before_the_first_byte(provider: ScriptedProvider) -> None:
    """HTTP3: cancelling the task while the server thinks closes its socket within a second."""
    provider.add(Reply(text="a", hold_after=0))

    async with model(provider) as made:
        task = asyncio.create_task(play(made))
        await provider.await_held()
        task.cancel()
        await provider.await_closed(0, within_s=1)
        with pytest.raises(asyncio.CancelledError):
            await task


@pytest.mark.parametrize(
    "chunks",
    [({"content": "a"}, Hold(), {"content": "b"}), ({"content": "a"}, 'data: {"choi', Hold())],
    ids=["between chunks", "inside a chunk"],
)
async def test_cancel_closes_in_the_middle(
    provider: ScriptedProvider, chunks: tuple[Any, ...]
) -> None:
    """HTTP3, wire-openai-10: the same between chunks and inside one."""
    provider.add(Reply(chunks=chunks))

    async with model(provider) as made:
        task = asyncio.create_task(play(made))
        await provider.await_held()
        task.cancel()
        await provider.await_closed(0, within_s=1)
        with pytest.raises(asyncio.CancelledError):
            await task


async def test_cancel_closes_a_whole_answer(provider: ScriptedProvider) -> None:
    """HTTP3: a request that is not streamed is closed as well."""
    provider.add(Reply(text="a", hold_after=0))

    async with model(provider) as made:
        task = asyncio.create_task(made.generate(REQUEST))
        await provider.await_held()
        task.cancel()
        await provider.await_closed(0, within_s=1)
        with pytest.raises(asyncio.CancelledError):
            await task


async def test_leaving_a_stream_closes_it(provider: ScriptedProvider) -> None:
    """Closing the iterator before its end closes the connection."""
    provider.add(Reply(text="a b c", hold_after=2))

    async with model(provider) as made:
        async with aclosing(made.stream(REQUEST)) as deltas:
            assert await anext(deltas) == Text("a")
        await provider.await_closed(0, within_s=1)


async def test_a_connection_is_used_again_after_a_stream(provider: ScriptedProvider) -> None:
    """A stream read to its end leaves its connection for the next request."""
    provider.otherwise(Reply(text="a"))

    async with model(provider) as made:
        await play(made)
        await play(made)

    assert [record.connection for record in provider.requests] == [1, 1]


async def test_an_unsupported_part_is_refused_before_anything_is_sent(
    provider: ScriptedProvider,
) -> None:
    """PART2: the wire raises `unsupported_content`, and can be asked first."""
    sound = FilePart("audio/flac", data="aGk=")

    async with model(provider) as made:
        found = await fails(made, ModelRequest((user((TextPart("a"), sound)),)))
        reason = made.refuses(sound, "user")

    assert found.kind == "unsupported_content" and str(reason) in str(found)
    assert provider.requests == []


async def test_options_without_a_place_are_logged_once(
    provider: ScriptedProvider, caplog: pytest.LogCaptureFixture
) -> None:
    """Options this wire does not know are left out and told once per model."""
    caplog.set_level(logging.DEBUG, "backscroll.providers.http_model")
    provider.otherwise(Reply(text="a"))
    request = ModelRequest((user("q"),), options=ModelOptions(top_k=3))

    async with model(provider) as made:
        await made.generate(request)
        await made.generate(request)

    assert [record.message for record in caplog.records].count(
        "model 'm': not sent, its wire does not know them: ['top_k']"
    ) == 1
    assert provider.problems == []


@pytest.fixture
def no_settings(monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], None]:
    """Clear the environment's settings; returns what sets one."""
    for name in ("OPENAI_BASE_URL", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    return monkeypatch.setenv


def test_the_public_api_needs_a_key(no_settings: Callable[[str, str], None]) -> None:
    """Without a key the error names the remedy; with one the public API is used."""
    with pytest.raises(AssemblyError, match="Set OPENAI_API_KEY") as raised:
        OpenAIModel("gpt-4o")
    no_settings("OPENAI_API_KEY", " KEY-PROV-789\n")

    made = OpenAIModel("gpt-4o")

    assert (raised.value.kind, made.provider) == ("invalid_option", "openai")
    assert made.endpoint.url("/x") == "https://api.openai.com/v1/x"
    assert made.auth_headers() == {"authorization": "Bearer KEY-PROV-789"}


def test_a_server_of_ones_own_needs_no_key(no_settings: Callable[[str, str], None]) -> None:
    """A base URL from the environment works without a key."""
    no_settings("OPENAI_BASE_URL", "http://localhost:8080/v1")

    made = OpenAIModel("local")

    assert (made.provider, made.auth_headers()) == ("generic", {})
    assert repr(made) == "OpenAIModel('local', base_url='http://localhost:8080/v1')"


def test_the_kind_of_server_is_a_setting(no_settings: Callable[[str, str], None]) -> None:
    """A provider may be named; its profile and its key header are used."""
    azure = OpenAIModel("d", base_url="http://h", provider="azure", api_key="k")

    assert azure.auth_headers() == {"api-key": "k"}
    assert azure.profile.max_tokens_field == "max_completion_tokens"
    with pytest.raises(AssemblyError, match="provider: expected one of"):
        OpenAIModel("d", base_url="http://h", provider="foo")
    with pytest.raises(AssemblyError, match="expected the name of a model"):
        OpenAIModel("", base_url="http://h")
