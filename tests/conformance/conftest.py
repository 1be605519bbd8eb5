"""The desk of the cases about pauses: started once, with fresh threads for each test."""

from __future__ import annotations

from collections.abc import Iterator
from uuid import uuid4

import pytest
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
