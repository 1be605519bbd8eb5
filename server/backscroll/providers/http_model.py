"""A model behind an HTTP endpoint: the shell around a pure wire."""

from __future__ import annotations

import logging
import os
import ssl
from collections.abc import AsyncIterator, Callable
from typing import Any, ClassVar, Protocol

from backscroll.kernel.content import Part
from backscroll.kernel.errors import AssemblyError, ModelError
from backscroll.kernel.model import (
    Delta,
    ModelOptions,
    ModelProfile,
    ModelRequest,
    ModelResponse,
    Partial,
)
from backscroll.kernel.ports import Ids, RandomIds
from backscroll.kernel.texts import Texts
from backscroll.providers.endpoint import authorization, clean_key, read_endpoint, secrets_of
from backscroll.providers.failures import Source, Timeouts
from backscroll.providers.profiles import profile_for, provider_at, vendor
from backscroll.providers.reply import as_deltas
from backscroll.providers.transport import Incoming, Transport
from backscroll.providers.wire import Encoder, WireConfig

DRAIN_S = 0.25
"""How long a stream is read on when all of it has come: an ended body can be followed by another
request on its connection."""

Mint = Callable[[], str]

_log = logging.getLogger(__name__)


class Reader(Protocol):
    """What turns the events of one stream into deltas."""

    @property
    def finished(self) -> bool:
        """Say whether a finish marker was seen."""
        ...

    @property
    def done(self) -> bool:
        """Say whether nothing is expected to follow."""
        ...

    def feed(self, data: str) -> list[Delta]:
        """Return the deltas of one event."""
        ...

    def finish(self) -> list[Delta]:
        """Return the last deltas, or raise `incomplete_stream`."""
        ...

    def partial(self) -> Partial:
        """Return what has arrived so far."""
        ...


class HttpModel:
    """One model of one endpoint; a subclass says which wire it speaks."""

    encoder: ClassVar[Encoder]
    route: ClassVar[str]
    models_route: ClassVar[str]
    public_url: ClassVar[str]
    env: ClassVar[str]
    """The beginning of its settings' names in the environment."""

    def __init__(
        self,
        name: str,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        provider: str | None = None,
        profile: ModelProfile | None = None,
        options: ModelOptions | None = None,
        auth: str | None = None,
        ids: Ids | None = None,
        timeouts: Timeouts | None = None,
        trust_env: bool = True,
        verify: ssl.SSLContext | bool = True,
    ) -> None:
        """What is not given comes from the environment and the catalog.

        `auth` is `bearer` or the name of the header that carries the key. Raises `invalid_option`
        for a wrong URL, and for the public API without a key.
        """
        key_name, url_name = f"{self.env}_API_KEY", f"{self.env}_BASE_URL"
        key = clean_key(api_key or os.environ.get(key_name), key_name)
        if not name or not isinstance(name, str):
            message = f"model: expected the name of a model, got {name!r}"
            raise AssemblyError("invalid_option", message, "model")
        url = base_url or os.environ.get(url_name) or self.public_url
        self.endpoint = read_endpoint(url, self.route)
        if key is None and self.endpoint.base == self.public_url:
            message = (
                f"model {name!r}: there is no key for {self.public_url}. Set {key_name}, or "
                f"{url_name} for a server of your own."
            )
            raise AssemblyError("invalid_option", message, key_name)
        self.name = name
        self.provider = provider or self._provider_at(self.endpoint.host)
        self.profile = profile or profile_for(self.provider, name)
        self.options = options or ModelOptions()
        self.timeouts = timeouts or Timeouts()
        self._auth = authorization(self.endpoint, key, auth or vendor(self.provider).auth)
        secrets = secrets_of(self.endpoint, key, self.options.extra_headers)
        self._source = Source(self.provider, self.endpoint.host, secrets)
        self.transport = Transport(self._source, self.timeouts, trust_env=trust_env, verify=verify)
        self._ids = ids or RandomIds()
        self._told: set[str] = set()

    def __repr__(self) -> str:
        """Show what the model is, without its key."""
        return f"{type(self).__name__}({self.name!r}, base_url={self.endpoint.base!r})"

    @property
    def wire(self) -> str:
        """Name and version of the wire."""
        return self.encoder.wire

    def encode(self, request: ModelRequest, stream: bool) -> bytes:
        """Return the request body, byte for byte as it is sent."""
        return self.encoder.encode(request, self.profile, self._config(), stream)

    def setup(self, texts: Texts | None = None) -> dict[str, Any]:
        """Return what `encode` reads beside the request, as JSON values, without keys.

        `wires.encode_from_setup` writes the same bytes from it. Pass the request's texts where
        they are not the default ones.
        """
        return self.encoder.setup(self.profile, self._config(), texts or Texts())

    def refuses(self, part: Part, role: str) -> str | None:
        """Return why this wire cannot send a part in a message of this role, or None."""
        raise NotImplementedError

    async def generate(self, request: ModelRequest) -> ModelResponse:
        """Return the complete reply; raises nothing but ModelError."""
        body = self.encode(request, False)
        reply = await self.transport.request("POST", self._url, self._headers(request), body)
        return self._read(reply.text)

    async def stream(self, request: ModelRequest) -> AsyncIterator[Delta]:
        """Yield deltas, then one `Finished`; raises nothing but ModelError.

        Closing it early closes the connection.
        """
        reader = self._reader(request)
        body, headers = self.encode(request, True), self._headers(request)
        headers |= {"accept": "text/event-stream", "accept-encoding": "identity"}
        async with self.transport.open("POST", self._url, headers, body) as incoming:
            if _is_whole(incoming):
                text = await incoming.text()
                for delta in as_deltas(self._read(text)) if text else reader.finish():
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

    def _provider_at(self, host: str) -> str:
        return provider_at(host)

    def _read(self, text: str) -> ModelResponse:
        """Return the reply of a body that came whole."""
        raise NotImplementedError

    def _reader(self, request: ModelRequest) -> Reader:
        """Return what reads the stream of one request."""
        raise NotImplementedError

    def _left_out(self, options: ModelOptions) -> list[str]:
        """Return the options that are set and that this wire does not send."""
        raise NotImplementedError

    def _mint(self) -> str:
        return self._ids.new("call")

    @property
    def _url(self) -> str:
        return self.endpoint.url(self.route)

    def _config(self) -> WireConfig:
        return WireConfig(self.name, self.provider, self.options)

    def _headers(self, request: ModelRequest) -> dict[str, str]:
        options = request.options.over(self.options)
        new = sorted(set(self._left_out(options)) - self._told)
        if new:
            self._told.update(new)
            _log.debug("model %r: not sent, its wire does not know them: %s", self.name, new)
        given = {name.lower(): value for name, value in (options.extra_headers or {}).items()}
        return {"content-type": "application/json", **self._auth, **given}


def _is_whole(incoming: Incoming) -> bool:
    """Say whether a server answers a streaming request with one body: JSON, or a web page."""
    kind = incoming.content_type
    return kind in ("application/json", "text/html") or kind.endswith("+json")
