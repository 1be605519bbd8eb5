"""Retrieval: finds passages for a question and puts them beside it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

from backscroll.filters.options import check_choice, check_counts, check_template
from backscroll.filters.questions import is_question, rewritten
from backscroll.kernel.errors import AssemblyError, FilterError, LeaseLost
from backscroll.kernel.filter import Filter, TurnHandler
from backscroll.kernel.message import Message, Role
from backscroll.kernel.request import Note
from backscroll.kernel.turn import TurnRequest, TurnResult


@dataclass(frozen=True, slots=True)
class Document:
    """A passage that was found."""

    text: str
    metadata: Mapping[str, Any] = field(default_factory=dict)


@runtime_checkable
class Retriever(Protocol):
    """Where passages are looked for."""

    async def retrieve(self, query: str, k: int) -> Sequence[Document]:
        """Return up to k passages, the best first."""
        ...


class Retrieval(Filter):
    """Rewrites the last question of a turn for the model: with what was found, fenced as data.

    Nothing found leaves it alone, unless `inject_when_empty`. A retriever that fails ends the turn
    with `retrieval_failed`, or is noted and skipped with `on_error="skip"`.
    """

    name = "retrieval"

    def __init__(
        self,
        retriever: Retriever,
        k: int = 4,
        template: str | None = None,
        inject_when_empty: bool = False,
        on_error: str = "fail",
    ) -> None:
        if isinstance(retriever, type) or not isinstance(retriever, Retriever):
            message = f"retriever: expected an object that retrieves, got {retriever!r}"
            raise AssemblyError("invalid_option", message, "retriever")
        check_counts(k=k)
        check_template("template", template, {"question", "context"})
        check_choice("on_error", on_error, "fail", "skip")
        self._retriever, self._k, self._template = retriever, k, template
        self._inject_when_empty, self._skips = inject_when_empty, on_error == "skip"

    async def turn(self, request: TurnRequest, chain: TurnHandler) -> TurnResult:
        """Rewrite the last question once per turn."""
        messages = list(request.messages or ())
        at = _last_user(messages)
        if at is None or not is_question(messages[at], self.name):
            return await chain(request)
        found = await self._find(request, str(messages[at].content))
        if found is None or not (found or self._inject_when_empty):
            return await chain(request)
        template = self._template or request.texts.retrieval
        text = template.format(question=messages[at].for_model(), context="\n\n".join(found))
        messages[at] = rewritten(messages[at], self.name, text)
        return await chain(request.replace(messages=tuple(messages)))

    async def _find(self, request: TurnRequest, query: str) -> list[str] | None:
        """Return the passages, without blank ones, or None when the retriever failed."""
        try:
            documents = await self._retriever.retrieve(query, self._k)
            return [document.text for document in documents if document.text.strip()]
        except LeaseLost:
            raise
        except Exception as error:
            reason = str(error) or type(error).__name__
            if not self._skips:
                message = f"nothing could be looked up: {reason}"
                raise FilterError(self.name, "retrieval_failed", message) from error
            await request.report(Note("retrieval_failed", f"nothing was looked up: {reason}"))
            return None


def _last_user(messages: Sequence[Message]) -> int | None:
    places = [at for at, message in enumerate(messages) if message.role is Role.USER]
    return places[-1] if places else None
