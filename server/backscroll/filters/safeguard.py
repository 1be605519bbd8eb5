"""Safeguard: refuses questions with certain words, before any model reads them."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from backscroll.kernel.content import text_of
from backscroll.kernel.errors import AssemblyError
from backscroll.kernel.filter import Filter, TurnHandler
from backscroll.kernel.message import Message
from backscroll.kernel.texts import Texts
from backscroll.kernel.turn import TurnRequest, TurnResult


@dataclass(frozen=True, slots=True)
class Blocked:
    """A question that is not answered: what is said instead, and who blocked it."""

    text: str
    blocked_by: str


class Safeguard(Filter):
    """Answers a turn itself when a word occurs in what is asked; nothing of it is stored.

    Words are found in any case and width, inside other words, too. `match(text)` replaces that.
    It guards the entrance only: tool results and answers pass.
    """

    name = "safeguard"

    def __init__(
        self,
        words: Iterable[str] = (),
        answer: str | None = None,
        match: Callable[[str], bool] | None = None,
    ) -> None:
        if isinstance(words, str):
            message = f"words: expected a list of words, got the text {words!r}"
            raise AssemblyError("invalid_option", message, "words")
        self._words = tuple(folded(word) for word in words if word.strip())
        self._answer, self._match = answer, match

    def screen(self, messages: Sequence[Message], texts: Texts) -> Blocked | None:
        """Return why these messages are not answered, or None if they may be."""
        if not any(self._hits(text_of(message.content)) for message in messages):
            return None
        return Blocked(self._answer or texts.safeguard, self.name)

    async def turn(self, request: TurnRequest, chain: TurnHandler) -> TurnResult:
        """Let the turn through, or answer it."""
        blocked = self.screen(request.messages or (), request.texts)
        if blocked is None:
            return await chain(request)
        return request.answer(blocked.text, blocked_by=blocked.blocked_by)

    def _hits(self, text: str) -> bool:
        if self._match is not None:
            return self._match(text)
        found = folded(text)
        return any(word in found for word in self._words)


def folded(text: str) -> str:
    """Return a text so that case and width of its letters make no difference."""
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
