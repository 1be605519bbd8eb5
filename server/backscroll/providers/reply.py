"""A reply as it is put together, on any wire."""

from __future__ import annotations

from collections.abc import Iterator

from backscroll.kernel.canon import SurrogateJoiner, clean_text
from backscroll.kernel.message import Message, Role, ToolCall
from backscroll.kernel.model import (
    CallArgs,
    CallClosed,
    CallOpened,
    Delta,
    Finished,
    ModelResponse,
    Reasoning,
    Text,
)


class Channel:
    """A text that arrives in pieces."""

    def __init__(self) -> None:
        self._pieces: list[str] = []
        self._joiner = SurrogateJoiner()
        self._is_ascii = True

    def take(self, piece: str) -> str:
        """Return what of the text can be delivered now."""
        if self._is_ascii and piece.isascii():
            self._pieces.append(piece)
            return piece
        self._is_ascii = False
        return self._keep(self._joiner.feed(piece))

    def end(self) -> str:
        """Return what was held back for a partner that did not come."""
        return self._keep(self._joiner.finish())

    def whole(self) -> str:
        """Return the text so far."""
        return "".join(self._pieces)

    def _keep(self, piece: str) -> str:
        if piece:
            self._pieces.append(piece)
        return piece


def reply_message(text: str, reasoning: str, calls: tuple[ToolCall, ...]) -> Message:
    """Return a reply as a message; its content is None when it has calls and no text."""
    content = None if calls and not text else clean_text(text)
    return Message(
        Role.ASSISTANT, content, tool_calls=calls, reasoning=clean_text(reasoning) or None
    )


def as_deltas(response: ModelResponse) -> Iterator[Delta]:
    """Yield a complete reply as the deltas a stream of it would deliver."""
    if response.reasoning:
        yield Reasoning(response.reasoning)
    if response.text:
        yield Text(response.text)
    for call in response.tool_calls:
        yield CallOpened(call.id, call.name)
        if call.raw is not None or call.args:
            yield CallArgs(call.id, call.args_text)
    for call in response.tool_calls:
        yield CallClosed(call.id)
    yield Finished(response)
