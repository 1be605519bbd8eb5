"""Error mapping: every way a request can fail has its kind."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest
from backscroll.kernel.errors import ModelError, ModelErrorKind
from backscroll.kernel.model import Partial
from backscroll.providers.failures import (
    Source,
    Timeouts,
    broken_off,
    from_answer,
    from_error,
    from_exception,
    retry_after,
)

SOURCE = Source("openai", "api.example.com", ("KEY-PROV-789",))


def answered(status: int, body: Any = "") -> ModelError:
    """Map an HTTP answer."""
    text = body if isinstance(body, str) else json.dumps(body)
    return from_answer(status, text, SOURCE)


@pytest.mark.parametrize(
    ("status", "kind", "retryable"),
    [
        (400, "invalid_request", False),
        (401, "auth", False),
        (403, "auth", False),
        (404, "invalid_request", False),
        (408, "timeout", True),
        (409, "provider", True),
        (425, "provider", True),
        (429, "rate_limit", True),
        (500, "provider", True),
        (503, "provider", True),
        (529, "provider", True),
        (301, "invalid_request", False),
    ],
)
def test_a_status_gives_a_kind(status: int, kind: ModelErrorKind, retryable: bool) -> None:
    """ERR1: each status has one kind, and says whether another try makes sense."""
    error = answered(status, {"error": {"message": "no"}})

    assert (error.kind, error.retryable, error.status) == (kind, retryable, status)
    assert error.provider == "openai"


def test_a_spent_quota_is_not_retried() -> None:
    """ERR1: 429 with `insufficient_quota` is a rate limit that no waiting lifts."""
    error = answered(429, {"error": {"message": "pay first", "code": "insufficient_quota"}})

    assert (error.kind, error.retryable) == ("rate_limit", False)


def test_a_request_above_the_minute_budget_is_not_retried() -> None:
    """`over_tpm` is a rate limit that waiting does not lift; the refusal is on the error."""
    body = {
        "error": {
            "message": "Request too large on tokens per min: Limit 10, Requested 20",
            "code": "rate_limit_exceeded",
        }
    }
    error = answered(413, body)

    assert (error.kind, error.retryable) == ("rate_limit", False)
    assert error.refusal is not None and error.refusal.cls == "over_tpm"


@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        (400, {"error": {"message": "zu lang", "code": "context_length_exceeded"}}, "overflow"),
        (413, "", "overflow_bytes"),
        (400, "max_tokens must be at least 1, got -3", "overflow"),
    ],
)
def test_size_is_asked_before_the_status(status: int, body: Any, kind: str) -> None:
    """compaction-06: a refusal over size is `context_overflow`, whatever its status."""
    error = answered(status, body)

    assert error.kind == "context_overflow" and not error.retryable
    assert error.refusal is not None and error.refusal.cls == kind


def test_a_malformed_history_is_an_invalid_request() -> None:
    """`heal` stays an invalid request; its class is on the error."""
    error = answered(400, {"error": {"message": "roles must alternate"}})

    assert error.kind == "invalid_request"
    assert error.refusal is not None and error.refusal.cls == "heal"


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"error": {"message": " first "}, "message": "second"}, "first"),
        ({"error": "as text", "message": "second"}, "as text"),
        ({"error": {}, "message": "second", "detail": "third"}, "second"),
        ({"detail": [{"loc": ["x"], "msg": "é"}]}, '[{"loc": ["x"], "msg": "é"}]'),
        ("plain text ", "plain text"),
        ('{"other": 1}', '{"other": 1}'),
        ("", "HTTP 502 error"),
    ],
)
def test_the_message_is_the_first_found(body: Any, message: str) -> None:
    """The message is error.message, error, message, detail, the body, or the status."""
    assert str(answered(502, body)) == message


def test_a_message_is_cut_and_free_of_secrets() -> None:
    """ERR4: a configured key that a body echoes becomes ***; long texts are cut (security-05)."""
    error = answered(401, {"error": {"message": "bad key KEY-PROV-789 " + "x" * 5000}})

    assert str(error).startswith("bad key *** xxx")
    assert len(str(error)) == 2000


@pytest.mark.parametrize(
    ("value", "kind", "retryable"),
    [
        ({"type": "overloaded_error", "message": "m"}, "provider", True),
        ({"code": "rate_limit_exceeded", "message": "m"}, "rate_limit", True),
        ({"code": "insufficient_quota", "message": "m"}, "rate_limit", False),
        ({"code": "invalid_api_key", "message": "m"}, "auth", False),
        ({"code": 429, "message": "m"}, "rate_limit", True),
        ({"code": "502", "message": "m"}, "provider", True),
        ({"code": 400, "type": "BadRequestError", "message": "m"}, "invalid_request", False),
        ({"code": 7, "message": "m"}, "provider", True),
        ("something broke", "provider", True),
        ({"code": "context_length_exceeded", "message": "m"}, "context_overflow", False),
        ("Reached context length of 4096 tokens with model", "context_overflow", False),
    ],
)
def test_an_error_object_gives_a_kind(value: Any, kind: str, retryable: bool) -> None:
    """OAI9: an error inside a success is read by its code and type; unknown ones may pass."""
    error = from_error(value, SOURCE, partial=Partial("Hel"))

    assert (error.kind, error.retryable, error.partial) == (kind, retryable, Partial("Hel"))


def test_an_error_object_without_words_is_shown_whole() -> None:
    """Without a message the object itself is shown; nothing at all has a sentence."""
    assert str(from_error({"oops": 1}, SOURCE)) == '{"oops": 1}'
    assert str(from_error({}, SOURCE)) == "the provider reported an error"


@pytest.mark.parametrize(
    ("raised", "kind", "words"),
    [
        (httpx.ConnectTimeout("x"), "timeout", "no connection within 10 s"),
        (httpx.ReadTimeout("x"), "timeout", "no answer within 120 s"),
        (httpx.WriteTimeout("x"), "timeout", "could not be sent within 30 s"),
        (httpx.PoolTimeout("x"), "timeout", "no free connection within 10 s"),
        (httpx.ConnectError("refused"), "network", "refused"),
        (httpx.ReadError(""), "network", "ReadError"),
        (httpx.RemoteProtocolError("gone KEY-PROV-789"), "network", "gone ***"),
        (httpx.DecodingError("gzip"), "parse", "cannot be decoded: gzip"),
        (httpx.UnsupportedProtocol("ftp"), "invalid_request", "ftp"),
        (httpx.LocalProtocolError("header"), "invalid_request", "header"),
        (httpx.InvalidURL("url"), "invalid_request", "url"),
    ],
)
def test_an_exception_gives_a_kind(raised: Exception, kind: str, words: str) -> None:
    """HTTP4: timeouts are `timeout`, broken connections `network`; the host is named."""
    error = from_exception(raised, SOURCE, Timeouts())

    assert error.kind == kind and words in str(error)
    assert str(error).startswith("api.example.com: ")
    assert error.cause is raised


def test_a_model_error_stays_what_it_is() -> None:
    """ERR2: wrapping an error again changes neither kind nor retryable."""
    first = ModelError("auth", "no", retryable=True)

    assert from_exception(first, SOURCE, Timeouts()) is first


def test_a_broken_reply_is_retried_only_before_its_first_delta() -> None:
    """`incomplete_stream` is retryable as long as nothing had arrived."""
    assert broken_off(SOURCE, "broke off", Partial()).retryable
    assert not broken_off(SOURCE, "broke off", Partial("Hel")).retryable


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "3"}, 3.0),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after-ms": "1500", "retry-after": "9"}, 1.5),
        ({"x-ms-retry-after-ms": "250"}, 0.25),
        ({"retry-after": "Thu, 01 Jan 1970 00:01:40 GMT"}, 40.0),
        ({"retry-after": "Thu, 01 Jan 1970 00:00:10 GMT"}, 0.0),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "-4"}, None),
        ({"retry-after": "inf"}, None),
        ({}, None),
    ],
)
def test_a_server_may_ask_to_wait(headers: dict[str, str], seconds: float | None) -> None:
    """MOD1: Retry-After is read as seconds, as milliseconds and as a date."""
    assert retry_after(headers, now=60.0) == seconds
