"""One model request: streamed or whole, retried where that is safe, cancelled at once."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Iterable
from typing import Any

import pytest
from backscroll.kernel.chat_terminal import ChatTerminal, model_request, retry_delay
from backscroll.kernel.errors import ClientError, ModelError
from backscroll.kernel.message import tool_call, user
from backscroll.kernel.model import (
    CallArgs,
    CallClosed,
    CallOpened,
    Delta,
    ModelOptions,
    ModelRequest,
    Partial,
    Reasoning,
    Retry,
    Text,
)
from backscroll.kernel.ports import CancelToken
from backscroll.kernel.request import ChatRequest, Stream
from backscroll.kernel.tool import ToolSpec
from scripted_model import OneShotModel, ScriptedModel, reply


class Clock:
    """A clock whose waits are written down and take no time."""

    def __init__(self) -> None:
        self.waits: list[float] = []

    def now(self) -> float:
        """Return a fixed time."""
        return 0.0

    def monotonic(self) -> float:
        """Return a fixed time."""
        return 0.0

    async def sleep(self, seconds: float) -> None:
        """Write the wait down."""
        self.waits.append(seconds)


class Ids:
    """Ids in order."""

    def __init__(self) -> None:
        self.count = 0

    def new(self, prefix: str) -> str:
        """Return the next one."""
        self.count += 1
        return f"{prefix}_{self.count}"


class Listener:
    """An observer that keeps the names of what it is told."""

    def __init__(self) -> None:
        self.seen: list[str] = []
        self.ends: list[Any] = []

    async def started(self, start: Any) -> None:
        """Keep it."""
        self.seen.append("started")

    async def retried(self, retry: Any) -> None:
        """Keep it."""
        self.seen.append(f"retried {retry.try_number}")

    async def finished(self, end: Any) -> None:
        """Keep it."""
        self.seen.append("finished")
        self.ends.append(end)

    async def report(self, report: Any) -> None:
        """Not used here."""


class Setup:
    """A terminal and what goes in and comes out."""

    def __init__(self, model: Any, **request: Any) -> None:
        self.clock, self.listener, self.got = Clock(), Listener(), list[Delta]()
        transforms = request.pop("transforms", tuple)
        self.terminal = ChatTerminal(self.clock, Ids(), random.Random(1), transforms)

        async def sink(delta: Delta) -> None:
            self.got.append(delta)

        self.request = ChatRequest(
            (user("hi", "u1"),),
            model=model,
            stream=Stream(sink) if request.pop("streams", True) else None,
            observer=self.listener,
            reply_id="msg_r",
            **request,
        )

    async def run(self) -> Any:
        """Make the call."""
        return await self.terminal(self.request)


async def test_a_stream_is_delivered_and_returned_whole() -> None:
    """Deltas go out as they come; the response is complete and has the reply's id."""
    setup = Setup(ScriptedModel(reply("Hel|lo", [tool_call("c1", "add", {"a": 1})], "hm")))

    response = await setup.run()

    assert setup.got == [
        Reasoning("hm"),
        Text("Hel"),
        Text("lo"),
        CallOpened("c1", "add"),
        CallArgs("c1", '{"a":1}'),
        CallClosed("c1"),
    ]
    assert (response.text, response.message.id, response.provider) == ("Hello", "msg_r", "scripted")
    assert setup.listener.seen == ["started", "finished"]


async def test_a_model_that_cannot_stream_gives_one_delta() -> None:
    """REQ4: the whole text is one delta, calls are opened, filled and closed."""
    setup = Setup(OneShotModel(reply("a|b", [tool_call("c1", "add", {"a": 1})], "why")))

    await setup.run()

    assert setup.got == [
        Reasoning("why"),
        Text("ab"),
        CallOpened("c1", "add"),
        CallArgs("c1", '{"a":1}'),
        CallClosed("c1"),
    ]


async def test_without_a_stream_nothing_is_delivered() -> None:
    """Without a sink the model is asked for the whole reply."""
    setup = Setup(ScriptedModel(reply("ab")), streams=False)

    response = await setup.run()

    assert response.text == "ab" and setup.got == []
    assert response.delivered is None


async def test_empty_deltas_are_never_delivered() -> None:
    """EV2: role chunks and empty pieces open nothing."""
    setup = Setup(ScriptedModel([Text(""), Text("Hi"), Text(""), *reply("")]))

    await setup.run()

    assert setup.got == [Text("Hi")]


async def test_retries_follow_the_policy() -> None:
    """MOD1: 429 twice then an answer are three requests and two retries told."""
    slow = ModelError("rate_limit", "slow")
    model = ScriptedModel([slow], [slow], reply("ok"))
    setup = Setup(model)

    response = await setup.run()

    assert response.text == "ok" and len(model.requests) == 3
    assert setup.listener.seen == ["started", "retried 1", "retried 2", "finished"]
    assert len(setup.clock.waits) == 2


@pytest.mark.parametrize(
    ("error", "options"),
    [
        (ModelError("auth", "no"), ModelOptions()),
        (ModelError("provider", "down"), ModelOptions(retry=False)),
    ],
)
async def test_no_retry_where_it_cannot_help(error: ModelError, options: ModelOptions) -> None:
    """MOD1: 401 is asked once, and so is anything with retries off; the error is unchanged."""
    model = ScriptedModel([error])
    setup = Setup(model, options=options)

    with pytest.raises(ModelError) as caught:
        await setup.run()

    assert caught.value is error and len(model.requests) == 1
    assert setup.listener.seen == ["started", "finished"]
    assert setup.listener.ends[0].error is error


async def test_a_started_stream_is_not_retried() -> None:
    """MOD2: after the first delta a break is final, and the partial reply is on the error."""
    broken = ModelError("network", "reset")
    setup = Setup(ScriptedModel([Text("Hel"), Text("lo"), CallOpened("c", "f"), broken]))

    with pytest.raises(ModelError) as caught:
        await setup.run()

    assert caught.value.partial == Partial("Hello", "", ("f ",))
    assert setup.clock.waits == []


async def test_an_empty_stream_is_tried_again_without_streaming() -> None:
    """MOD2: a server that loses its error text in the stream shows it in a plain answer."""
    model = ScriptedModel(
        [ModelError("incomplete_stream", "empty")], [ModelError("context_overflow", "too long")]
    )
    setup = Setup(model)

    with pytest.raises(ModelError, match="too long"):
        await setup.run()

    assert len(model.requests) == 2 and model.closed_streams == 1


async def test_a_stream_that_just_stops_is_incomplete() -> None:
    """MOD4: without Finished the reply broke off, and what came is kept."""
    setup = Setup(ScriptedModel([Text("Hel")]))

    with pytest.raises(ModelError) as caught:
        await setup.run()

    assert caught.value.kind == "incomplete_stream"
    assert caught.value.partial.text == "Hel"


async def test_cancel_closes_the_stream_and_keeps_the_partial() -> None:
    """LOOP8: cancelling ends a hanging stream; what was delivered is on the error."""
    delivered, token = asyncio.Event(), CancelToken()

    class Hanging(ScriptedModel):
        async def stream(self, request: ModelRequest) -> AsyncIterator[Delta]:
            try:
                yield Text("Hel")
                delivered.set()
                await asyncio.Event().wait()
            finally:
                self.closed_streams += 1

    model = Hanging()
    setup = Setup(model, cancel=token)

    async def stop() -> None:
        await delivered.wait()
        token.cancel("stopped")

    async with asyncio.TaskGroup() as group:
        group.create_task(stop())
        with pytest.raises(ModelError, match="stopped") as caught:
            await setup.run()

    assert caught.value.kind == "cancelled" and caught.value.partial.text == "Hel"
    assert model.closed_streams == 1


async def test_cancel_ends_a_wait_before_a_retry() -> None:
    """MOD3: a back-off wait ends at once."""
    token = CancelToken()
    setup = Setup(ScriptedModel([ModelError("provider", "down")]), cancel=token)

    async def forever(seconds: float) -> None:
        token.cancel("stopped")
        await asyncio.Event().wait()

    setup.clock.sleep = forever  # type: ignore[method-assign]
    with pytest.raises(ModelError) as caught:
        await setup.run()
    assert caught.value.kind == "cancelled"


def test_waits_are_jittered_and_capped() -> None:
    """MOD1: a server's own word counts, capped; otherwise jitter below the growing bound."""
    policy, source = Retry(), random.Random(7)
    long = ModelError("rate_limit", "x", retry_after_s=3600)

    assert retry_delay(policy, 0, long, source) == 30.0
    for number in range(8):
        wait = retry_delay(policy, number, ModelError("network", "x"), source)
        assert 0 <= wait <= min(2.0**number, 30.0)


async def test_calls_keep_good_ids_and_lose_bad_ones() -> None:
    """MSG9: an id that is taken, odd or repeated is replaced before anyone hears of it."""
    calls = [tool_call(i, "f", {"n": n}) for n, i in enumerate(["ok", "taken", "a b"])]
    setup = Setup(ScriptedModel(reply("", calls)), taken_call_ids=frozenset({"taken"}))

    response = await setup.run()

    ids = [call.id for call in response.tool_calls]
    assert ids[0] == "ok" and ids[1].startswith("call_") and ids[2].startswith("call_")
    opened = [d.call_id for d in setup.got if isinstance(d, CallOpened)]
    assert opened == ids
    assert [c.args for c in response.tool_calls] == [{"n": 0}, {"n": 1}, {"n": 2}]


async def test_misuse_is_named() -> None:
    """REQ7: no model, and a second call on a started stream, are errors of the client."""
    with pytest.raises(ClientError, match="no model"):
        await Setup(None).run()

    setup = Setup(ScriptedModel(reply("a"), reply("b")))
    await setup.run()
    with pytest.raises(ClientError) as caught:
        await setup.run()
    assert caught.value.code == "stream_already_started"


def test_notes_come_last_and_are_marked() -> None:
    """REQ6: a note is a user message at the very end, with its origin."""
    request = ChatRequest((user("a"),), notes=("remember",), tools=(ToolSpec("f", "d", {}),))

    sent = model_request(request)

    assert (sent.messages[-1].text, sent.messages[-1].origin) == ("remember", "note")
    assert len(sent.tools) == 1


def test_choosing_no_tool_sends_none() -> None:
    """REQ2: tool choice none leaves the tools out, where no call is in the history."""
    tools = (ToolSpec("f", "d", {}),)

    assert model_request(ChatRequest((user("a"),), tools=tools, tool_choice="none")).tools == ()


class Shout:
    """Holds everything back and delivers it in capitals."""

    def __init__(self) -> None:
        self.held = ""

    def feed(self, delta: Text | Reasoning) -> Iterable[Text | Reasoning]:
        """Hold it."""
        self.held += delta.delta
        return ()

    def finish(self) -> Iterable[Text | Reasoning]:
        """Deliver it."""
        return (Text(self.held.upper()),)


async def test_token_filters_change_what_is_delivered_only() -> None:
    """FIL12: people get the changed text, the response keeps the model's own."""
    setup = Setup(ScriptedModel(reply("a|b")), transforms=lambda: [("shout", Shout())])

    response = await setup.run()

    assert setup.got == [Text("AB")]
    assert (response.text, response.delivered, response.rewritten_by) == ("ab", "AB", ("shout",))


async def test_a_broken_stream_delivers_nothing_that_was_held() -> None:
    """FIL13: a holding transform keeps what it holds when the stream raises."""
    broken = ModelError("network", "reset", retryable=False, partial=Partial("secret"))
    model = ScriptedModel([Text("secret"), broken])
    setup = Setup(model, transforms=lambda: [("shout", Shout())])

    with pytest.raises(ModelError) as caught:
        await setup.run()

    assert setup.got == [] and caught.value.partial == Partial("")


@pytest.mark.parametrize("hook", ["feed", "finish"])
async def test_a_transform_that_gives_something_else_is_named(hook: str) -> None:
    """Plain text in place of a delta would be lost on its way, so the reply fails instead."""
    shout: Any = Shout()
    setattr(shout, hook, lambda *_: ["plain"])
    setup = Setup(ScriptedModel(reply("a")), transforms=lambda: [("shout", shout)])

    with pytest.raises(TypeError, match="tokens of shout: expected Text or Reasoning, got str"):
        await setup.run()
