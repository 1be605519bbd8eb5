"""What clients are told about an agent."""

from __future__ import annotations

import json
from typing import Any

from ag_ui import core as ag
from backscroll.agui.capabilities import SUBPROTOCOLS, AgentCard, capabilities
from backscroll.agui.options import AgentRules
from backscroll.kernel.model import ModelProfile
from backscroll.kernel.tool import ToolSpec


def told(**card: Any) -> dict[str, Any]:
    """Return the capabilities of an agent."""
    text = capabilities(AgentCard(AgentRules("support"), "1.2.3", **card))
    ag.AgentCapabilities.model_validate_json(text)
    value: dict[str, Any] = json.loads(text)
    return value


def test_what_is_not_supported_is_false() -> None:
    """Nothing is left out that a client might ask for."""
    found = told()

    assert found["identity"] == {"name": "support", "type": "backscroll", "version": "1.2.3"}
    assert found["multiAgent"] == {"supported": False}
    assert found["tools"]["clientProvided"] is False and found["tools"]["items"] == []
    assert found["humanInTheLoop"]["approvals"] is False
    assert found["state"] == {
        "snapshots": False,
        "deltas": False,
        "memory": True,
        "persistentState": False,
    }


def test_what_the_model_takes() -> None:
    """It comes from the profile, never from a guess."""
    profile = ModelProfile(parts={"user": ("image/*", "application/pdf")})

    found = told(profile=profile)["multimodal"]

    assert found["input"] == {
        "image": True,
        "audio": False,
        "video": False,
        "pdf": True,
        "file": False,
    }


def test_what_is_ours() -> None:
    """Dialects, policies and limits."""
    found = told(description="Order support", tools=[ToolSpec("add", "Add.", {"type": "object"})])

    assert found["custom"]["backscroll"]["subprotocols"] == list(SUBPROTOCOLS.values())
    assert found["custom"]["backscroll"]["busy_allowed"] == ["reject"]
    assert found["tools"]["items"][0]["name"] == "add"
    assert found["identity"]["description"] == "Order support"
    assert found["execution"]["maxExecutionTime"] == 600_000
