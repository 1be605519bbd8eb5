"""HTTP to a model provider: connections, timeouts, limits, and bodies as events."""

from __future__ import annotations

import asyncio
import contextlib
import os
import ssl
import time
import weakref
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, cast

import httpx

from backscroll.kernel.errors import ModelError
from backscroll.providers.failures import (
    Source,
    Timeouts,
    from_answer,
    from_exception,
    retry_after,
)
from backscroll.providers.sse import SseParser

MAX_BODY_BYTES = 32 * 1024 * 1024
MAX_ERROR_BYTES = 1024 * 1024
MAX_CONNECTIONS = 1000
KEEPALIVE_S = 4.0

_CERTIFICATES = ("SSL_CERT_FILE", "SSL_CERT_DIR")
_CLOSED_WITHOUT_A_BYTE = (httpx.RemoteProtocolError, httpx.ReadError, httpx.WriteError)


@dataclass(frozen=True, slots=True)
class Reply:
    """A complete body."""

    status: int
    headers: Mapping[str, str]
    text: str


class Transport:
    """The connections of one model, one pool for each event loop."""

    def __init__(
        self,
        source: Source,
        timeouts: Timeouts | None = None,
        *,
        trust_env: bool = True,
        verify: ssl.SSLContext | bool = True,
        max_connections: int = MAX_CONNECTIONS,
        max_body_bytes: int = MAX_BODY_BYTES,
    ) -> None:
        """Proxy and certificate settings of the environment are used unless told otherwise."""
        self.source, self.timeouts = source, timeouts or Timeouts()
        self.max_body_bytes = max_body_bytes
        self._max_connections = max_connections
        self._trust_env, self._verify = trust_env, verify
        # A pool belongs to the loop it was made on; it goes away with it.
        self._clients: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, httpx.AsyncClient] = (
            weakref.WeakKeyDictionary()
        )

    async def request(
        self,
        method: str,
        url: str,
        headers: Mapping[str, str],
        body: bytes | None = None,
        timeout_s: float | None = None,
    ) -> Reply:
        """Return the whole answer; raises the ModelError of a refusal or of the connection."""
        async with self.open(method, url, headers, body, timeout_s) as incoming:
            return Reply(incoming.status, incoming.headers, await incoming.text())

    @contextlib.asynccontextmanager
    async def open(
        self,
        method: str,
        url: str,
        headers: Mapping[str, str],
        body: bytes | None = None,
        timeout_s: float | None = None,
    ) -> AsyncIterator[Incoming]:
        """Give an answer whose body is still to come; leaving closes a body that has not ended.

        Raises the ModelError of a refusal or of the connection.
        """
        incoming = Incoming(await self._send(method, url, headers, body, timeout_s), self)
        try:
            if not 200 <= incoming.status < 300:
                raise await incoming.refusal()
            yield incoming
        finally:
            await incoming.aclose()

    async def aclose(self) -> None:
        """Close the connections of this loop."""
        client = self._clients.pop(asyncio.get_running_loop(), None)
        if client is not None:
            await client.aclose()

    async def _send(
        self,
        method: str,
        url: str,
        headers: Mapping[str, str],
        body: bytes | None,
        timeout_s: float | None,
    ) -> httpx.Response:
        client = await self._opened()
        fresh = _Fresh()
        try:
            request = client.build_request(
                method,
                url,
                content=body,
                headers=dict(headers),
                timeout=client.timeout if timeout_s is None else timeout_s,
                extensions={"trace": fresh},
            )
            try:
                return await client.send(request, stream=True)
            except _CLOSED_WITHOUT_A_BYTE:
                if fresh.connected:
                    raise
                # The server gave up an idle connection just as we used it: not a failure of its.
                return await client.send(request, stream=True)
        except (httpx.HTTPError, httpx.InvalidURL, UnicodeError) as error:
            raise self.error(error) from None

    def error(self, error: Exception) -> ModelError:
        """Return what an exception of the HTTP client amounts to."""
        return from_exception(error, self.source, self.timeouts)

    async def _opened(self) -> httpx.AsyncClient:
        """Return this loop's pool; raises a sentence when proxy or certificate settings fail."""
        loop = asyncio.get_running_loop()
        try:
            verify = self._verify
            if verify is True and loop not in self._clients:
                files = (os.environ.get(name) for name in _CERTIFICATES)
                verify = await asyncio.to_thread(_tls_context, self._trust_env, *files)
            return self._clients.get(loop) or self._clients.setdefault(loop, self._pool(verify))
        except (OSError, ValueError, ImportError, httpx.InvalidURL) as error:
            text = f"the proxy or certificate settings of the environment do not work: {error}"
            raise ModelError(
                "invalid_request", self.source.clean(text), provider=self.source.provider
            ) from error

    def _pool(self, verify: ssl.SSLContext | bool) -> httpx.AsyncClient:
        times = self.timeouts
        return httpx.AsyncClient(
            timeout=httpx.Timeout(
                connect=times.connect_s, read=times.read_s, write=times.write_s, pool=times.pool_s
            ),
            limits=httpx.Limits(
                max_connections=self._max_connections, keepalive_expiry=KEEPALIVE_S
            ),
            follow_redirects=False,
            trust_env=self._trust_env,
            verify=verify,
        )


@lru_cache(maxsize=4)
def _tls_context(trust_env: bool, cert_file: str | None, cert_dir: str | None) -> ssl.SSLContext:
    """Load the trusted certificates, which takes a tenth of a second, once for all models."""
    return httpx.create_ssl_context(trust_env=trust_env)


class Incoming:
    """An answer whose body is being read."""

    def __init__(self, response: httpx.Response, transport: Transport) -> None:
        self.status = response.status_code
        self.headers: Mapping[str, str] = response.headers
        self.empty = True
        self.broken: Exception | None = None
        self._response, self._transport = response, transport
        self._chunks = response.aiter_bytes()
        self._parser = SseParser()
        self._ended = False
        self._deadline: float | None = None

    @property
    def content_type(self) -> str:
        """The media type of the body, without parameters, empty if the server names none."""
        return self.headers.get("content-type", "").split(";")[0].strip().lower()

    async def text(self) -> str:
        """Return the whole body as text; raises `parse` when it is larger than the limit."""
        limit = self._transport.max_body_bytes
        body = await self._read(limit)
        if len(body) > limit:
            message = f"expected a body of at most {limit} bytes, got more"
            raise ModelError("parse", message, provider=self._transport.source.provider)
        if self.broken is not None:
            raise self._transport.error(self.broken)
        return body.decode("utf-8", "replace")

    async def pull(self) -> list[str] | None:
        """Return the data of the next events, None after the last one.

        `broken` then says whether the body was cut off. A read timeout raises `timeout`, unless
        `linger` was called.
        """
        if self._ended:
            return None
        chunk = await self._next()
        if chunk is not None:
            return self._parser.feed(chunk)
        self._ended = True
        return self._parser.finish()

    def linger(self, seconds: float) -> None:
        """Read on for at most that long; however the body ends from now on is fine."""
        end = asyncio.get_running_loop().time() + seconds
        self._deadline = end if self._deadline is None else min(end, self._deadline)

    async def refusal(self) -> ModelError:
        """Return the error that this answer amounts to, by as much of it as can be read."""
        body = b""
        with contextlib.suppress(ModelError):
            body = await self._read(MAX_ERROR_BYTES)
        wait = retry_after(self.headers, time.time())
        text = body.decode("utf-8", "replace")
        return from_answer(self.status, text, self._transport.source, retry_after_s=wait)

    async def aclose(self) -> None:
        """Let go of the connection, closing it when the body has not ended."""
        try:
            await cast("AsyncGenerator[bytes, None]", self._chunks).aclose()
        finally:
            await self._response.aclose()

    async def _read(self, limit: int) -> bytes:
        """Return the body, or a little more than the limit of it."""
        pieces: list[bytes] = []
        size = 0
        while size <= limit and (chunk := await self._next()) is not None:
            size += len(chunk)
            pieces.append(chunk)
        return b"".join(pieces)

    async def _next(self) -> bytes | None:
        """Return the next piece of the body, None at its end."""
        try:
            async with asyncio.timeout_at(self._deadline):
                chunk = await anext(self._chunks, None)
        except httpx.TimeoutException as error:
            if self._deadline is not None:
                return None
            raise self._transport.error(error) from None
        except (httpx.HTTPError, httpx.StreamError, TimeoutError) as error:
            self.broken = None if self._deadline is not None else error
            return None
        self.empty = self.empty and not chunk
        return chunk


class _Fresh:
    """Notices whether a request went out on a new connection."""

    connected = False

    async def __call__(self, event: str, info: Mapping[str, Any]) -> None:
        """Take one trace event of the HTTP client."""
        if event.endswith("connect_tcp.complete"):
            self.connected = True
