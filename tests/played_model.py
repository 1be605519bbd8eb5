"""A model in this process that plays prepared replies and keeps every request."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from backscroll.kernel.canon import canonical_json
from backscroll.kernel.message import ToolCall, assistant, parse_call
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
    Reasoning,
    Text,
)
from backscroll.kernel.usage import FinishReason, Usage


@dataclass(frozen=True, slots=True)
class Said:
    """One reply: text word by word, then calls."""

    text: str = ""
    calls: Sequence[ToolCall] = ()
    reasoning: str = ""
    usage: Usage | None = None
    finish: FinishReason | None = None

    def response(self) -> ModelResponse:
        """Return the reply in one piece."""
        message = assistant(self.text, self.calls).replace(reasoning=self.reasoning or None)
        reason = FinishReason.TOOL_CALLS if self.calls else FinishReason.STOP
        return ModelResponse(message, self.usage, self.finish or reason, provider="played")

    def deltas(self) -> list[Delta]:
        """Return the reply as it streams."""
        out: list[Delta] = [Reasoning(word) for word in self.reasoning.split(" ") if word]
        out += [Text(word) for word in self.text.replace(" ", " \0").split("\0") if word]
        for call in self.calls:
            out.append(CallOpened(call.id, call.name))
            if call.raw is not None or call.args:
                out.append(CallArgs(call.id, call.args_text))
            out.append(CallClosed(call.id))
        return [*out, Finished(self.response())]


@dataclass(frozen=True, slots=True)
class Streamed:
    """A reply delta by delta; an event is waited for, an exception raised in its place."""

    pieces: Sequence[Delta | asyncio.Event | Exception]


Reply = str | Said | Streamed | Exception
Script = Reply | Callable[[ModelRequest], Reply]


@dataclass
class PlayedModel:
    """Plays its script in order; running past the end is an error. It does not stream."""

    script: Sequence[Script]
    profile: ModelProfile = field(default_factory=ModelProfile)
    options: ModelOptions = field(default_factory=lambda: ModelOptions(retry=False))
    name: str = "played-1"
    provider: str = "played"
    requests: list[ModelRequest] = field(default_factory=list)
    closed: int = 0

    def next(self, request: ModelRequest) -> Reply:
        """Keep the request and return the reply to it."""
        self.requests.append(request)
        if len(self.requests) > len(self.script):
            raise AssertionError(f"the script ends after {len(self.script)} replies")
        reply = self.script[len(self.requests) - 1]
        return reply(request) if callable(reply) else reply

    async def generate(self, request: ModelRequest) -> ModelResponse:
        """Return the next reply."""
        reply = self.next(request)
        if isinstance(reply, Exception):
            raise reply
        if isinstance(reply, Streamed):
            raise AssertionError("this reply can only be streamed")
        return (Said(reply) if isinstance(reply, str) else reply).response()

    async def aclose(self) -> None:
        """Hold no connection."""


class StreamingModel(PlayedModel):
    """The same, streaming."""

    async def stream(self, request: ModelRequest) -> AsyncIterator[Delta]:
        """Yield the next reply's deltas."""
        reply = self.next(request)
        try:
            for piece in _pieces(reply):
                if isinstance(piece, Exception):
                    raise piece
                if isinstance(piece, asyncio.Event):
                    await piece.wait()
                    continue
                yield piece
        finally:
            self.closed += 1


def call(name: str, args: Mapping[str, Any] | str | None = None, id: str = "") -> ToolCall:
    """Return a call; `args` is an object, or the argument text as the model wrote it."""
    return parse_call(id or f"call_{name}", name, args)


def calls(*wanted: ToolCall, text: str = "", usage: Usage | None = None) -> Said:
    """Return a reply that asks for tools."""
    return Said(text, wanted, usage=usage)


def sent(request: ModelRequest) -> list[str]:
    """Return the messages of a request, one short line each: role, then calls or content."""
    lines = []
    for message in request.messages:
        asked = ",".join(f"{c.name}{canonical_json(c.args)}" for c in message.tool_calls)
        lines.append(f"{message.role}: {message.for_model() or ''}{asked}")
    return lines


def _pieces(reply: Reply) -> Sequence[Delta | asyncio.Event | Exception]:
    if isinstance(reply, Streamed):
        return reply.pieces
    if isinstance(reply, Exception):
        return [reply]
    return (Said(reply) if isinstance(reply, str) else reply).deltas()
