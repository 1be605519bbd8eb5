"""StructuredOutput: answers as JSON of a given shape."""

from __future__ import annotations

import re
from typing import Any

from backscroll.filters.options import check_choice
from backscroll.filters.schema_check import Judgement, SchemaCheck
from backscroll.filters.validation import Corrected
from backscroll.kernel.filter import ChatHandler
from backscroll.kernel.request import ChatRequest, ChatResponse
from backscroll.kernel.turn import TurnResult
from backscroll.providers.openai_request import allows_strict


class StructuredOutput(Corrected):
    """Lets a turn end with JSON that fits; the value is the result's `output`.

    `schema` is a pydantic type, whose instance is the output, or a JSON Schema. Models that can
    are asked for the shape, unless `native=False`; answers are checked in any case.
    """

    name = "structured_output"

    def __init__(self, schema: Any, max_retries: int = 2, native: bool | str = "auto") -> None:
        super().__init__(max_retries)
        check_choice("native", native, "auto", True, False)
        self._native = bool(native)
        self._check = SchemaCheck(schema)
        title = re.sub(r"[^A-Za-z0-9_-]+", "_", str(self._check.schema.get("title", "")))[:64]
        self._format = {
            "name": title.strip("_") or "answer",
            "schema": self._check.schema,
            "strict": allows_strict(self._check.schema),
        }

    async def judge(self, text: str) -> Judgement:
        """Check against the schema."""
        return self._check.judge(text)

    def accepted(self, result: TurnResult, judgement: Judgement) -> TurnResult:
        """Return the result with the value."""
        return result.replace(output=judgement.value)

    async def chat(self, request: ChatRequest, chain: ChatHandler) -> ChatResponse:
        """Ask the model for the shape, as far as it can be asked."""
        kind = request.profile.response_format
        if not self._native or kind == "none":
            return await chain(request)
        asked: dict[str, Any] = {"type": kind}
        if kind == "json_schema":
            asked["json_schema"] = self._format
        options = request.options.replace(response_format=asked)
        return await chain(request.replace(options=options))
