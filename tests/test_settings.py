"""Every setting, from outside."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from backscroll.settings import Settings
from pydantic import ValidationError


@pytest.fixture(autouse=True)
def clean(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take away what the environment of the tests says."""
    for name in Settings.model_fields:
        monkeypatch.delenv(f"BACKSCROLL_{name.upper()}", raising=False)


def test_the_defaults_are_those_of_the_protocol() -> None:
    """7.10 and the places where each number is named."""
    settings = Settings()

    assert (settings.host, settings.port, settings.workers) == ("127.0.0.1", 8000, 1)
    assert (settings.max_input_bytes, settings.max_messages) == (8 * 1024 * 1024, 10_000)
    assert (settings.max_frame, settings.sse_max_frame) == (1_000_000, 8_000_000)
    assert (settings.keepalive_s, settings.send_timeout_s, settings.idle_s) == (20, 30, 300)
    assert (settings.run_seconds, settings.active_runs, settings.drain_s) == (600, 200, 10)
    assert (settings.coalesce_ms, settings.coalesce_deltas) == (15, 16)
    assert (settings.client_result_chars, settings.context_bytes) == (200_000, 65_536)
    assert settings.client_timeline == "brief" and settings.show_reasoning


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("port", "9000", 9000),
        ("data_dir", "/tmp/a b", Path("/tmp/a b")),
        ("redis_url", "redis://r", "redis://r"),
        ("compression", "true", True),
        ("allowed_origins", '["https://a","https://b"]', ("https://a", "https://b")),
        ("client_timeline", "full", "full"),
        ("lease_s", "2.5", 2.5),
    ],
)
def test_each_setting_is_a_variable(
    monkeypatch: pytest.MonkeyPatch, name: str, text: str, value: Any
) -> None:
    """BACKSCROLL_<NAME>; what is given directly wins over it."""
    monkeypatch.setenv(f"BACKSCROLL_{name.upper()}", text)

    assert getattr(Settings(), name) == value
    assert getattr(Settings(**{name: value}), name) == value


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("port", 70_000),
        ("workers", 0),
        ("key_prefix", ""),
        ("appendfsync", "no"),
        ("log_level", "loud"),
        ("max_frame", 1000),
        ("lease_s", 0),
        ("client_timeline", "all"),
    ],
)
def test_what_makes_no_sense_is_refused(name: str, value: Any) -> None:
    """The setting is named."""
    with pytest.raises(ValidationError) as error:
        Settings(**{name: value})

    assert error.value.errors()[0]["loc"] == (name,)


def test_every_setting_says_what_it_is() -> None:
    """The reference is made from these."""
    assert all(field.description for field in Settings.model_fields.values())
