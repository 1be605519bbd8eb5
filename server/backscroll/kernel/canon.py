"""Text and JSON in the one form that is stored, hashed and sent."""

from __future__ import annotations

import json
from typing import Any


def clean_text(text: str) -> str:
    """Return valid Unicode: surrogate pairs are joined, a lone surrogate becomes U+FFFD."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


class SurrogateJoiner:
    """Joins a surrogate pair that a stream delivers in two pieces."""

    def __init__(self) -> None:
        self._held = ""

    def feed(self, text: str) -> str:
        """Return what can be delivered now; a trailing high surrogate waits for its partner."""
        text = self._held + text
        self._held = ""
        if text and "\ud800" <= text[-1] <= "\udbff":
            self._held, text = text[-1], text[:-1]
        return clean_text(text)

    def finish(self) -> str:
        """Return what is still held, as U+FFFD."""
        held, self._held = self._held, ""
        return clean_text(held)


def canonical_json(value: Any) -> str:
    """Write JSON: UTF-8 characters as they are, no blanks, keys in insertion order, no NaN."""
    return _ENCODER.encode(value)


def parse_json(text: str | bytes) -> Any:
    """Read JSON; NaN and infinities are refused with ValueError, as the standard has it."""
    whole = text if isinstance(text, str) else text.decode("utf-8", "surrogatepass")
    try:
        # What most texts are: a value and nothing around it.
        value, end = _DECODER.raw_decode(whole)
    except ValueError:
        return _DECODER.decode(whole)
    return value if end == len(whole) else _DECODER.decode(whole)


def _refuse(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


# Made once: building them for each call would cost as much as a small text takes to read.
_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False)
_DECODER = json.JSONDecoder(parse_constant=_refuse)
