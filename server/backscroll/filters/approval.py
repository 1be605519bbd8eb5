"""AskApproval: asks on the spot before a sensitive tool runs."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from backscroll.kernel.errors import AssemblyError, Never
from backscroll.kernel.filter import Filter, ToolHandler
from backscroll.kernel.request import ToolRequest, ToolResponse

logger = logging.getLogger(__name__)

Ask = Callable[[str, Mapping[str, Any]], bool | Awaitable[bool]]
"""Says whether a tool may run with these arguments; sync or async."""


class AskApproval(Filter):
    """Runs sensitive tools only when `ask(name, args)` says so; the turn waits for it meanwhile.

    For programs with somebody at the keyboard. A server pauses instead: see an agent's `gate`.
    """

    name = "ask_approval"

    def __init__(self, ask: Ask) -> None:
        if not callable(ask):
            message = f"ask: expected a function of name and arguments, got {ask!r}"
            raise AssemblyError("invalid_option", message, "ask")
        self._ask = ask

    async def tool(self, request: ToolRequest, chain: ToolHandler) -> ToolResponse:
        """Ask, if the tool is sensitive."""
        if not request.tool.sensitive or await self._is_approved(request):
            return await chain(request)
        return ToolResponse(request.texts.approval_denied, outcome="refused")

    async def _is_approved(self, request: ToolRequest) -> bool:
        try:
            answer = self._ask(request.tool.name, request.args)
            return bool(await answer if inspect.isawaitable(answer) else answer)
        except Never.CONTAINED:
            raise
        except Exception:
            # Nobody has said yes.
            logger.exception("asking about %s failed", request.tool.name)
            return False
