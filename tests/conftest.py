"""Fixtures every test may use."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from deadlines import stretch_limits
from needs import check_markers
from processes import two_workers
from redis_server import clients, debian_redis_url, keys, prefix, valkey_url
from scripted_provider import provider

__all__ = [
    "clients",
    "debian_redis_url",
    "keys",
    "prefix",
    "provider",
    "two_workers",
    "valkey_url",
]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give tests more time on a slow machine."""
    stretch_limits(items, Path(__file__).parent)


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip a test whose needs are not met, or fail it in CI."""
    check_markers(item)


@pytest.fixture
def anyio_backend() -> tuple[str, dict[str, Any]]:
    """Run async tests on asyncio, in debug mode."""
    return "asyncio", {"debug": True}
