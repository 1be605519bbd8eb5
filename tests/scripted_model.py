"""A ChatModel that plays what a test tells it: a fake at the edge of the world.

A reply is a list of deltas ending with `Finished`, or with an exception to raise; a list without
either just stops. `requests` keeps everything the model was asked.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence

from backscroll.kernel.message import ToolCall, assistant
from backscroll.kernel.model import (
    CallArgs,
    CallClosed,
    CallOpened,
    Delta,
    Finished,
    ModelProfile,
    ModelRequest,
    ModelResponse,
    Reasoning,
    Text,
)
from backscroll.kernel.usage import FinishReason, Usage

Reply = Sequence[Delta | BaseException]


def reply(
    text: str = "", calls: Sequence[ToolCall] = (), reasoning: str = "", usage: Usage | None = None
) -> Reply:
    """Return the deltas of a whole reply, its text cut into words."""
    deltas: list[Delta] = [Reasoning(reasoning)] if reasoning else []
    deltas += [Text(word) for word in text.split("|") if word]
    for call in calls:
        deltas += [CallOpened(call.id, call.name), CallArgs(call.id, call.args_text)]
        deltas.append(CallClosed(call.id))
    message = assistant(text.replace("|", "") or (None if calls else ""), calls)
    message = message.replace(reasoning=reasoning or None)
    reason = FinishReason.TOOL_CALLS if calls else FinishReason.STOP
    return [*deltas, Finished(ModelResponse(message, usage, reason))]


class OneShotModel:
    """Plays replies without streaming."""

    provider = "scripted"
    profile = ModelProfile(context_window=100_000)

    def __init__(self, *replies: Reply, name: str = "scripted") -> None:
        self.name = name
        self.replies = list(replies)
        self.requests: list[ModelRequest] = []
        self.closed_streams = 0

    def _next(self, request: ModelRequest) -> Reply:
        self.requests.append(request)
        assert self.replies, "the scripted model was asked once more than it has replies"
        return self.replies.pop(0)

    async def generate(self, request: ModelRequest) -> ModelResponse:
        """Return the next reply whole, or raise its error."""
        for item in self._next(request):
            if isinstance(item, BaseException):
                raise item
            if isinstance(item, Finished):
                return item.response
        raise AssertionError("a reply that is not streamed needs Finished or an error")

    async def aclose(self) -> None:
        """Nothing to let go of."""


class ScriptedModel(OneShotModel):
    """Plays replies as streams."""

    async def stream(self, request: ModelRequest) -> AsyncIterator[Delta]:
        """Yield the next reply's deltas."""
        try:
            for item in self._next(request):
                if isinstance(item, BaseException):
                    raise item
                yield item
        finally:
            self.closed_streams += 1
