"""Which summariser a call has: the model of the call itself, another one, or none."""

from __future__ import annotations

from typing import cast

from backscroll.compaction.summarise import ModelSummariser
from backscroll.compaction.summariser import Summariser
from backscroll.compaction.texts import CompactionTexts
from backscroll.kernel.errors import AssemblyError
from backscroll.kernel.model import ChatModel

OWN = "own"


class Summarisers:
    """Gives each call its summariser.

    `given`: "own" for the model of the call, a model, a Summariser, or None; anything else raises
    `invalid_option`.
    """

    def __init__(self, given: str | ChatModel | Summariser | None, texts: CompactionTexts) -> None:
        self._texts = texts
        self._fixed: Summariser | None = None
        self._is_own = given == OWN
        self._last: ModelSummariser | None = None
        if given is None or self._is_own:
            return
        if hasattr(given, "summarise"):
            self._fixed = cast(Summariser, given)
        elif hasattr(given, "generate"):
            self._fixed = ModelSummariser(cast(ChatModel, given), texts=texts)
        else:
            expected = "'own', a model, a summariser or None"
            message = f"summariser: expected {expected}, got {given!r}"
            raise AssemblyError("invalid_option", message, "summariser")

    def of(self, model: ChatModel) -> Summariser | None:
        """Return the summariser of a call of this model."""
        if not self._is_own:
            return self._fixed
        if self._last is None or self._last.model is not model:
            self._last = ModelSummariser(model, texts=self._texts)
        return self._last

    async def aclose(self) -> None:
        """Let go of the connections of a model that only summarises."""
        if isinstance(self._fixed, ModelSummariser):
            await self._fixed.model.aclose()

    def window(self, summariser: Summariser | None, learned: int | None) -> int | None:
        """Return what one request may hold; a limit learned of the call's model counts for it."""
        window = summariser.window_tokens if summariser is not None else None
        if window is None or learned is None or not self._is_own:
            return window
        return min(window, learned)
