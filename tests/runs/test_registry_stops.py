"""How runs of a worker are stopped, superseded, drained and lost."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from agui_checker import assert_valid
from backscroll.agent.agent import Agent
from backscroll.agui.options import AgentRules
from backscroll.agui.refusal import RequestRefused
from backscroll.kernel.model import Text
from backscroll.runs.hub import Hub
from backscroll.runs.registry import Registry, RunRules
from backscroll.runs.runner import RunTimes
from backscroll.store.connection import RedisClients
from backscroll.store.keys import Keys
from backscroll.store.thread_log import ThreadLog
from deadlines import scaled
from played_model import Said, Streamed, StreamingModel
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
    until_ended,
    working,
)


def _ending(text: str) -> Any:
    """Return what ends a streamed reply that said this."""
    return [Said(text).deltas()[-1]]


async def test_stopping_what_is_not_there(valkey_url: str, prefix: str) -> None:
    """An unknown run is not found; one that has ended has nothing to stop."""
    async with working(agent_of("x"), valkey_url, prefix) as worker:
        await run(worker, "t", "r1", "hi")

        assert not await worker.registry.stop(LOCAL_OWNER, "r1")
        with pytest.raises(RequestRefused) as error:
            await worker.registry.stop(LOCAL_OWNER, "nope")
    assert error.value.code == "not_found"


async def test_a_stop_reaches_the_worker_of_the_run(valkey_url: str, prefix: str) -> None:
    """It is written to the thread and rung through its bell."""
    async with (
        working(agent_of(held()), valkey_url, prefix) as one,
        working(agent_of("x"), valkey_url, prefix) as two,
    ):
        await begun(one)
        assert await two.registry.stop(LOCAL_OWNER, "r1")
        ended = await until_ended(two, "r1")

    assert ended.preview == "cancelled"


async def test_draining_ends_runs_as_restarting(valkey_url: str, prefix: str) -> None:
    """New requests are refused at once; what does not end in time is ended."""
    async with working(agent_of(held()), valkey_url, prefix) as worker:
        await begun(worker)
        async with asyncio.timeout(scaled(10)):
            await worker.registry.drain(0.1)
        refusal = await refused(worker, asked("t2", "r2", "hi"))
        found = await events(worker)

    assert refusal.code == "draining" and refusal.retry_after_s == 1
    assert (found[-1]["type"], found[-1]["code"]) == ("RUN_ERROR", "restarting")
    assert found[-1]["metadata"]["backscroll"]["retryable"] is True
    assert_valid(found)


async def test_draining_waits_for_runs_that_end(valkey_url: str, prefix: str) -> None:
    """A run that comes to its end in time ends as it would have."""
    go = asyncio.Event()
    script = Streamed([Text("a"), go, *_ending("a")])
    async with working(agent_of(script), valkey_url, prefix) as worker:
        await begun(worker)
        draining = asyncio.ensure_future(worker.registry.drain(30))
        go.set()
        async with asyncio.timeout(scaled(10)):
            await draining
        found = await events(worker)

    assert found[-1]["outcome"] == {"type": "success"}


async def test_who_left_is_not_waited_for(valkey_url: str, prefix: str) -> None:
    """A request is carried out though its sender has gone; a refusal then disturbs nobody."""
    async with working(agent_of("x"), valkey_url, prefix) as worker:
        gone = worker.registry.submit(LOCAL_OWNER, asked("t", "r1", "hi"))
        gone.cancel()
        await until_ended(worker, "r1")
        worker.registry.submit(LOCAL_OWNER, asked("t", "r1", "other"))
        refusal = worker.registry.submit(LOCAL_OWNER, asked("t", "r1", "third"))
        async with asyncio.timeout(scaled(5)):
            await worker.registry._idle.wait()

    assert isinstance(refusal.exception(), RequestRefused)


async def test_the_lease_of_a_run_is_kept(valkey_url: str, prefix: str) -> None:
    """A run that lasts longer than its lease stays this worker's."""
    go = asyncio.Event()
    script = Streamed([Text("a"), go, *_ending("a")])
    rules = RunRules(RunTimes(lease_s=scaled(0.3)))
    async with working(agent_of(script), valkey_url, prefix, rules=rules) as worker:
        await begun(worker)
        first = (await worker.log.head(key())).lease
        async with asyncio.timeout(scaled(10)):
            while (head := await worker.log.head(key())).lease < first + 600:
                pass
        go.set()
        await until_ended(worker, "r1")

    assert head.run == "r1"


async def test_draining_gives_up_on_what_does_not_end(
    valkey_url: str, prefix: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The worker leaves all the same, and says so; the lease of the run expires."""
    monkeypatch.setattr("backscroll.runs.registry.LEAVE_S", 0.1)
    deaf = Deaf()
    agent = Agent(name="a", model=StreamingModel(["x"]), filters=[deaf])
    async with working(agent, valkey_url, prefix) as worker:
        await worker.registry.submit(LOCAL_OWNER, asked("t", "r1", "hi"))
        await deaf.waits.wait()
        await worker.registry.drain(0.1)

        assert worker.registry.active == 1
    assert "1 runs did not end in time" in caplog.text


async def test_a_run_goes_on_without_its_bell(
    clients: RedisClients, keys: Keys, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While the subscription is down runs are carried out; a stop is seen at the next renewal."""
    monkeypatch.setattr("backscroll.store.bells.CONFIRM_S", 0.05)
    log = ThreadLog(clients, keys, "w")
    rules = RunRules(RunTimes(lease_s=scaled(0.3)))
    registry = Registry(agent_of(held()), AgentRules("a"), log, Hub(clients, keys, log), rules)
    owner = asyncio.ensure_future(registry.run())
    await asyncio.sleep(0)
    await registry.submit(LOCAL_OWNER, asked("t", "r1", "hi"))
    await registry.stop(LOCAL_OWNER, "r1")
    async with asyncio.timeout(scaled(5)):
        await registry._idle.wait()
    owner.cancel()
    await asyncio.wait([owner])

    info = await registry.store.run_info(LOCAL_OWNER, "r1")
    assert info is not None and info.status == "cancelled"
