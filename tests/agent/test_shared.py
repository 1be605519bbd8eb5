"""What changed agents share."""

from __future__ import annotations

import pytest
from backscroll.agent.shared import Shared
from backscroll.kernel.errors import AssemblyError
from played_model import PlayedModel


async def test_names_are_resolved_once() -> None:
    """A model by name is made once; a model as an object is itself."""
    shared, model = Shared(), PlayedModel([])

    assert shared.resolved(model) is model
    assert shared.resolved("demo") is shared.resolved("demo")
    assert list(shared.models) == ["demo"]
    with pytest.raises(AssemblyError):
        shared.resolved("nonsense")
