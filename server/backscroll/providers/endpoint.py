"""Where a provider is reached: a base URL, read once, its credentials kept apart."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import parse_qsl, quote, unquote, urlsplit

from backscroll.kernel.errors import AssemblyError

_TELLING = ("auth", "key", "token", "secret", "cookie", "signature")

MIN_SECRET_CHARS = 8
"""Shorter keys are placeholders of keyless servers; replacing them would garble messages."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A base URL without credentials and query; its repr is safe to show."""

    base: str
    host: str
    query: str = field(default="", repr=False)
    credentials: str | None = field(default=None, repr=False)

    def url(self, path: str) -> str:
        """Return the URL of a path below the base."""
        return f"{self.base}{path}{self.query}"

    def root(self, path: str) -> str:
        """Return the URL of a path at the root of the server."""
        parts = urlsplit(self.base)
        return f"{parts.scheme}://{parts.netloc}{path}"


def read_endpoint(base_url: str, route: str) -> Endpoint:
    """Read a base URL; a user and password become credentials, a pasted `route` is cut off.

    Raises `invalid_option` saying what a base URL looks like.
    """
    parts = urlsplit(base_url.strip())
    try:
        host, port = parts.hostname, parts.port
    except ValueError:
        host, port = None, None
    if parts.scheme not in ("http", "https") or not host:
        shown = "a URL with a fault" if "@" in base_url else repr(base_url)
        message = f"base_url: expected http://… or https://…, got {shown}"
        raise AssemblyError("invalid_option", message, "base_url")
    name = f"[{host}]" if ":" in host else host
    place = name if port is None else f"{name}:{port}"
    path = parts.path.rstrip("/").removesuffix(route)
    credentials = None
    if parts.username is not None:
        credentials = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
    query = f"?{parts.query}" if parts.query else ""
    return Endpoint(f"{parts.scheme}://{place}{path}", host, query, credentials)


def authorization(endpoint: Endpoint, key: str | None, style: str) -> dict[str, str]:
    """Return the header that carries the key, or the URL's own credentials; none without."""
    if key is not None:
        return {"authorization": f"Bearer {key}"} if style == "bearer" else {style: key}
    if endpoint.credentials is not None:
        text = base64.b64encode(endpoint.credentials.encode()).decode()
        return {"authorization": f"Basic {text}"}
    return {}


def clean_key(key: str | None, where: str) -> str | None:
    """Return a key without the blanks around it, None when it is empty.

    Raises `invalid_option`, without showing the key, when no header could carry it.
    """
    key = (key or "").strip()
    if not key:
        return None
    if not key.isascii() or not key.isprintable():
        message = f"{where}: expected printable ASCII characters; was the key copied whole?"
        raise AssemblyError("invalid_option", message, where)
    return key


def secrets_of(
    endpoint: Endpoint, key: str | None, headers: Mapping[str, str] | None
) -> tuple[str, ...]:
    """Return the texts that no message may show."""
    found = [key, endpoint.credentials, (endpoint.credentials or "").partition(":")[2]]
    for name, value in (headers or {}).items():
        if any(word in name.lower() for word in _TELLING):
            found += [value, value.removeprefix("Bearer ")]
    for name, value in parse_qsl(endpoint.query.removeprefix("?")):
        if any(word in name.lower() for word in _TELLING):
            found += [value, quote(value, safe="")]
    return tuple(text for text in found if text and len(text) >= MIN_SECRET_CHARS)
