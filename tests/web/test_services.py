"""What every endpoint of a worker uses."""

from __future__ import annotations

import json

import pytest
from backscroll.agui.capabilities import capabilities
from backscroll.agui.checks import InputLimits
from backscroll.agui.options import AgentRules
from backscroll.agui.refusal import RequestRefused
from backscroll.kernel.tool import tool
from backscroll.runs.registry import RunRules
from backscroll.runs.runner import RunTimes
from backscroll.store.keys import ThreadKey
from backscroll.web.services import Services, WebLimits
from working import agent_of, working


@tool
def add(a: int) -> int:
    """Add."""
    return a


async def test_what_is_told_about_the_agent(valkey_url: str, prefix: str) -> None:
    """From its configuration, never from a guess."""
    rules = RunRules(RunTimes(run_s=42))
    agent_rules = AgentRules("a", show_reasoning=False)
    limits = WebLimits(InputLimits(input_bytes=4096))
    agent = agent_of("x", tools=[add], max_iterations=3)
    async with working(agent, valkey_url, prefix, rules=rules, agent_rules=agent_rules) as worker:
        services = Services(worker, limits)
        card = json.loads(capabilities(services.card()))

    assert card["identity"]["name"] == "a"
    assert card["execution"]["maxIterations"] == 3
    assert card["execution"]["maxExecutionTime"] == 42_000 and services.run_seconds == 42
    assert card["reasoning"]["supported"] is False
    assert card["custom"]["backscroll"]["max_input_bytes"] == 4096
    assert [t["name"] for t in card["tools"]["items"]] == ["add"]


async def test_threads_belong_to_the_one_owner(valkey_url: str, prefix: str) -> None:
    """In single-user mode everything is `local`."""
    async with working(agent_of("x"), valkey_url, prefix) as worker:
        services = Services(worker, WebLimits())

        assert services.owner == "local" and services.thread("t") == ThreadKey("local", "t")


async def test_only_one_agent_is_served(valkey_url: str, prefix: str) -> None:
    """An unknown agent is not found; the default has no name in the path."""
    async with working(agent_of("x"), valkey_url, prefix) as worker:
        services = Services(worker, WebLimits())
        services.check_agent({"path_params": {}})
        services.check_agent({"path_params": {"agent": "a"}})
        with pytest.raises(RequestRefused) as error:
            services.check_agent({"path_params": {"agent": "b"}})

    assert error.value.code == "not_found" and error.value.details == {"agent": "b"}
