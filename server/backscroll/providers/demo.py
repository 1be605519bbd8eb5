"""A model without network and key: it plays a script, or answers by rules."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count

from backscroll.kernel.content import FilePart, TextPart
from backscroll.kernel.errors import ModelError, Refusal
from backscroll.kernel.message import Message, ToolCall
from backscroll.kernel.model import (
    CallArgs,
    CallClosed,
    CallOpened,
    Delta,
    Finished,
    ModelOptions,
    ModelProfile,
    ModelRequest,
    ModelResponse,
    Partial,
    Reasoning,
    Text,
)
from backscroll.kernel.usage import FinishReason, Usage
from backscroll.providers.demo_answers import answer, as_calls
from backscroll.providers.reply import reply_message

DEFAULT_WINDOW = 6_000
MAX_OUTPUT_TOKENS = 1_024
TOKENS_PER_MESSAGE = 4
TOKENS_PER_FILE = 200

_TOKEN = re.compile(r"[A-Za-z]{1,7}|[0-9]{1,3}|[^\sA-Za-z0-9]")
_WORD = re.compile(r"\s*(?:[\u2e80-\uffef\U00010000-\U0010ffff]|[^\s\u2e80-\uffef]+)\s*$|"
                   r"\s*(?:[\u2e80-\uffef\U00010000-\U0010ffff]|[^\s\u2e80-\uffef]+)")  # fmt: skip


@dataclass(frozen=True, slots=True)
class DemoReply:
    """One reply of a script.

    `error` is raised instead of an answer; with `break_after` it is raised after that many deltas.
    `break_after` alone ends the stream there, as a lost connection would. `delay_s` is waited
    before each delta, `pause_s` before the first.
    """

    text: str = ""
    reasoning: str = ""
    calls: tuple[ToolCall, ...] = ()
    error: ModelError | None = None
    break_after: int | None = None
    pause_s: float = 0.0
    delay_s: float | None = None
    usage: Usage | None = None
    finish_reason: FinishReason | None = None


Script = Sequence["DemoReply | str | Callable[[ModelRequest], DemoReply]"]


class DemoModel:
    """A deterministic model that keeps every request it gets in `requests`."""

    provider = "demo"

    def __init__(
        self,
        script: Script | None = None,
        delay_s: float = 0.02,
        window: int = DEFAULT_WINDOW,
        *,
        name: str = "demo",
        profile: ModelProfile | None = None,
        options: ModelOptions | None = None,
    ) -> None:
        """Play the script in order, one reply per request; without one, answer by rules."""
        self.name, self.window, self.delay_s = name, window, delay_s
        self.options = options or ModelOptions()
        self.profile = profile or _profile(window)
        self.requests: list[ModelRequest] = []
        self._script = None if script is None else list(script)
        self._played = 0
        self._ids = (f"call_{number}" for number in count(1))

    def __repr__(self) -> str:
        """Show how long the script is."""
        shown = "" if self._script is None else f"<{len(self._script)} replies>"
        return f"DemoModel({shown})"

    async def generate(self, request: ModelRequest) -> ModelResponse:
        """Return the complete reply; raises nothing but ModelError."""
        reply = self._next(request)
        await asyncio.sleep(reply.pause_s)
        if reply.error is not None:
            raise reply.error
        if reply.break_after is not None:
            raise self._broken(request, Partial())
        return self._response(request, reply)

    async def stream(self, request: ModelRequest) -> AsyncIterator[Delta]:
        """Yield the reply word by word, then `Finished`; raises nothing but ModelError."""
        reply = self._next(request)
        delay = self.delay_s if reply.delay_s is None else reply.delay_s
        await asyncio.sleep(reply.pause_s)
        if reply.error is not None and reply.break_after is None:
            raise reply.error
        sent: list[Delta] = []
        for delta in deltas_of(reply):
            if len(sent) == reply.break_after:
                raise reply.error or self._broken(request, partial_of(sent))
            await asyncio.sleep(delay)
            yield delta
            sent.append(delta)
        if reply.break_after is not None:
            raise reply.error or self._broken(request, partial_of(sent))
        yield Finished(self._response(request, reply))

    async def aclose(self) -> None:
        """Do nothing: there is no connection."""

    def _next(self, request: ModelRequest) -> DemoReply:
        self.requests.append(request)
        used = count_request(request)
        if used > self.window:
            message = (
                f"this model's maximum context length is {self.window} tokens, and the request "
                f"has {used}"
            )
            refusal = Refusal("overflow", used, None, self.window, "demo")
            raise ModelError(
                "context_overflow", message, status=400, provider="demo", refusal=refusal
            )
        if self._script is None:
            said = answer(request, used, self.window)
            return DemoReply(said.text, said.reasoning, as_calls(said, self._ids))
        if self._played == len(self._script):
            message = f"the demo script has {self._played} replies, and one more was asked for"
            raise ModelError("invalid_request", message, provider="demo")
        item = self._script[self._played]
        self._played += 1
        if isinstance(item, str):
            return DemoReply(item)
        return item if isinstance(item, DemoReply) else item(request)

    def _response(self, request: ModelRequest, reply: DemoReply) -> ModelResponse:
        reason = FinishReason.TOOL_CALLS if reply.calls else FinishReason.STOP
        output = sum(map(count_tokens, (reply.text, reply.reasoning)))
        output += sum(count_tokens(call.name + call.args_text) for call in reply.calls)
        estimated = Usage(
            count_request(request),
            output,
            reasoning_tokens=count_tokens(reply.reasoning) if reply.reasoning else None,
        )
        return ModelResponse(
            reply_message(reply.text, reply.reasoning, reply.calls),
            reply.usage or estimated,
            reply.finish_reason or reason,
            None,
            self.name,
            self.provider,
        )

    def _broken(self, request: ModelRequest, partial: Partial) -> ModelError:
        return ModelError(
            "incomplete_stream",
            request.texts.incomplete_stream,
            retryable=partial == Partial(),
            provider="demo",
            partial=partial,
        )


def deltas_of(reply: DemoReply) -> Iterator[Delta]:
    """Yield a scripted reply as deltas: reasoning and text word by word, then the calls."""
    for word in split_words(reply.reasoning):
        yield Reasoning(word)
    for word in split_words(reply.text):
        yield Text(word)
    for call in reply.calls:
        yield CallOpened(call.id, call.name)
        if call.raw is not None or call.args:
            yield CallArgs(call.id, call.args_text)
        yield CallClosed(call.id)


def partial_of(sent: Sequence[Delta]) -> Partial:
    """Return what deltas had delivered when a reply broke off."""
    calls: dict[str, str] = {}
    for delta in sent:
        if isinstance(delta, CallOpened):
            calls[delta.call_id] = delta.name
        elif isinstance(delta, CallArgs):
            calls[delta.call_id] += f" {delta.delta}"
    text = "".join(delta.delta for delta in sent if isinstance(delta, Text))
    thought = "".join(delta.delta for delta in sent if isinstance(delta, Reasoning))
    return Partial(text, thought, tuple(calls.values()))


def split_words(text: str) -> list[str]:
    """Cut a text into words with the blanks around them; joined they are the text again."""
    found = _WORD.findall(text)
    return found or ([text] if text else [])


def count_tokens(text: str) -> int:
    """Estimate the tokens of a text."""
    return len(_TOKEN.findall(text))


def count_request(request: ModelRequest) -> int:
    """Estimate the tokens of a request: its texts, calls and tools."""
    tools = (f"{t.name}{t.description}{json.dumps(dict(t.schema))}" for t in request.tools)
    total = sum(map(count_tokens, (*request.system, *tools)))
    return total + sum(map(_count_message, request.messages))


def _count_message(message: Message) -> int:
    content = message.for_model()
    parts = (TextPart(content),) if isinstance(content, str) else content or ()
    total = TOKENS_PER_MESSAGE
    for part in parts:
        total += count_tokens(part.text) if isinstance(part, TextPart) else 0
        total += TOKENS_PER_FILE if isinstance(part, FilePart) else 0
    return total + sum(count_tokens(call.name + call.args_text) for call in message.tool_calls)


def _profile(window: int) -> ModelProfile:
    kinds = ("image/*", "audio/*", "video/*", "application/*", "text/*")
    return ModelProfile(
        context_window=window,
        window_source="catalogue",
        max_output_tokens=min(MAX_OUTPUT_TOKENS, window // 4),
        parts={"user": kinds},
    )
