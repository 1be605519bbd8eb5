"""Models that speak OpenAI's chat completions: OpenAI itself and everything that imitates it."""

from __future__ import annotations

import logging
import os
import ssl
from collections.abc import AsyncIterator, Callable
from typing import Any

from backscroll.kernel.errors import AssemblyError, ModelError
from backscroll.kernel.model import Delta, ModelOptions, ModelProfile, ModelRequest, ModelResponse
from backscroll.kernel.ports import Ids, RandomIds
from backscroll.kernel.texts import Texts
from backscroll.providers.endpoint import authorization, clean_key, read_endpoint, secrets_of
from backscroll.providers.failures import Source, Timeouts
from backscroll.providers.openai_parts import PartRules
from backscroll.providers.openai_request import WIRE, WireConfig, encode, left_out
from backscroll.providers.openai_response import read_body
from backscroll.providers.openai_setup import setup_of
from backscroll.providers.openai_stream import StreamReader
from backscroll.providers.profiles import profile_for, provider_at, vendor
from backscroll.providers.reply import as_deltas
from backscroll.providers.transport import Incoming, Transport

PUBLIC_URL = "https://api.openai.com/v1"
ROUTE = "/chat/completions"

DRAIN_S = 0.25
"""How long a stream is read on when all of it has come: an ended body can be followed by another
request on its connection."""

_log = logging.getLogger(__name__)


class OpenAIModel:
    """One model behind a chat completions endpoint."""

    wire = WIRE

    def __init__(
        self,
        name: str,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        provider: str | None = None,
        profile: ModelProfile | None = None,
        options: ModelOptions | None = None,
        ids: Ids | None = None,
        timeouts: Timeouts | None = None,
        trust_env: bool = True,
        verify: ssl.SSLContext | bool = True,
    ) -> None:
        """What is not given comes from OPENAI_BASE_URL, OPENAI_API_KEY and the catalog.

        Raises `invalid_option` for a wrong URL, and for the public API without a key.
        """
        base_url = base_url or os.environ.get("OPENAI_BASE_URL") or PUBLIC_URL
        key = clean_key(api_key or os.environ.get("OPENAI_API_KEY"), "OPENAI_API_KEY")
        if not name or not isinstance(name, str):
            message = f"model: expected the name of a model, got {name!r}"
            raise AssemblyError("invalid_option", message, "model")
        self.endpoint = read_endpoint(base_url, ROUTE)
        if key is None and self.endpoint.base == PUBLIC_URL:
            message = (
                f"model {name!r}: there is no key for {PUBLIC_URL}. Set OPENAI_API_KEY, or "
                "OPENAI_BASE_URL for a server of your own."
            )
            raise AssemblyError("invalid_option", message, "OPENAI_API_KEY")
        self.name = name
        self.provider = provider or provider_at(self.endpoint.host)
        data = vendor(self.provider)
        self.profile = profile or profile_for(self.provider, name)
        self.options = options or ModelOptions()
        self._mint = _minter(ids or RandomIds())
        self._auth = authorization(self.endpoint, key, data.auth)
        secrets = secrets_of(self.endpoint, key, self.options.extra_headers)
        self._source = Source(self.provider, self.endpoint.host, secrets)
        self.timeouts = timeouts or Timeouts()
        self.transport = Transport(self._source, self.timeouts, trust_env=trust_env, verify=verify)
        self._left_out: set[str] = set()

    def __repr__(self) -> str:
        """Show what the model is, without its key."""
        return f"OpenAIModel({self.name!r}, base_url={self.endpoint.base!r})"

    def encode(self, request: ModelRequest, stream: bool) -> bytes:
        """Return the request body, byte for byte as it is sent."""
        return encode(request, self.profile, self._config(), stream)

    def setup(self, texts: Texts | None = None) -> dict[str, Any]:
        """Return what `encode` reads beside the request, as JSON values, without keys.

        `wires.encode_from_setup` writes the same bytes from it. Pass the request's texts where
        they are not the default ones.
        """
        return setup_of(self.profile, self._config(), texts or Texts())

    def refuses(self, part: Any, role: str) -> str | None:
        """Return why this wire cannot send a part in a message of this role, or None."""
        return PartRules(self.profile, self.provider).refuses(part, role)

    async def generate(self, request: ModelRequest) -> ModelResponse:
        """Return the complete reply; raises nothing but ModelError."""
        body = self.encode(request, False)
        reply = await self.transport.request("POST", self._url, self._headers(request), body)
        return read_body(reply.text, self._source, self._mint)

    async def stream(self, request: ModelRequest) -> AsyncIterator[Delta]:
        """Yield deltas, then one `Finished`; raises nothing but ModelError.

        Closing it early closes the connection.
        """
        offered = (tool.name for tool in request.tools)
        reader = StreamReader(self._source, offered, self._mint, request.texts.incomplete_stream)
        body, headers = self.encode(request, True), self._headers(request)
        headers |= {"accept": "text/event-stream", "accept-encoding": "identity"}
        async with self.transport.open("POST", self._url, headers, body) as incoming:
            if _is_whole(incoming):
                text = await incoming.text()
                whole = read_body(text, self._source, self._mint) if text else None
                for delta in reader.finish() if whole is None else as_deltas(whole):
                    yield delta
                return
            try:
                while (batch := await incoming.pull()) is not None:
                    for data in batch:
                        for delta in reader.feed(data):
                            yield delta
                    if reader.finished:
                        incoming.linger(DRAIN_S if reader.done else self.timeouts.linger_s)
            except ModelError as error:
                error.partial = error.partial or reader.partial()
                raise
        for delta in reader.finish():
            yield delta

    async def aclose(self) -> None:
        """Close the connections of this event loop."""
        await self.transport.aclose()

    def auth_headers(self) -> dict[str, str]:
        """Return the headers that carry the key; not for showing."""
        return dict(self._auth)

    @property
    def _url(self) -> str:
        return self.endpoint.url(ROUTE)

    def _config(self) -> WireConfig:
        return WireConfig(self.name, self.provider, self.options)

    def _headers(self, request: ModelRequest) -> dict[str, str]:
        options = request.options.over(self.options)
        new = set(left_out(options, self.profile)) - self._left_out
        if new:
            self._left_out |= new
            _log.debug(
                "model %r: not sent, its wire does not know them: %s", self.name, sorted(new)
            )
        given = {name.lower(): value for name, value in (options.extra_headers or {}).items()}
        return {"content-type": "application/json", **self._auth, **given}


def _is_whole(incoming: Incoming) -> bool:
    """Say whether a server answers a streaming request with one body: JSON, or a web page."""
    kind = incoming.content_type
    return kind in ("application/json", "text/html") or kind.endswith("+json")


def _minter(ids: Ids) -> Callable[[], str]:
    return lambda: ids.new("call")
