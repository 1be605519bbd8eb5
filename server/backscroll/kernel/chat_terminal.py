"""The innermost chat handler: one model request, streamed or not, with its retries."""

from __future__ import annotations

import random as random_module
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

from backscroll.kernel.errors import ClientError, ModelError
from backscroll.kernel.filter import TokenTransform
from backscroll.kernel.message import Message, Role, ToolCall
from backscroll.kernel.model import (
    CallArgs,
    CallClosed,
    CallOpened,
    ChatModel,
    Delta,
    Finished,
    ModelOptions,
    ModelRequest,
    ModelResponse,
    Partial,
    Reasoning,
    Retry,
    StreamingModel,
    Text,
    retry_policy,
)
from backscroll.kernel.ports import Clock, Ids
from backscroll.kernel.request import CallEnd, CallRetry, CallStart, ChatRequest, ChatResponse
from backscroll.kernel.tool import NAME

Transforms = Callable[[], Sequence[tuple[str, TokenTransform]]]


@dataclass(frozen=True, slots=True)
class ChatTerminal:
    """Sends what the innermost chat filter hands over, and returns the complete reply."""

    clock: Clock
    ids: Ids
    random: random_module.Random
    transforms: Transforms = tuple

    async def __call__(self, request: ChatRequest) -> ChatResponse:
        """Make the model call; raises ModelError, `no_model` or `stream_already_started`."""
        model = request.model
        if model is None:
            raise ClientError("no_model", "no model is set; give the agent or the call one")
        if request.stream is not None and request.stream.started:
            raise ClientError(
                "stream_already_started",
                "this reply has begun to stream, so the model cannot be called for it again",
            )
        reply_id = request.reply_id or self.ids.new("msg")
        sent = model_request(request)
        streams = request.stream is not None and hasattr(model, "stream")
        if request.observer is not None:
            await request.observer.started(CallStart(reply_id, model, sent, streams))
        began = self.clock.monotonic()
        reply = _Reply(request, list(self.transforms()), _CallIds(self.ids, sent.taken_call_ids))
        try:
            response = await self._tries(model, sent, streams, reply, reply_id)
        except ModelError as error:
            usage = error.partial.usage if error.partial is not None else None
            if streams or error.partial is None:
                # What people were delivered counts, not what a token filter held back.
                error.partial = replace(reply.partial(), usage=usage)
            end = CallEnd(reply_id, self._since(began), usage=usage, error=error)
            await self._ended(request, end)
            raise
        answer = replace(response, message=response.message.replace(id=reply_id))
        end = CallEnd(
            reply_id, self._since(began), answer.message, answer.usage, answer.finish_reason
        )
        await self._ended(request, end)
        return ChatResponse(
            answer.message,
            answer.usage,
            answer.finish_reason,
            answer.response_id,
            answer.model or model.name,
            answer.provider or model.provider,
            answer.raw,
            *reply.difference(answer.text),
        )

    async def _tries(
        self, model: ChatModel, sent: ModelRequest, streams: bool, reply: _Reply, reply_id: str
    ) -> ModelResponse:
        defaults: ModelOptions | None = getattr(model, "options", None)
        policy = retry_policy(sent.options.retry, defaults.retry if defaults else None)
        number = 0
        while True:
            try:
                work = reply.streamed(model, sent) if streams else reply.whole(model, sent)
                return await reply.request.cancel.race(work)
            except ModelError as error:
                if not _again(error, reply, policy, number):
                    raise
                # Some servers lose their error text in a stream; a plain answer shows it.
                streams = streams and error.kind != "incomplete_stream"
                assert policy is not None
                delay = retry_delay(policy, number, error, self.random)
                number += 1
                observer = reply.request.observer
                if observer is not None:
                    await observer.retried(CallRetry(reply_id, number, delay, error))
                await reply.request.cancel.race(_sleep(self.clock, delay))

    async def _ended(self, request: ChatRequest, end: CallEnd) -> None:
        if request.observer is not None:
            await request.observer.finished(end)

    def _since(self, began: float) -> float:
        return self.clock.monotonic() - began


def model_request(request: ChatRequest) -> ModelRequest:
    """Return what a model gets of a chat request: notes become user messages at the end."""
    notes = (Message(Role.USER, text, origin="note") for text in request.notes)
    defaults: ModelOptions | None = getattr(request.model, "options", None)
    choice = request.tool_choice
    return ModelRequest(
        (*request.messages, *notes),
        request.system,
        () if choice == "none" and not _has_calls(request) else request.tools,
        choice,
        request.options.over(defaults),
        request.texts,
        request.taken_call_ids,
    )


def retry_delay(
    policy: Retry, number: int, error: ModelError, random: random_module.Random
) -> float:
    """Return how long to wait before retry `number`, from 0: what the server says, else jitter."""
    if error.retry_after_s is not None:
        return min(max(error.retry_after_s, 0.0), policy.cap_s)
    return min(random.uniform(0, policy.base_s * policy.factor**number), policy.cap_s)


def _has_calls(request: ChatRequest) -> bool:
    return any(message.tool_calls for message in request.messages)


def _again(error: ModelError, reply: _Reply, policy: Retry | None, number: int) -> bool:
    if policy is None or number >= policy.max_retries or reply.began:
        return False
    # A stream that broke before its first delta lost nothing, so it may be asked for again.
    return error.retryable or error.kind == "incomplete_stream"


async def _sleep(clock: Clock, seconds: float) -> None:
    await clock.sleep(seconds)


@dataclass(slots=True)
class _CallIds:
    """Gives calls ids of our own where the model's cannot be kept."""

    ids: Ids
    taken: frozenset[str]
    given: dict[str, str] = field(default_factory=dict)

    def open(self, call_id: str) -> str:
        """Return the id to use for a call the model has just named."""
        fits = NAME.fullmatch(call_id) and call_id not in self.taken
        repeated = call_id in self.given.values() or call_id in self.given
        mine = call_id if fits and not repeated else self.ids.new("call")
        self.given[call_id] = mine
        return mine

    def of(self, call_id: str) -> str:
        """Return the id in use for a call already opened."""
        return self.given.get(call_id, call_id)


class _Reply:
    """One reply as it arrives: what was delivered, and what the model itself said."""

    def __init__(
        self, request: ChatRequest, transforms: list[tuple[str, TokenTransform]], ids: _CallIds
    ) -> None:
        self.request, self._ids = request, ids
        self._transforms = transforms
        self._text: list[str] = []
        self._reasoning: list[str] = []
        self._delivered: list[str] = []
        self._calls: dict[str, list[str]] = {}
        self.began = False

    async def streamed(self, model: ChatModel, sent: ModelRequest) -> ModelResponse:
        """Deliver a streamed reply and return it complete."""
        deltas = cast(StreamingModel, model).stream(sent)
        try:
            async for delta in deltas:
                if isinstance(delta, Finished):
                    await self._finish()
                    return self._settle(delta.response)
                self.began = True
                await self._take(delta)
        finally:
            await _close(deltas)
        raise ModelError("incomplete_stream", sent.texts.incomplete_stream)

    async def whole(self, model: ChatModel, sent: ModelRequest) -> ModelResponse:
        """Return a reply asked for in one piece; with a stream it is delivered as deltas."""
        response = await model.generate(sent)
        if self.request.stream is None:
            return self._renamed(response)
        self.began = True
        if response.reasoning:
            await self._take(Reasoning(response.reasoning))
        if response.text:
            await self._take(Text(response.text))
        for call in response.tool_calls:
            await self._take(CallOpened(call.id, call.name))
            if call.raw is not None or call.args:
                await self._take(CallArgs(call.id, call.args_text))
            await self._take(CallClosed(call.id))
        await self._finish()
        return self._settle(response)

    def partial(self) -> Partial:
        """Return what had arrived when the reply broke off."""
        calls = tuple("".join(pieces) for pieces in self._calls.values())
        return Partial("".join(self._delivered), "".join(self._reasoning), calls)

    def difference(self, text: str) -> tuple[str | None, tuple[str, ...]]:
        """Return the text that was delivered, if it is not the model's own, and who changed it."""
        delivered = "".join(self._delivered)
        if not self._transforms or self.request.stream is None or delivered == text:
            return None, ()
        return delivered, tuple(name for name, _ in self._transforms)

    async def _take(self, delta: Delta) -> None:
        if isinstance(delta, Text):
            self._text.append(delta.delta)
        elif isinstance(delta, Reasoning):
            self._reasoning.append(delta.delta)
        elif isinstance(delta, CallOpened):
            mine = self._ids.open(delta.call_id)
            self._calls[mine] = [delta.name, " "]
            await self._send(CallOpened(mine, delta.name))
            return
        elif isinstance(delta, CallArgs):
            mine = self._ids.of(delta.call_id)
            self._calls.setdefault(mine, []).append(delta.delta)
            await self._send(CallArgs(mine, delta.delta))
            return
        elif isinstance(delta, CallClosed):
            await self._send(CallClosed(self._ids.of(delta.call_id)))
            return
        for out in self._through(cast("Text | Reasoning", delta), 0):
            await self._send(out)

    def _through(self, delta: Text | Reasoning, start: int) -> list[Text | Reasoning]:
        deltas = [delta]
        for name, transform in self._transforms[start:]:
            deltas = [_text(out, name) for item in deltas for out in transform.feed(item)]
        return deltas

    async def _finish(self) -> None:
        for position, (name, transform) in enumerate(self._transforms):
            for held in transform.finish():
                for out in self._through(_text(held, name), position + 1):
                    await self._send(out)

    async def _send(self, delta: Delta) -> None:
        if isinstance(delta, Text | Reasoning | CallArgs) and not delta.delta:
            return
        if isinstance(delta, Text):
            self._delivered.append(delta.delta)
        if self.request.stream is not None:
            await self.request.stream.send(delta)

    def _settle(self, response: ModelResponse) -> ModelResponse:
        """Give the calls of a delivered reply the ids they were delivered under, in order."""
        used = list(self._calls)
        calls = response.tool_calls
        if len(used) == len(calls):
            renamed = tuple(_with_id(c, i) for c, i in zip(calls, used, strict=True))
            return replace(response, message=response.message.replace(tool_calls=renamed))
        return self._renamed(response)

    def _renamed(self, response: ModelResponse) -> ModelResponse:
        calls = tuple(_with_id(call, self._ids.open(call.id)) for call in response.tool_calls)
        return replace(response, message=response.message.replace(tool_calls=calls))


def _text(delta: Any, name: str) -> Text | Reasoning:
    if not isinstance(delta, Text | Reasoning):
        found = type(delta).__name__
        raise TypeError(f"tokens of {name}: expected Text or Reasoning, got {found}")
    return delta


def _with_id(call: ToolCall, call_id: str) -> ToolCall:
    return call if call.id == call_id else replace(call, id=call_id)


async def _close(deltas: AsyncIterator[Any]) -> None:
    close = getattr(deltas, "aclose", None)
    if close is not None:
        await close()
