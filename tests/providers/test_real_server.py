"""Both wires against a real llama.cpp server with a small model."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
from backscroll.kernel.errors import ModelError
from backscroll.kernel.message import user
from backscroll.kernel.model import Finished, ModelOptions, ModelRequest, ModelResponse, Text
from backscroll.kernel.usage import FinishReason
from backscroll.providers.anthropic import AnthropicModel
from backscroll.providers.discovery import learn_window
from backscroll.providers.http_model import HttpModel
from backscroll.providers.openai import OpenAIModel
from needs import needs
from processes import LlamaProcess

pytestmark = [pytest.mark.needs("model"), pytest.mark.timeout(120)]

N_CTX = 512
QUIET = ModelOptions(temperature=0, seed=1, max_output_tokens=12)


@pytest.fixture(scope="module")
def llama() -> Iterator[LlamaProcess]:
    """Give a server that all tests of this file share."""
    needs("model")
    with LlamaProcess(n_ctx=N_CTX) as server:
        yield server


@pytest.fixture(params=["chat completions", "messages"])
async def model(llama: LlamaProcess, request: pytest.FixtureRequest) -> AsyncIterator[HttpModel]:
    """Give a model of the shared server, over each of its two wires."""
    made = served(llama, request.param)
    yield made
    await made.aclose()


def served(server: LlamaProcess, wire: str = "chat completions") -> HttpModel:
    """Make a model of a server."""
    is_messages = wire == "messages"
    kind, base = (AnthropicModel, "") if is_messages else (OpenAIModel, "/v1")
    url = server.url + base
    return kind("smollm2", base_url=url, provider="llama.cpp", options=QUIET, trust_env=False)


def ask(text: str, **options: Any) -> ModelRequest:
    """Make a request."""
    return ModelRequest((user(text),), options=ModelOptions(**options))


async def play(made: HttpModel, request: ModelRequest) -> tuple[list[str], ModelResponse]:
    """Stream a reply; return the pieces of its text and the response."""
    deltas = [delta async for delta in made.stream(request)]
    last = deltas[-1]
    assert isinstance(last, Finished)
    return [delta.delta for delta in deltas if isinstance(delta, Text)], last.response


async def test_an_answer_is_streamed_with_its_usage(model: HttpModel) -> None:
    """Several deltas, the same text as the whole answer, and the tokens it took."""
    request = ask("What is the capital of France?")

    pieces, response = await play(model, request)
    whole = await model.generate(request)

    assert len(pieces) > 3 and "".join(pieces) == response.text == whole.text
    assert response.usage is not None and response.usage.output_tokens is not None
    assert response.usage.output_tokens <= 12


@pytest.mark.parametrize("stream", [False, True])
async def test_an_overflow_is_recognised(model: HttpModel, stream: bool) -> None:
    """OVF1: the server's own refusal gives class, used tokens and limit."""
    request = ask("word " * 900)

    with pytest.raises(ModelError) as raised:
        await (play(model, request) if stream else model.generate(request))

    refusal = raised.value.refusal
    assert raised.value.kind == "context_overflow" and refusal is not None
    assert (refusal.cls, refusal.limit) == ("overflow", N_CTX)
    assert refusal.used is not None and refusal.used > 900


async def test_a_limit_that_ends_the_answer_is_reported(model: HttpModel) -> None:
    """An answer cut at its maximum says so, on both wires."""
    _, response = await play(model, ask("Tell me a long story."))

    assert response.finish_reason is FinishReason.MAX_TOKENS
    assert response.usage is not None and response.usage.output_tokens == 12


async def test_a_window_that_ends_the_answer_is_reported(model: HttpModel) -> None:
    """Near overflow: the answer ends with `length` before what was asked for, on both wires."""
    request = ask("Tell me a long story about a king. " * 50, max_output_tokens=400)

    _, response = await play(model, request)

    assert response.finish_reason is FinishReason.MAX_TOKENS
    assert response.usage is not None and (response.usage.total_tokens or 0) >= 0.98 * N_CTX


async def test_a_prompt_is_counted(llama: LlamaProcess) -> None:
    """What the server counts for a request is what it then reports to have read."""
    made = served(llama, "messages")
    assert isinstance(made, AnthropicModel)
    request = ModelRequest((user("Where is 北京?"),), ("Be brief.",), options=QUIET)

    counted, response = await made.count_tokens(request), await made.generate(request)
    await made.aclose()

    assert response.usage is not None and response.usage.input_tokens == counted > 10


@pytest.mark.parametrize("wire", ["chat completions", "messages"])
async def test_its_window_is_learned(llama: LlamaProcess, wire: str) -> None:
    """The server states the window of a slot, whichever wire its model speaks."""
    made = served(llama, wire)

    await learn_window(made)
    await made.aclose()

    assert (made.profile.context_window, made.profile.window_source) == (N_CTX, "/props")


@pytest.mark.parametrize("wire", ["chat completions", "messages"])
async def test_a_server_that_dies_leaves_an_incomplete_stream(wire: str) -> None:
    """Killing the server in mid-answer is `incomplete_stream`, with what had arrived."""
    with LlamaProcess(n_ctx=N_CTX) as server:
        made = served(server, wire)
        stream = made.stream(ask("Tell me a long story.", max_output_tokens=300))
        first = await anext(stream)
        server.kill()
        with pytest.raises(ModelError) as raised:
            async for _ in stream:
                pass
        await made.aclose()

    assert isinstance(first, Text) and raised.value.kind == "incomplete_stream"
    assert raised.value.partial.text.startswith(first.delta)
