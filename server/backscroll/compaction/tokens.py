"""How many tokens things take: text by pieces, messages, tools, media; and the calibration."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Protocol

from backscroll.kernel.message import Message
from backscroll.kernel.model import ModelProfile
from backscroll.kernel.tool import ToolSpec


class TokenCounter(Protocol):
    """Counts the tokens of a text."""

    name: str

    def count(self, text: str) -> int:
        """Return how many tokens the text takes."""
        ...


class PieceCounter:
    """Counts by pieces of text with fixed weights: no vocabulary, one pass."""

    name = "pieces"

    def count(self, text: str) -> int:
        """Return the estimate, rounded up."""
        raise NotImplementedError


class Sizes:
    """Raw sizes of everything in a request, remembered by digest; `under` fits it to a model."""

    def text(self, text: str) -> int:
        """Return the tokens of a bare text."""
        raise NotImplementedError

    def message(self, message: Message) -> int:
        """Return the tokens of a message as it is sent."""
        raise NotImplementedError

    def messages(self, messages: Iterable[Message]) -> int:
        """Return the tokens of several messages."""
        raise NotImplementedError

    def system(self, text: str) -> int:
        """Return the tokens of a system text or a note."""
        raise NotImplementedError

    def tool(self, tool: ToolSpec) -> int:
        """Return the tokens of a tool's description."""
        raise NotImplementedError

    def response_format(self, value: Mapping[str, Any] | None) -> int:
        """Return the tokens of a response format."""
        raise NotImplementedError

    def under(self, profile: ModelProfile) -> Sizes:
        """Return the sizes for another model, with the same memory."""
        raise NotImplementedError


def estimate_message(message: Message, profile: ModelProfile, counter: TokenCounter) -> int:
    """Return the raw tokens of a message as it is sent to this model."""
    raise NotImplementedError


def estimate(raw: int, ratio: float) -> int:
    """Return the calibrated estimate of a raw size."""
    raise NotImplementedError


def calibrate(ratio: float, raw: int, reported: int) -> float:
    """Return the ratio after an answer; unchanged when the report cannot be used."""
    raise NotImplementedError
