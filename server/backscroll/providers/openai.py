"""Models that speak OpenAI's chat completions: OpenAI itself and everything that imitates it."""

from __future__ import annotations

from backscroll.kernel.content import Part
from backscroll.kernel.model import ModelOptions, ModelRequest, ModelResponse
from backscroll.providers.http_model import HttpModel
from backscroll.providers.openai_parts import PartRules
from backscroll.providers.openai_request import ENCODER, left_out
from backscroll.providers.openai_response import read_body
from backscroll.providers.openai_stream import StreamReader


class OpenAIModel(HttpModel):
    """One model behind a chat completions endpoint; reads OPENAI_API_KEY and OPENAI_BASE_URL."""

    encoder = ENCODER
    route = "/chat/completions"
    models_route = "/models"
    public_url = "https://api.openai.com/v1"
    env = "OPENAI"

    def refuses(self, part: Part, role: str) -> str | None:
        """Return why this wire cannot send a part in a message of this role, or None."""
        return PartRules(self.profile, self.provider).refuses(part, role)

    def _read(self, text: str) -> ModelResponse:
        return read_body(text, self._source, self._mint)

    def _reader(self, request: ModelRequest) -> StreamReader:
        offered = (tool.name for tool in request.tools)
        return StreamReader(self._source, offered, self._mint, request.texts.incomplete_stream)

    def _left_out(self, options: ModelOptions) -> list[str]:
        return left_out(options, self.profile)
