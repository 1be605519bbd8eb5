"""Requests to a thread where another run is active."""

from __future__ import annotations

import pytest
from backscroll.agui.options import AgentRules
from backscroll.agui.refusal import RequestRefused
from backscroll.runs.busy import BusyThreads
from backscroll.runs.worker import Worker
from backscroll.store.keys import LOCAL_OWNER
from backscroll.store.run_record import Busy
from working import agent_of, asked, begun, events, held, key, working


def threads(worker: Worker, rules: AgentRules, wait_s: float = 5.0) -> BusyThreads:
    """Return what makes room on this worker."""
    registry = worker.registry
    return BusyThreads(worker.log, worker.hub, registry.store, registry.lost, rules, wait_s)


async def test_rejected_with_the_run(valkey_url: str, prefix: str) -> None:
    """The refusal names the active run."""
    async with working(agent_of(held()), valkey_url, prefix) as worker:
        await begun(worker)
        busy = threads(worker, AgentRules("a"))

        with pytest.raises(RequestRefused) as caught:
            await busy.make_room(key(), asked("t", "r2", "hi", "you"), Busy("r1"))

    assert caught.value.code == "thread_busy" and caught.value.details["runId"] == "r1"


async def test_superseded(valkey_url: str, prefix: str) -> None:
    """The active run is stopped and waited for."""
    rules = AgentRules("a", busy="supersede", busy_allowed=("reject", "supersede"))
    async with working(agent_of(held()), valkey_url, prefix) as worker:
        await begun(worker)
        await threads(worker, rules).make_room(key(), asked("t", "r2", "hi", "you"), Busy("r1"))
        found = await events(worker)

    assert found[-1]["outcome"] == {"type": "cancelled"}


async def test_one_that_stops_is_waited_for(valkey_url: str, prefix: str) -> None:
    """A stop and the next request may overtake each other."""
    async with working(agent_of(held()), valkey_url, prefix) as worker:
        await begun(worker)
        await worker.registry.stop(LOCAL_OWNER, "r1")
        busy = threads(worker, AgentRules("a"))
        await busy.make_room(key(), asked("t", "r2", "hi", "you"), Busy("r1"))
        found = await events(worker)

    assert found[-1]["type"] == "RUN_FINISHED"


async def test_not_for_ever(valkey_url: str, prefix: str) -> None:
    """After the time to wait it is thread_busy all the same."""
    rules = AgentRules("a", busy="supersede", busy_allowed=("supersede",))
    async with (
        working(agent_of(held()), valkey_url, prefix) as worker,
        working(agent_of("x"), valkey_url, prefix) as other,
    ):
        await begun(worker)
        await other.log.clients.write.hset(other.keys.meta(key()), "run", "stuck")
        busy = threads(other, rules, wait_s=0.05)

        with pytest.raises(RequestRefused) as caught:
            await busy.make_room(key(), asked("t", "r2", "hi", "you"), Busy("stuck"))

    assert "still busy" in str(caught.value)


async def test_a_lost_run_is_ended(valkey_url: str, prefix: str) -> None:
    """Whoever finds an expired lease ends its run first."""
    async with working(agent_of(held()), valkey_url, prefix) as worker:
        await begun(worker)
    async with working(agent_of("x"), valkey_url, prefix) as other:
        await other.log.clients.write.hset(other.keys.meta(key()), "lease", 1)
        busy = Busy("r1", expired=True)
        await threads(other, AgentRules("a")).make_room(key(), asked("t", "r2", "hi"), busy)
        found = await events(other)

    assert found[-1]["code"] == "worker_lost"


async def test_the_thread_went_on_meanwhile(valkey_url: str, prefix: str) -> None:
    """A run that stops is waited for, but not longer than it is there."""
    async with working(agent_of(held()), valkey_url, prefix) as worker:
        await begun(worker)
        await worker.log.clients.write.hset(worker.keys.meta(key()), "stop", "r0")
        busy = threads(worker, AgentRules("a"))

        await busy.make_room(key(), asked("t", "r2", "hi", "you"), Busy("r0"))
        found = await events(worker)

    assert found[-1]["type"] == "TEXT_MESSAGE_CONTENT"
