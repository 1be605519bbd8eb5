"""Where pauses are kept, and what they ask for."""

from __future__ import annotations

import pytest
from agent.pause_store_contract import PauseStoreContract
from backscroll.agent.pause import (
    InMemoryPauseStore,
    approval_items,
    client_items,
    environment_items,
)
from backscroll.kernel.errors import ToolFailure
from backscroll.kernel.texts import Texts
from backscroll.kernel.turn import ToolRecord
from played_model import call

PAY, PICK = call("pay", {"to": "ann"}, "c1"), call("pick", '{"x"', "c2")


class TestInMemory(PauseStoreContract):
    """The store of this process does what every store does."""

    @pytest.fixture
    def pauses(self) -> InMemoryPauseStore:
        """Return an empty store."""
        return InMemoryPauseStore()


def test_items() -> None:
    """HITL1: an item names the tool, all arguments, the reason, and the answers it takes."""
    failure = ToolFailure("environment", "no key")
    held = ToolRecord("c1", "pay", {}, "error: no key", "error", failure)

    (approval,) = approval_items({"c1": "why"}, [PICK, PAY])
    (client,) = client_items([PICK])
    (environment,) = environment_items([held], {"c1": PAY}, Texts())

    assert (approval.id, approval.tool, approval.args, approval.reason) == (
        "c1", "pay", {"to": "ann"}, "why",
    )  # fmt: skip
    assert approval.answers == ("approve", "reject", "reply")
    assert (client.kind, client.args, client.answers) == ("client", {}, ("reply", "reject"))
    assert environment.reason == "pay failed because of its environment: no key"
    assert environment.answers == ("retry", "give_up")
