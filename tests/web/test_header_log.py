"""The values of headers that carry secrets are not in the log."""

from __future__ import annotations

import logging

import pytest
from backscroll.web.header_log import hide_secret_headers

log = logging.getLogger("uvicorn.error")


@pytest.mark.parametrize("name", ["Authorization", "cookie", "Sec-WebSocket-Protocol"])
def test_secret_headers_are_hidden(caplog: pytest.LogCaptureFixture, name: str) -> None:
    """security-05: the name stays, its value goes, however it is spelt."""
    hide_secret_headers()
    with caplog.at_level(logging.DEBUG, "uvicorn.error"):
        log.debug("< %s: %s", name, "KEY-1")

    assert caplog.messages == [f"< {name}: ***"]


def test_everything_else_is_told(caplog: pytest.LogCaptureFixture) -> None:
    """Other headers, and records of another shape, stay as they are."""
    hide_secret_headers()
    hide_secret_headers()
    with caplog.at_level(logging.DEBUG, "uvicorn.error"):
        log.debug("< %s: %s", "Host", "localhost")
        log.debug("< %s %s %s", "GET", "/agui", "HTTP/1.1")
        log.debug("= connection is OPEN")
        log.debug("%(a)s", {"a": 1})

    assert caplog.messages == [
        "< Host: localhost",
        "< GET /agui HTTP/1.1",
        "= connection is OPEN",
        "1",
    ]
    assert len([f for f in log.filters if getattr(f, "__name__", "") == "_hide"]) == 1
