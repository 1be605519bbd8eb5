"""Two workers, one Redis, one scripted model: what every client test plays against."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from uuid import uuid4

import pytest
from needs import needs
from processes import PROGRAMS, ServerProcess
from scripted_provider import ScriptedProvider


@dataclass
class World:
    """The running parts; `thread` is a name that no other test uses."""

    model: ScriptedProvider
    first: ServerProcess
    second: ServerProcess
    thread: str

    @property
    def workers(self) -> list[str]:
        """The base URLs of both workers, the first one first."""
        return [self.first.url, self.second.url]


@pytest.fixture(scope="session")
def running(valkey_url: str) -> Iterator[World]:
    """Start the model and both workers once for all client tests."""
    needs("clients")
    with ExitStack() as stack:
        model = stack.enter_context(ScriptedProvider())
        env = {
            "OPENAI_BASE_URL": model.base_url,
            "OPENAI_API_KEY": "none-needed",
            "PYTHONPATH": str(PROGRAMS),
            "BACKSCROLL_KEY_PREFIX": "clients",
        }
        first, second = (
            stack.enter_context(ServerProcess("served_agent", redis_url=valkey_url, env=env))
            for _ in range(2)
        )
        yield World(model, first, second, thread="")


@pytest.fixture
def world(running: World) -> Iterator[World]:
    """Give the running parts with a fresh thread and an empty script."""
    running.thread = f"thread-{uuid4().hex[:12]}"
    running.model.reset()
    yield running
    assert running.model.problems == []
