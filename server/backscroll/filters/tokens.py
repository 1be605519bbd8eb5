"""Redact and HoldUntilChecked: filters that change what is delivered of a streamed reply."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from backscroll.filters.options import check_counts
from backscroll.kernel.errors import AssemblyError
from backscroll.kernel.filter import Filter, TokenTransform
from backscroll.kernel.model import Reasoning, Text

Piece = Text | Reasoning


class Redact(Filter):
    """Replaces what matches a pattern in the text and the reasoning that are delivered.

    Matches that are split over deltas are missed, unless so many characters are held back.
    """

    name = "redact"

    def __init__(self, pattern: str, replacement: str = "***", window_chars: int = 0) -> None:
        check_counts(0, window_chars=window_chars)
        try:
            self._pattern = re.compile(pattern)
            re.sub(self._pattern, replacement, "")
        except re.error as error:
            message = f"pattern {pattern!r}: {error}"
            raise AssemblyError("invalid_option", message, "pattern") from error
        self._replacement, self._window_chars = replacement, window_chars

    def tokens(self) -> TokenTransform:
        """Return a transform for one stream."""
        return _Redacting(self._pattern, self._replacement, self._window_chars)


class HoldUntilChecked(Filter):
    """Holds all text of a reply until it is complete, and delivers it if the check has nothing.

    `check(text)` returns None, or the text that is delivered instead. Reasoning is not held.
    """

    name = "hold_until_checked"

    def __init__(self, check: Callable[[str], str | None]) -> None:
        if not callable(check):
            message = f"check: expected a function of the reply's text, got {check!r}"
            raise AssemblyError("invalid_option", message, "check")
        self._check = check

    def tokens(self) -> TokenTransform:
        """Return a transform for one stream."""
        return _Holding(self._check)


class _Redacting:
    """Holds back a window, so that a match is found when the rest of it arrives."""

    def __init__(self, pattern: re.Pattern[str], replacement: str, window: int) -> None:
        self._pattern, self._replacement, self._window = pattern, replacement, window
        self._kind: type[Piece] = Text
        self._held = ""

    def feed(self, delta: Piece) -> Iterable[Piece]:
        # Reasoning that is held goes out before the text that follows it.
        before = [] if self._kind is type(delta) else list(self.finish())
        self._kind = type(delta)
        text = self._held + delta.delta
        cut = self._safe_cut(text)
        self._held = text[cut:]
        return [*before, *self._out(text[:cut])]

    def finish(self) -> Iterable[Piece]:
        held, self._held = self._held, ""
        return self._out(held)

    def _safe_cut(self, text: str) -> int:
        """Return up to where a text can go out: not into the window, not into a match."""
        cut = max(0, len(text) - self._window)
        for found in self._pattern.finditer(text):
            if found.start() < cut < found.end():
                return found.start() if found.end() == len(text) and self._window else found.end()
        return cut

    def _out(self, text: str) -> list[Piece]:
        return [self._kind(self._pattern.sub(self._replacement, text))] if text else []


class _Holding:
    def __init__(self, check: Callable[[str], str | None]) -> None:
        self._check = check
        self._held: list[Text] = []

    def feed(self, delta: Piece) -> Iterable[Piece]:
        if isinstance(delta, Reasoning):
            return [delta]
        self._held.append(delta)
        return []

    def finish(self) -> Iterable[Piece]:
        if not self._held:
            return []
        instead = self._check("".join(delta.delta for delta in self._held))
        return self._held if instead is None else [Text(instead)]
