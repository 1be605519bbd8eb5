"""The summariser that asks a model, below the chat chain."""

from __future__ import annotations

import math
from collections.abc import Sequence

from backscroll.compaction.summariser import SummaryDraft, SummaryPart
from backscroll.compaction.texts import CompactionTexts
from backscroll.kernel.errors import ModelError
from backscroll.kernel.message import user
from backscroll.kernel.model import ChatModel, ModelOptions, ModelRequest
from backscroll.kernel.usage import FinishReason

ASSUMED_WINDOW = 32_768
OUTPUT_ROOM = 1.5


class ModelSummariser:
    """Asks a model: no memory, no tools, no reminders, no retry.

    `window` lowers the window its profile states.
    """

    kind = "model"

    def __init__(
        self, model: ChatModel, *, window: int | None = None, texts: CompactionTexts | None = None
    ) -> None:
        self.model = model
        self.texts = texts or CompactionTexts()
        self._window = window
        self._temperature: float | None = 0.0

    @property
    def window_tokens(self) -> int | None:
        """The model's window, or what is assumed for an unknown one."""
        profile = self.model.profile
        known = (profile.context_window or ASSUMED_WINDOW, self._window, profile.max_input_tokens)
        return min(tokens for tokens in known if tokens)

    async def summarise(self, part: SummaryPart) -> SummaryDraft:
        """Return the model's answer; raises what the model raises."""
        try:
            return await self._ask(part)
        except ModelError as error:
            if self._temperature is None or not _about_temperature(error):
                raise
            # Some models take no temperature; without it this is another request, not a retry.
            self._temperature = None
            return await self._ask(part)

    async def _ask(self, part: SummaryPart) -> SummaryDraft:
        defaults: ModelOptions | None = getattr(self.model, "options", None)
        request = summary_request(part, self.texts, self._temperature, defaults)
        response = await self.model.generate(request)
        return SummaryDraft(
            text=response.text,
            finish_reason=response.finish_reason,
            usage=response.usage,
            model=response.model or self.model.name,
            provider=response.provider or self.model.provider,
            has_calls=bool(response.tool_calls),
            refused=response.finish_reason in (FinishReason.REFUSAL, FinishReason.CONTENT_FILTER),
        )


def summary_request(
    part: SummaryPart,
    texts: CompactionTexts,
    temperature: float | None = 0.0,
    defaults: ModelOptions | None = None,
) -> ModelRequest:
    """Return the request a model gets for one pass: plain text in one user message, no tools."""
    output = math.ceil(OUTPUT_ROOM * part.max_tokens)
    options = ModelOptions(max_output_tokens=output, temperature=temperature).over(defaults)
    system, prompt = _prompts(part, texts)
    return ModelRequest((user(prompt),), (system,), options=options.replace(response_format=None))


def prompt_texts(texts: CompactionTexts, focus: str = "") -> Sequence[str]:
    """Return the fixed texts of a pass, for whoever must leave room for them."""
    return _prompts(SummaryPart("", "", 0, focus), texts)


def _prompts(part: SummaryPart, texts: CompactionTexts) -> tuple[str, str]:
    system = texts.summariser_system.format(max_tokens=part.max_tokens, focus=part.focus)
    prompt = texts.summariser_user.format(notes=part.notes, transcript=part.transcript)
    return system.rstrip(), prompt


def _about_temperature(error: ModelError) -> bool:
    return error.kind == "invalid_request" and "temperature" in str(error).lower()
