"""The demo model: scripts, pauses, errors, windows."""

from __future__ import annotations

import asyncio
import time

import pytest
from backscroll.kernel.content import FilePart, TextPart
from backscroll.kernel.errors import ModelError
from backscroll.kernel.message import assistant, tool_call, user
from backscroll.kernel.model import (
    CallArgs,
    CallClosed,
    CallOpened,
    Delta,
    Finished,
    ModelOptions,
    ModelProfile,
    ModelRequest,
    Partial,
    Reasoning,
    StreamingModel,
    Text,
)
from backscroll.kernel.tool import ToolSpec
from backscroll.kernel.usage import FinishReason, Usage
from backscroll.providers.demo import (
    DemoModel,
    DemoReply,
    count_request,
    count_tokens,
    split_words,
)
from hypothesis import given
from hypothesis import strategies as st

REQUEST = ModelRequest((user("hi"),))
CALLS = (tool_call("c1", "add", {"a": 1}), tool_call("c2", "now"))
SCRIPT = [DemoReply("Hello you", "let me see", CALLS), "again"]


async def play(model: StreamingModel, request: ModelRequest = REQUEST) -> list[Delta]:
    """Stream one reply."""
    return [delta async for delta in model.stream(request)]


async def test_two_runs_of_a_script_are_equal() -> None:
    """DEMO1: the same script gives the same deltas, and every request is recorded."""
    first, second = (DemoModel(SCRIPT, delay_s=0) for _ in range(2))

    runs = [[await play(model), await play(model)] for model in (first, second)]

    assert runs[0] == runs[1]
    assert first.requests == [REQUEST, REQUEST]


async def test_a_reply_is_streamed_word_by_word() -> None:
    """Reasoning, text, calls, then the complete response."""
    *deltas, last = await play(DemoModel(SCRIPT, delay_s=0))

    assert deltas == [
        Reasoning("let"), Reasoning(" me"), Reasoning(" see"), Text("Hello"), Text(" you"),
        CallOpened("c1", "add"), CallArgs("c1", '{"a":1}'), CallClosed("c1"),
        CallOpened("c2", "now"), CallClosed("c2"),
    ]  # fmt: skip
    assert isinstance(last, Finished)
    response = last.response
    assert (response.text, response.reasoning, response.tool_calls) == (
        "Hello you", "let me see", CALLS,
    )  # fmt: skip
    assert response.finish_reason is FinishReason.TOOL_CALLS
    assert response.usage is not None and response.usage.reasoning_tokens == 3


async def test_a_whole_answer_equals_the_streamed_one() -> None:
    """`generate` returns what `stream` ends with."""
    *_, last = await play(DemoModel(SCRIPT, delay_s=0))

    assert last == Finished(await DemoModel(SCRIPT).generate(REQUEST))


async def test_running_past_the_end_is_a_clear_error() -> None:
    """DEMO1: one request too many says how long the script was."""
    model = DemoModel(["one"], delay_s=0)
    await play(model)

    with pytest.raises(ModelError, match="the demo script has 1 replies, and one more") as raised:
        await play(model)

    assert (raised.value.kind, len(model.requests)) == ("invalid_request", 2)


async def test_an_error_is_raised() -> None:
    """A scripted error comes instead of an answer, streamed or not."""
    error = ModelError("rate_limit", "slow down")
    model = DemoModel([DemoReply(error=error), DemoReply(error=error)], delay_s=0)

    with pytest.raises(ModelError, match="slow down"):
        await play(model)
    with pytest.raises(ModelError, match="slow down"):
        await model.generate(REQUEST)


@pytest.mark.parametrize(
    ("after", "partial", "retryable"),
    [
        (0, Partial(), True),
        (1, Partial("a"), False),
        (3, Partial("a b", "", ("add",)), False),
        (4, Partial("a b", "", ('add {"a":1}',)), False),
        (99, Partial("a b", "", ('add {"a":1}',)), False),
    ],
)
async def test_a_broken_stream_tells_what_had_arrived(
    after: int, partial: Partial, retryable: bool
) -> None:
    """A scripted break is an incomplete stream with the partial reply."""
    model = DemoModel([DemoReply("a b", calls=CALLS[:1], break_after=after)], delay_s=0)

    with pytest.raises(ModelError) as raised:
        await play(model)

    assert (raised.value.kind, raised.value.retryable) == ("incomplete_stream", retryable)
    assert raised.value.partial == partial


async def test_an_error_may_come_in_the_middle() -> None:
    """With `break_after` a scripted error comes after that many deltas."""
    error = ModelError("provider", "overloaded")
    model = DemoModel([DemoReply("a b c", "r", error=error, break_after=2)], delay_s=0)
    seen: list[Delta] = []

    with pytest.raises(ModelError, match="overloaded"):
        async for delta in model.stream(REQUEST):
            seen.append(delta)  # noqa: PERF401

    assert seen == [Reasoning("r"), Text("a")]


async def test_a_break_without_streaming_is_an_error_too() -> None:
    """A whole answer that breaks off is an incomplete stream."""
    with pytest.raises(ModelError) as raised:
        await DemoModel([DemoReply("a", break_after=1)]).generate(REQUEST)

    assert raised.value.kind == "incomplete_stream"


async def test_a_prompt_beyond_the_window_is_refused() -> None:
    """The window is kept as real servers do, and the script does not move on."""
    model = DemoModel(["after"], delay_s=0, window=50)
    long = ModelRequest((user("word " * 60),))

    with pytest.raises(ModelError, match="maximum context length is 50 tokens") as raised:
        await play(model, long)

    assert raised.value.kind == "context_overflow"
    refusal = raised.value.refusal
    assert refusal is not None and (refusal.cls, refusal.used, refusal.limit) == (
        "overflow",
        64,
        50,
    )
    assert (await model.generate(REQUEST)).text == "after"


async def test_pauses_are_kept_and_cancel_ends_them() -> None:
    """`pause_s` and `delay_s` wait; cancelling the task ends a wait at once."""
    model = DemoModel([DemoReply("a b", pause_s=0.05, delay_s=0.05), DemoReply("a", delay_s=60)])
    start = time.monotonic()
    await play(model)
    waited = time.monotonic() - start

    task = asyncio.create_task(play(model))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    assert waited >= 0.14


async def test_a_script_may_look_at_the_request() -> None:
    """A function in the script makes the reply from the request."""
    model = DemoModel([lambda request: DemoReply(f"{len(request.messages)} messages")])

    assert (await model.generate(REQUEST)).text == "1 messages"


async def test_usage_and_finish_reason_may_be_scripted() -> None:
    """What a reply states is reported as it is."""
    reply = DemoReply("a", usage=Usage(5, 1), finish_reason=FinishReason.MAX_TOKENS)

    found = await DemoModel([reply]).generate(REQUEST)

    assert (found.usage, found.finish_reason) == (Usage(5, 1), FinishReason.MAX_TOKENS)


async def test_without_a_script_it_answers_by_rules() -> None:
    """A first start works: it answers, and calls a tool when asked."""
    model = DemoModel(delay_s=0)
    tool = ToolSpec("add", "Add.", {"type": "object", "properties": {}})
    asked = ModelRequest((user('use add {"a":1}'),), tools=(tool,))

    answered = await model.generate(REQUEST)
    called = [await model.generate(asked) for _ in range(2)]

    assert answered.text.startswith("Hello!")
    assert [reply.tool_calls[0].id for reply in called] == ["call_1", "call_2"]
    assert called[0].tool_calls[0].args == {"a": 1}


async def test_it_describes_itself() -> None:
    """Name, profile and options are there; its window is small and known."""
    model = DemoModel(options=ModelOptions(temperature=0))
    await model.aclose()

    assert (model.name, model.provider, model.profile.context_window) == ("demo", "demo", 6000)
    assert model.profile.accepts("image/png", "user") is None
    assert repr(model) == "DemoModel()" and repr(DemoModel(["a"])) == "DemoModel(<1 replies>)"
    assert DemoModel(profile=ModelProfile(context_window=7)).profile.context_window == 7


@given(st.text())
def test_words_join_to_the_text(text: str) -> None:
    """No character is lost between the words."""
    assert "".join(split_words(text)) == text


def test_scripts_without_blanks_are_cut_too() -> None:
    """Chinese text streams in pieces, too."""
    assert split_words("你好 世界🌍 a") == ["你", "好", " 世", "界", "🌍", " a"]


def test_requests_are_counted_with_everything_in_them() -> None:
    """System texts, tools, calls and files count; more text counts more."""
    tool = ToolSpec("add", "Add.", {"type": "object"})
    plain = ModelRequest((user("hi"), assistant("yes")))
    rich = ModelRequest(
        (user((TextPart("hi"), FilePart("image/png", data="aGk="))), assistant("yes", CALLS)),
        ("Be brief.",),
        (tool,),
    )

    assert count_request(plain) == 10
    assert count_request(rich) > count_request(plain) + 200
    assert count_tokens("你好 world 12") == 4
