"""A request to a thread where another run is active."""

from __future__ import annotations

from typing import Any

from agui_checker import assert_valid
from backscroll.agent.agent import Agent
from backscroll.agui.options import AgentRules
from backscroll.runs.registry import RunRules
from played_model import StreamingModel
from working import (
    LOCAL_OWNER,
    Deaf,
    agent_of,
    asked,
    begun,
    events,
    held,
    key,
    refused,
    run,
    working,
)

SUPERSEDE = AgentRules("a", busy_allowed=("reject", "supersede"))


async def test_supersede_stops_the_active_run_first(valkey_url: str, prefix: str) -> None:
    """5.4: the active run ends cancelled, then the new one starts; its partial text stays."""
    agent = agent_of(held("half"), "whole")
    async with working(agent, valkey_url, prefix, agent_rules=SUPERSEDE) as worker:
        await begun(worker)
        props = {"backscroll.busy": "supersede"}
        found = await run(worker, "t", "r2", "hi", "again", forwardedProps=props)
        all_events = await events(worker)

    ends = [e for e in all_events if e["type"] == "RUN_FINISHED"]
    assert [e["outcome"]["type"] for e in ends] == ["cancelled", "success"]
    assert found[-1]["runId"] == "r2"
    assert_valid(all_events)


async def test_a_run_that_does_not_stop_is_still_busy(valkey_url: str, prefix: str) -> None:
    """After the wait the request is refused all the same, at the first and the second try."""
    rules = RunRules(supersede_wait_s=0.1)
    options: Any = {"rules": rules, "agent_rules": SUPERSEDE}
    deaf = Deaf()
    agent = Agent(name="a", model=StreamingModel(["x"]), filters=[deaf])
    async with working(agent, valkey_url, prefix, **options) as worker:
        await worker.registry.submit(LOCAL_OWNER, asked("t", "r1", "hi"))
        await deaf.waits.wait()
        props = {"backscroll.busy": "supersede"}
        for request in (
            asked("t", "r2", "hi", "on", forwardedProps=props),
            asked("t", "r3", "hi", "on"),
        ):
            refusal = await refused(worker, request)
            assert (refusal.code, refusal.details) == ("thread_busy", {"runId": "r1"})
            assert "still busy" in str(refusal)


async def test_a_run_that_is_stopping_is_waited_for(valkey_url: str, prefix: str) -> None:
    """5.4: a stop and the next request may overtake each other."""
    async with working(agent_of(held(), "next"), valkey_url, prefix) as worker:
        await begun(worker)
        await worker.registry.stop(LOCAL_OWNER, "r1")
        found = await run(worker, "t", "r2", "hi", "again")

    assert found[-1]["outcome"] == {"type": "success"}


async def test_a_run_of_a_lost_worker_gives_way(valkey_url: str, prefix: str) -> None:
    """A request that meets an expired lease ends that run and starts its own."""
    async with working(agent_of(held(), "next"), valkey_url, prefix) as worker:
        await begun(worker)
        await worker.clients.write.hset(worker.keys.meta(key()), "lease", 1)
        found = await run(worker, "t", "r2", "hi", "again")
        all_events = await events(worker)

    codes = [e.get("code") for e in all_events if e["type"] in ("RUN_ERROR", "RUN_FINISHED")]
    assert codes == ["worker_lost", None] and found[-1]["runId"] == "r2"
    assert_valid(all_events)


async def test_a_busy_thread_refuses(valkey_url: str, prefix: str) -> None:
    """5.4: by default; the active run is named and not disturbed."""
    async with working(agent_of(held()), valkey_url, prefix) as worker:
        await begun(worker)
        refusal = await refused(worker, asked("t", "r2", "hi", "again"))

        assert (await worker.log.head(key())).stop == ""
    assert (refusal.code, refusal.details) == ("thread_busy", {"runId": "r1"})
