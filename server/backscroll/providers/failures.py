"""What went wrong with a model request, as one ModelError; pure, so that it can be tabled."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Any

import httpx

from backscroll.kernel.errors import (
    MODEL_KINDS,
    ModelError,
    ModelErrorKind,
    Refusal,
    RefusalClass,
    redact,
)
from backscroll.kernel.model import Partial
from backscroll.providers.overflow import recognise

MAX_MESSAGE_CHARS = 2000

_BY_REFUSAL: dict[RefusalClass, ModelErrorKind] = {
    "overflow": "context_overflow",
    "sum": "context_overflow",
    "overflow_bytes": "context_overflow",
    "over_tpm": "rate_limit",
    "heal": "invalid_request",
}

_BY_STATUS: dict[int, ModelErrorKind] = {
    401: "auth",
    403: "auth",
    408: "timeout",
    409: "provider",
    425: "provider",
    429: "rate_limit",
}

_BY_CODE: dict[str, ModelErrorKind] = {
    "rate_limit_exceeded": "rate_limit",
    "rate_limit_error": "rate_limit",
    "insufficient_quota": "rate_limit",
    "authentication_error": "auth",
    "invalid_api_key": "auth",
    "permission_error": "auth",
    "permission_denied": "auth",
    "overloaded_error": "provider",
    "api_error": "provider",
    "server_error": "provider",
    "timeout": "timeout",
    "timeout_error": "timeout",
    "invalid_request_error": "invalid_request",
    "invalid_request": "invalid_request",
    "not_found_error": "invalid_request",
    "model_not_found": "invalid_request",
    "content_filter": "invalid_request",
    "badrequesterror": "invalid_request",
}

_SPENT = frozenset({"insufficient_quota"})

_TIMEOUTS: tuple[tuple[type[Exception], str], ...] = (
    (httpx.ConnectTimeout, "no connection within {connect_s:g} s"),
    (httpx.ReadTimeout, "no answer within {read_s:g} s"),
    (httpx.WriteTimeout, "the request could not be sent within {write_s:g} s"),
    (httpx.PoolTimeout, "no free connection within {pool_s:g} s"),
)


@dataclass(frozen=True, slots=True)
class Timeouts:
    """How long a request may wait for each step; `read_s` is between two bytes.

    A stream is read on for `linger_s` after its finish reason: usage may come last.
    """

    connect_s: float = 10.0
    read_s: float = 120.0
    write_s: float = 30.0
    pool_s: float = 10.0
    linger_s: float = 5.0


@dataclass(frozen=True, slots=True)
class Source:
    """Whose answer it is, and which texts must never leave: keys, passwords."""

    provider: str
    host: str = ""
    secrets: tuple[str, ...] = ()

    def clean(self, text: str) -> str:
        """Return the text without secrets, cut to what a message may hold."""
        return redact(text, self.secrets)[:MAX_MESSAGE_CHARS]


def from_answer(
    status: int, text: str, source: Source, *, retry_after_s: float | None = None
) -> ModelError:
    """Return the error an HTTP answer amounts to; the size recogniser is asked first."""
    body = _parsed(text)
    refusal = recognise(status, text)
    kind = _BY_REFUSAL.get(refusal.cls) or _kind_of_status(status)
    message = _message(body) or text.strip() or f"HTTP {status} error"
    if 300 <= status < 400:
        message = f"expected an answer, got HTTP {status}: a redirect, which is not followed"
    return _error(kind, message, source, refusal, _codes(body), status, retry_after_s)


def from_error(
    value: Any,
    source: Source,
    *,
    partial: Partial | None = None,
    otherwise: ModelErrorKind = "provider",
) -> ModelError:
    """Return the error that an error object inside a successful answer or a stream amounts to.

    `value` is what the member `error` holds, or the whole event; `otherwise` is the kind of one
    whose code says nothing.
    """
    refusal = recognise(200, {"error": value})
    codes = _codes({"error": value})
    kind = _BY_REFUSAL.get(refusal.cls) or _kind_of_codes(codes) or otherwise
    message = _message({"error": value}) or _as_text(value) or "the provider reported an error"
    return _error(kind, message, source, refusal, codes, None, None, partial)


def from_exception(
    error: Exception, source: Source, timeouts: Timeouts, partial: Partial | None = None
) -> ModelError:
    """Return what an exception of the HTTP client amounts to; a ModelError comes back as it is."""
    if isinstance(error, ModelError):
        return error
    kind, message = _of_exception(error, timeouts)
    text = source.clean(f"{source.host or source.provider}: {message}")
    return ModelError(kind, text, provider=source.provider, partial=partial, cause=error)


def broken_off(source: Source, text: str, partial: Partial) -> ModelError:
    """Return the error of a reply that ended before its finish marker.

    It is worth another try as long as nothing of it was delivered.
    """
    return ModelError(
        "incomplete_stream",
        text,
        retryable=partial == Partial(),
        provider=source.provider,
        partial=partial,
    )


def retry_after(headers: Mapping[str, str], now: float) -> float | None:
    """Return how many seconds a server asks to wait: in seconds, milliseconds or as a date."""
    for name in ("retry-after-ms", "x-ms-retry-after-ms"):
        if (value := _number(headers.get(name))) is not None:
            return value / 1000
    given = headers.get("retry-after")
    if (value := _number(given)) is not None:
        return value
    try:
        return max(0.0, parsedate_to_datetime(given or "").timestamp() - now)
    except (ValueError, TypeError, OverflowError):
        return None


def _error(
    kind: ModelErrorKind,
    message: str,
    source: Source,
    refusal: Refusal,
    codes: Sequence[str],
    status: int | None,
    retry_after_s: float | None,
    partial: Partial | None = None,
) -> ModelError:
    final = refusal.cls == "over_tpm" or any(code in _SPENT for code in codes)
    return ModelError(
        kind,
        source.clean(message),
        retryable=MODEL_KINDS[kind] and not final,
        status=status,
        provider=source.provider,
        retry_after_s=retry_after_s,
        partial=partial,
        refusal=refusal,
    )


def _kind_of_status(status: int) -> ModelErrorKind:
    if status in _BY_STATUS:
        return _BY_STATUS[status]
    return "provider" if status >= 500 else "invalid_request"


def _kind_of_codes(codes: Sequence[str]) -> ModelErrorKind | None:
    """Read codes and types, a code that is an HTTP status among them."""
    for code in codes:
        if code in _BY_CODE:
            return _BY_CODE[code]
        if code.isascii() and code.isdigit() and 400 <= int(code[:6]) < 600:
            return _kind_of_status(int(code))
    return None


def _codes(body: Any) -> list[str]:
    """Return the codes and types that a body or its error object names, codes first."""
    inner = body.get("error") if isinstance(body, Mapping) else None
    places = [place for place in (inner, body) if isinstance(place, Mapping)]
    found = [place.get(key) for key in ("code", "type", "status") for place in places]
    return [str(value).lower() for value in found if isinstance(value, str | int)]


def _message(body: Any) -> str:
    """Return the first found of error.message, error as text, message, detail."""
    if not isinstance(body, Mapping):
        return ""
    error = body.get("error")
    inner = error.get("message") if isinstance(error, Mapping) else error
    for value in (inner, body.get("message"), body.get("detail")):
        if text := _as_text(value):
            return text
    return ""


def _as_text(value: Any) -> str:
    if isinstance(value, str):
        return value.strip()
    return json.dumps(value, ensure_ascii=False, default=str) if value else ""


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _of_exception(error: Exception, timeouts: Timeouts) -> tuple[ModelErrorKind, str]:
    for cls, message in _TIMEOUTS:
        if isinstance(error, cls):
            return "timeout", message.format(
                connect_s=timeouts.connect_s,
                read_s=timeouts.read_s,
                write_s=timeouts.write_s,
                pool_s=timeouts.pool_s,
            )
    if isinstance(error, httpx.DecodingError):
        return "parse", f"the answer cannot be decoded: {error}"
    if isinstance(error, httpx.TransportError) and not isinstance(
        error, httpx.LocalProtocolError | httpx.UnsupportedProtocol
    ):
        return "network", str(error) or type(error).__name__
    return "invalid_request", str(error) or type(error).__name__


def _number(value: str | None) -> float | None:
    try:
        found = float(value or "")
    except ValueError:
        return None
    return found if 0 <= found < float("inf") else None
