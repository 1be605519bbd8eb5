"""ChatLogger and ToolLogger: log lines about calls."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable

from backscroll.filters.options import check_counts
from backscroll.kernel.canon import canonical_json
from backscroll.kernel.content import text_of
from backscroll.kernel.errors import redact
from backscroll.kernel.filter import ChatHandler, Filter, ToolHandler
from backscroll.kernel.model import Named
from backscroll.kernel.request import ChatRequest, ChatResponse, ToolRequest, ToolResponse

Log = Callable[[str], object]


class _Lines:
    """Writes lines: cut, on one line each, and without secrets."""

    def __init__(self, log: Log | None, logger: str, limit: int | None, secrets: Iterable[str]):
        if limit is not None:
            check_counts(limit=limit)
        self._log: Log = log or logging.getLogger(logger).info
        self._limit, self._secrets = limit, tuple(secrets)

    def cut(self, text: str) -> str:
        """Return what is shown of a text."""
        text = " ".join(redact(text, self._secrets).split())
        if self._limit is None or len(text) <= self._limit:
            return text
        return text[: self._limit] + "…"

    def write(self, line: str) -> None:
        """Write one line."""
        self._log(redact(line, self._secrets))


class ToolLogger(Filter):
    """Writes one line per call with name and arguments, and one with the result.

    `log` takes a line; without it lines go to the logger `backscroll.tools`. None cuts nothing.
    """

    name = "tool_logger"

    def __init__(
        self, log: Log | None = None, cut_chars: int | None = 100, secrets: Iterable[str] = ()
    ) -> None:
        self._lines = _Lines(log, "backscroll.tools", cut_chars, secrets)

    async def tool(self, request: ToolRequest, chain: ToolHandler) -> ToolResponse:
        """Write both lines."""
        name, lines = request.tool.name, self._lines
        lines.write(f"{name} {lines.cut(canonical_json(dict(request.args)))}")
        response = await chain(request)
        lines.write(f"{name} {response.outcome}: {lines.cut(text_of(response.content))}")
        return response


class ChatLogger(Filter):
    """Writes one line per request with its counts, and one per reply with its calls or text.

    `log` takes a line; without it lines go to the logger `backscroll.chat`. None cuts nothing.
    """

    name = "chat_logger"

    def __init__(
        self, log: Log | None = None, preview_chars: int | None = 200, secrets: Iterable[str] = ()
    ) -> None:
        self._lines = _Lines(log, "backscroll.chat", preview_chars, secrets)

    async def chat(self, request: ChatRequest, chain: ChatHandler) -> ChatResponse:
        """Write both lines."""
        choice = request.tool_choice
        chosen = choice.name if isinstance(choice, Named) else choice
        counts = f"{len(request.messages)} messages, {len(request.tools)} tools"
        self._lines.write(f"request: {counts}, tool choice {chosen}")
        response = await chain(request)
        names = ", ".join(call.name for call in response.tool_calls)
        said = f"calls {names}" if names else self._lines.cut(response.text)
        self._lines.write(f"reply: {said}")
        return response
