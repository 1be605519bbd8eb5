"""Fixtures every test may use."""

from __future__ import annotations

from typing import Any

import pytest


@pytest.fixture
def anyio_backend() -> tuple[str, dict[str, Any]]:
    """Run async tests on asyncio, in debug mode."""
    return "asyncio", {"debug": True}
