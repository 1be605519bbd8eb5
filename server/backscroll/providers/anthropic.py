"""Models that speak Anthropic's messages: Anthropic itself, gateways, and local servers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from backscroll.kernel.content import Part
from backscroll.kernel.model import ModelOptions, ModelRequest, ModelResponse
from backscroll.providers.anthropic_parts import VENDOR, PartRules
from backscroll.providers.anthropic_request import COUNTER, ENCODER, default_output, left_out
from backscroll.providers.anthropic_response import read_body, read_count
from backscroll.providers.anthropic_stream import StreamReader
from backscroll.providers.http_model import HttpModel
from backscroll.providers.profiles import provider_at

VERSION = "2023-06-01"


class AnthropicModel(HttpModel):
    """One model behind a messages endpoint; reads ANTHROPIC_API_KEY and ANTHROPIC_BASE_URL."""

    encoder = ENCODER
    route = "/v1/messages"
    models_route = "/v1/models"
    public_url = "https://api.anthropic.com"
    env = "ANTHROPIC"

    def __init__(self, name: str, *, betas: Sequence[str] = (), **options: Any) -> None:
        """Take `betas`, sent as header, and what every model of an endpoint takes."""
        super().__init__(name, **options)
        self._auth["anthropic-version"] = VERSION
        if betas:
            self._auth["anthropic-beta"] = ",".join(betas)

    @property
    def default_output(self) -> int:
        """The maximum output that is sent where nobody asks for one."""
        return default_output(self.profile)

    def refuses(self, part: Part, role: str) -> str | None:
        """Return why this wire cannot send a part in a message of this role, or None."""
        return PartRules(self.profile, self.provider).refuses(part, role)

    async def count_tokens(self, request: ModelRequest) -> int:
        """Return the size of a request's prompt as the provider counts it; costs one question.

        Raises nothing but ModelError.
        """
        body = COUNTER.encode(request, self.profile, self._config(), False)
        url = self.endpoint.url(f"{self.route}/count_tokens")
        reply = await self.transport.request("POST", url, self._headers(request), body)
        return read_count(reply.text, self._source)

    def _provider_at(self, host: str) -> str:
        known = provider_at(host)
        return VENDOR if known == "generic" else known

    def _read(self, text: str) -> ModelResponse:
        return read_body(text, self._source, self._mint)

    def _reader(self, request: ModelRequest) -> StreamReader:
        return StreamReader(self._source, self._mint, request.texts.incomplete_stream)

    def _left_out(self, options: ModelOptions) -> list[str]:
        return left_out(options, self.profile)
