"""What cases are played on, started once: the desk for pauses, the stage for delivery."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest
from conformance import stage as stages
from conformance.desk import Desk, running


@pytest.fixture(scope="session")
def one_desk(valkey_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    """Start the model and both workers once."""
    yield from running(valkey_url, tmp_path_factory.mktemp("desk"))


@pytest.fixture
def desk(one_desk: Desk) -> Iterator[Desk]:
    """Give the running parts with fresh threads and an empty script."""
    one_desk.threads = (f"a-{uuid4().hex[:8]}", f"b-{uuid4().hex[:8]}")
    one_desk.model.reset()
    yield one_desk
    assert one_desk.model.problems == []


@pytest.fixture(scope="session")
def playing(valkey_url: str) -> Iterator[stages.Stage]:
    """Start the model and both workers once for all cases."""
    yield from stages.running(valkey_url)


@pytest.fixture
def stage(playing: stages.Stage, tmp_path: Path) -> Iterator[stages.Stage]:
    """Give the running parts with a fresh thread; nothing may be logged as an error."""
    playing.thread, playing.folder = f"t-{uuid4().hex[:12]}", tmp_path
    playing.model.reset()
    yield playing
    assert playing.model.problems == []
    for worker in (playing.first, playing.second):
        assert "Traceback" not in worker.output(1_000_000)
