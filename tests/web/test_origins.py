"""Who may call from a browser."""

from __future__ import annotations

import pytest
from backscroll.web.origins import OriginRules

RULES = OriginRules(frozenset({"chat.example"}), frozenset({"https://app.example"}))


@pytest.mark.parametrize(
    "host",
    [
        "localhost",
        "localhost:8000",
        "127.0.0.1:8000",
        "[::1]:8000",
        "chat.example",
        "chat.example:443",
        "CHAT.example",
        "localhost.",
    ],
)
def test_hosts_that_are_served(host: str) -> None:
    """Loopback and what was configured, with any port."""
    assert RULES.host_allowed(host)


@pytest.mark.parametrize(
    "host",
    [
        None,
        "",
        "evil.example",
        "127.0.0.1.evil.example",
        "[::1",
        "10.0.0.7",
        "localhost@evil",
        ":80",
    ],
)
def test_hosts_that_are_not(host: str | None) -> None:
    """Anything else is how DNS rebinding looks."""
    assert not RULES.host_allowed(host)


@pytest.mark.parametrize(
    ("origin", "host"),
    [
        (None, "localhost:8000"),
        ("http://localhost:8000", "localhost:8000"),
        ("https://chat.example", "chat.example"),
        ("https://app.example", "localhost:8000"),
    ],
)
def test_origins_that_may_call(origin: str | None, host: str) -> None:
    """No page at all, a page of this server, a page that was configured."""
    assert RULES.origin_allowed(origin, host)


@pytest.mark.parametrize(
    "origin",
    [
        "null",
        "http://localhost:9000",
        "https://app.example.evil",
        "http://app.example",
        "file://",
        "http://[::1",
        "",
    ],
)
def test_origins_that_may_not(origin: str) -> None:
    """Other ports and schemes are other origins, `null` is nobody."""
    assert not RULES.origin_allowed(origin, "localhost:8000")


def test_only_other_origins_are_named_in_answers() -> None:
    """The server's own pages need no CORS."""
    assert RULES.is_foreign("https://app.example", "localhost:8000")
    assert not RULES.is_foreign("http://localhost:8000", "localhost:8000")
    assert not RULES.is_foreign(None, None)
