"""One run from its start to its one terminal event."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from agui_checker import assert_valid
from backscroll.agent.agent import Agent
from backscroll.kernel.errors import FilterError
from backscroll.kernel.filter import Filter
from backscroll.kernel.model import Text
from backscroll.kernel.tool import ToolSet, tool
from backscroll.runs.registry import RunRules
from backscroll.runs.runner import RunTimes
from backscroll.runs.worker import Worker
from cutting_proxy import cutting_proxy
from deadlines import scaled
from played_model import Said, Streamed, StreamingModel, call, calls
from working import (
    LOCAL_OWNER,
    Deaf,
    agent_of,
    asked,
    bodies,
    events,
    key,
    run,
    until_ended,
    until_entry,
    working,
)


class Raising(Filter):
    """A chat filter that raises what it is given."""

    name = "raising"

    def __init__(self, error: BaseException) -> None:
        self.error = error

    async def chat(self, request: Any, chain: Any) -> Any:
        """Raise in the middle of the run."""
        raise self.error


async def status_of(worker: Worker, run_id: str) -> tuple[str, str]:
    """Return how a run ended and with which code."""
    info = await worker.registry.store.run_info(LOCAL_OWNER, run_id)
    assert info is not None
    return info.status, info.error


async def check_end(worker: Worker, found: list[Any]) -> None:
    """Check that a run has exactly one terminal event, last, and that its log is valid."""
    terminal = [e for e in found if e["type"] in ("RUN_FINISHED", "RUN_ERROR")]
    assert terminal == found[-1:]
    assert_valid(await events(worker))


async def test_a_run_comes_to_its_end(valkey_url: str, prefix: str) -> None:
    """Text is told, stored, and the run ends once, with its usage in its record."""
    async with working(agent_of("hello you"), valkey_url, prefix) as worker:
        found = await run(worker, "t", "r", "hi")
        info = await worker.registry.store.run_info(LOCAL_OWNER, "r")
        stored = await worker.history.stored(key(), 1, 9)

        await check_end(worker, found)
    assert found[-1]["outcome"] == {"type": "success"}
    assert [m.message.text for m in stored] == ["hi", "hello you"]
    assert info is not None and (info.status, info.details["calls"]) == ("ok", 1)


@pytest.mark.parametrize(
    ("error", "code"),
    [(ValueError("boom"), "internal_error"), (FilterError("f", "blocked_by_f", "No."), None)],
)
async def test_a_filter_that_raises_ends_the_run_once(
    valkey_url: str, prefix: str, error: Exception, code: str | None
) -> None:
    """protocol-04 a: one RUN_ERROR, last, and the record of the run says the same."""
    agent = agent_of("never", filters=[Raising(error)])
    async with working(agent, valkey_url, prefix) as worker:
        found = await run(worker, "t", "r", "hi")

        await check_end(worker, found)
        assert await status_of(worker, "r") == ("error", code or "blocked_by_f")
    assert (found[-1]["type"], found[-1]["code"]) == ("RUN_ERROR", code or "blocked_by_f")
    assert "boom" not in found[-1]["message"]


async def test_a_filter_that_cancels_itself_ends_the_run(valkey_url: str, prefix: str) -> None:
    """A CancelledError that nobody asked for is a fault, and the run ends all the same."""
    agent = agent_of("never", filters=[Raising(asyncio.CancelledError())])
    async with working(agent, valkey_url, prefix) as worker:
        found = await run(worker, "t", "r", "hi")

        await check_end(worker, found)
    assert found[-1]["code"] == "internal_error"


async def test_the_time_limit_ends_the_run(valkey_url: str, prefix: str) -> None:
    """protocol-04 c: RUN_ERROR run_timeout, once; what was said is kept and marked."""
    waiting = Streamed([Text("half an "), asyncio.Event()])
    rules = RunRules(RunTimes(run_s=scaled(0.5)))
    async with working(agent_of(waiting), valkey_url, prefix, rules=rules) as worker:
        found = await run(worker, "t", "r", "hi")
        stored = await worker.history.stored(key(), 2, 2)

        await check_end(worker, found)
        assert await status_of(worker, "r") == ("error", "run_timeout")
    assert found[-1]["code"] == "run_timeout"
    assert stored[0].message.text.startswith("half") and stored[0].message.incomplete


async def test_a_stop_ends_the_run_cancelled(valkey_url: str, prefix: str) -> None:
    """The stop intent belongs to the run; its text is kept, marked incomplete."""
    waiting = Streamed([Text("half"), asyncio.Event()])
    async with working(agent_of(waiting), valkey_url, prefix) as worker:
        await worker.registry.submit(LOCAL_OWNER, asked("t", "r", "hi"))
        await until_entry(worker, "r", "TEXT_MESSAGE_CONTENT")
        assert await worker.registry.stop(LOCAL_OWNER, "r")
        await until_ended(worker, "r")
        found = await events(worker)

        await check_end(worker, found)
        assert await status_of(worker, "r") == ("cancelled", "")
    assert found[-1]["outcome"] == {"type": "cancelled"}


async def test_a_turn_that_heeds_no_stop_is_ended(
    valkey_url: str, prefix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A filter that hangs cannot keep the thread: the run ends cancelled after the grace."""
    monkeypatch.setattr("backscroll.runs.runner.GRACE_S", 0.1)
    deaf = Deaf()
    async with working(agent_of("x", filters=[deaf]), valkey_url, prefix) as worker:
        await worker.registry.submit(LOCAL_OWNER, asked("t", "r", "hi"))
        await deaf.waits.wait()
        await worker.registry.stop(LOCAL_OWNER, "r")
        await until_ended(worker, "r")

        await check_end(worker, await events(worker))
        assert await status_of(worker, "r") == ("cancelled", "")


async def test_a_hanging_turn_runs_into_its_limit(
    valkey_url: str, prefix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same with the time limit: RUN_ERROR run_timeout."""
    monkeypatch.setattr("backscroll.runs.runner.GRACE_S", 0.1)
    rules = RunRules(RunTimes(run_s=0.1))
    agent = agent_of("x", filters=[Deaf()])
    async with working(agent, valkey_url, prefix, rules=rules) as worker:
        found = await run(worker, "t", "r", "hi")

    assert found[-1]["code"] == "run_timeout"


async def test_calls_of_a_hard_ended_turn_get_results(
    valkey_url: str, prefix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A stored call is never left without a result, on the wire or in the store."""
    monkeypatch.setattr("backscroll.runs.runner.GRACE_S", 0.1)
    started = asyncio.Event()

    class DeafTool(Filter):
        name = "deaf_tool"

        async def iteration(self, request: Any, chain: Any) -> Any:
            result = await chain(request)
            started.set()
            await asyncio.Event().wait()
            return result

    @tool
    def add(a: int) -> int:
        """Add."""
        return a

    agent = agent_of(calls(call("add", {"a": 1})), tools=[add], filters=[DeafTool()])
    async with working(agent, valkey_url, prefix) as worker:
        await worker.registry.submit(LOCAL_OWNER, asked("t", "r", "hi"))
        await started.wait()
        await worker.registry.stop(LOCAL_OWNER, "r")
        await until_ended(worker, "r")
        stored = await worker.history.stored(key(), 1, 9)

        await check_end(worker, await events(worker))
    assert [m.message.role.value for m in stored] == ["user", "assistant", "tool"]


async def test_a_lost_lease_stops_the_run_without_a_word(
    valkey_url: str, prefix: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Another worker has the run: this one writes nothing more and lets go of the thread."""
    caplog.set_level(logging.WARNING)
    waiting = Streamed([Text("half"), asyncio.Event()])
    rules = RunRules(RunTimes(lease_s=scaled(0.3)))
    async with working(agent_of(waiting), valkey_url, prefix, rules=rules) as worker:
        await worker.registry.submit(LOCAL_OWNER, asked("t", "r", "hi"))
        await until_entry(worker, "r", "TEXT_MESSAGE_CONTENT")
        await worker.clients.write.hincrby(worker.keys.meta(key()), "fence", 1)
        before = len(await events(worker))
        async with asyncio.timeout(scaled(5)):
            await worker.registry._idle.wait()
        after = await events(worker)

    assert len(after) == before and after[-1]["type"] == "TEXT_MESSAGE_CONTENT"
    assert not [r for r in caplog.records if r.levelno >= logging.ERROR]


async def test_a_stop_that_the_bell_did_not_bring_is_seen_at_renewal(
    valkey_url: str, prefix: str
) -> None:
    """The renewal of the lease says that the run shall stop."""
    waiting = Streamed([Text("half"), asyncio.Event()])
    rules = RunRules(RunTimes(lease_s=scaled(0.3)))
    async with working(agent_of(waiting), valkey_url, prefix, rules=rules) as worker:
        await worker.registry.submit(LOCAL_OWNER, asked("t", "r", "hi"))
        await until_entry(worker, "r", "TEXT_MESSAGE_CONTENT")
        await worker.clients.write.hset(worker.keys.meta(key()), "stop", "r")
        ended = await until_ended(worker, "r")

    assert ended.preview == "cancelled"


async def test_a_store_that_comes_back_ends_the_run(valkey_url: str, prefix: str) -> None:
    """The store is down while text is written: RUN_ERROR, and the log is whole and valid."""
    go = asyncio.Event()
    script = Streamed([Text("a"), go, *(Text(f"{n} ") for n in range(40))])
    async with (
        cutting_proxy(valkey_url) as proxy,
        _both(proxy.url, valkey_url, prefix, script) as (
            worker,
            near,
        ),
    ):
        await worker.registry.submit(LOCAL_OWNER, asked("t", "r", "hi"))
        await until_entry(near, "r", "TEXT_MESSAGE_CONTENT")
        proxy.cuts = 40
        go.set()
        await until_ended(near, "r")

        await check_end(near, await events(near))
        status, code = await status_of(near, "r")
    assert status == "error" and code in ("sink_failed", "store_error")
    assert proxy.answers_swallowed > 0


async def test_a_store_that_stays_away_leaves_the_run_to_others(
    valkey_url: str, prefix: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Nobody can end it here; the lease runs out and another worker ends it."""
    script = Streamed([Text("a"), asyncio.Event()])
    rules = RunRules(RunTimes(lease_s=1.5))
    async with (
        cutting_proxy(valkey_url) as proxy,
        working(agent_of("x"), valkey_url, prefix, rules=rules) as near,
    ):
        async with working(agent_of(script), proxy.url, prefix, rules=rules) as worker:
            await worker.registry.submit(LOCAL_OWNER, asked("t", "r", "hi"))
            await until_entry(near, "r", "TEXT_MESSAGE_CONTENT")
            proxy.cuts = 1_000_000
            worker.registry._active[key()].stop("r")
            async with asyncio.timeout(scaled(12)):
                await worker.registry._idle.wait()
            await near.clients.write.hset(near.keys.meta(key()), "lease", 1)
            await near.registry.lost.end_thread(key())

        assert await status_of(near, "r") == ("error", "worker_lost")
        await check_end(near, await events(near))
    assert "could not be ended" in caplog.text


async def test_a_worker_that_is_ended_leaves_its_run(valkey_url: str, prefix: str) -> None:
    """Cancelling the worker ends the turn's tasks; the run is somebody else's to end."""
    model = StreamingModel([Streamed([Text("half"), asyncio.Event()])])
    async with working(Agent(name="a", model=model), valkey_url, prefix) as worker:
        await worker.registry.submit(LOCAL_OWNER, asked("t", "r", "hi"))
        await until_entry(worker, "r", "TEXT_MESSAGE_CONTENT")
    async with working(agent_of("x"), valkey_url, prefix) as other:
        found = await events(other)

    assert found[-1]["type"] == "TEXT_MESSAGE_CONTENT"
    assert model.closed == 1


async def test_nothing_to_run_ends_at_once(valkey_url: str, prefix: str) -> None:
    """An imported call that waits for the client is pending; no model is asked."""
    wanted = {"id": "c1", "type": "function", "function": {"name": "pick", "arguments": "{}"}}
    other = {**wanted, "id": "c2"}
    messages = [
        {"id": "a1", "role": "assistant", "toolCalls": [wanted, other]},
        {"id": "t1", "role": "tool", "toolCallId": "c1", "content": "red"},
    ]
    offered = [{"name": "pick", "description": "Pick.", "parameters": {"type": "object"}}]
    agent = agent_of("thanks")
    async with working(agent, valkey_url, prefix) as worker:
        found = await run(worker, "t", "r", "hi", *messages, tools=offered)
        before = await status_of(worker, "r")
        answer = {"id": "t2", "role": "tool", "toolCallId": "c2", "content": "blue"}
        after = await run(worker, "t", "r2", "hi", *messages, answer, tools=offered)

        await check_end(worker, found)
    assert found[-1]["outcome"] == {"type": "success", "pendingToolCallIds": ["c2"]}
    assert before == ("waiting", "") and after[-1]["outcome"] == {"type": "success"}


async def test_records_leave_before_the_request_does(valkey_url: str, prefix: str) -> None:
    """REC7: the log refuses the record, so no request is sent."""

    class Stealing(Filter):
        name = "stealing"

        async def chat(self, request: Any, chain: Any) -> Any:
            await worker.clients.write.hincrby(worker.keys.meta(key()), "fence", 1)
            return await chain(request)

    agent = agent_of("never", filters=[Stealing()])
    async with working(agent, valkey_url, prefix) as worker:
        await worker.registry.submit(LOCAL_OWNER, asked("t", "r", "hi"))
        async with asyncio.timeout(scaled(5)):
            await worker.registry._idle.wait()
        calls_made = await bodies(worker, "call")

    assert agent.model.requests == []  # type: ignore[union-attr]
    assert calls_made == []


async def test_context_and_properties_reach_the_turn(valkey_url: str, prefix: str) -> None:
    """Context entries are system text of this run, properties are for tools."""
    seen: list[Any] = []

    class Looking(Filter):
        name = "looking"

        async def chat(self, request: Any, chain: Any) -> Any:
            seen.append((request.system, dict(request.context)))
            return await chain(request)

    entry = {"description": "The page", "value": "Orders"}
    props = {"user": "ann", "run_id": "forged", "backscroll.timeline": "off", "backscroll.x": 1}
    agent = agent_of("x", instructions="Be kind.", filters=[Looking()])
    async with working(agent, valkey_url, prefix) as worker:
        found = await run(worker, "t", "r", "hi", context=[entry], forwardedProps=props)
        notes = await bodies(worker, "note")

    system, context = seen[0]
    assert system == ("Be kind.", "The page\nOrders")
    assert context == {"user": "ann", "conversation_id": "t", "run_id": "r"}
    assert "STEP_STARTED" not in [e["type"] for e in found]
    assert [note["kind"] for note in notes] == ["unknown_option"]


@asynccontextmanager
async def _both(
    far: str, near: str, prefix: str, script: Any
) -> AsyncIterator[tuple[Worker, Worker]]:
    """Give a worker whose connections can be cut, and one that looks on."""
    async with working(agent_of(Said("x")), near, prefix) as looking:
        async with working(agent_of(script), far, prefix) as worker:
            yield worker, looking


async def test_a_pause_goes_on_in_another_run(valkey_url: str, prefix: str) -> None:
    """The run that asks leaves a pause behind, the one that answers carries it out."""
    paid: list[str] = []

    @tool(sensitive=True)
    def pay(to: str) -> str:
        """Pay."""
        paid.append(to)
        return "paid"

    yes = [{"interruptId": "call_pay", "status": "resolved", "payload": True}]
    agent = agent_of(calls(call("pay", {"to": "ann"})), "done", tools=[pay])
    async with working(agent, valkey_url, prefix) as worker:
        asking = await run(worker, "t", "r1", "hi")
        before = await status_of(worker, "r1")
        found = await run(worker, "t", "r2", "hi", "and?", resume=yes)
        after = await status_of(worker, "r2")

        await check_end(worker, found)
    assert asking[-1]["outcome"]["type"] == "interrupt" and before == ("waiting", "")
    assert found[-1]["outcome"] == {"type": "success"} and after == ("ok", "")
    assert paid == ["ann"]


async def test_a_pause_that_nobody_carried_out_waits_on(valkey_url: str, prefix: str) -> None:
    """hitl-04: a filter raises before anything was done: the question is open again."""

    class Raises(Filter):
        name = "raises"

        async def turn(self, request: Any, chain: Any) -> Any:
            if request.is_resume:
                raise RuntimeError("boom")
            return await chain(request)

    @tool(sensitive=True)
    def pay() -> str:
        """Pay."""
        return "paid"

    yes = [{"interruptId": "call_pay", "status": "resolved", "payload": True}]
    agent = agent_of(calls(call("pay", {})), tools=[pay], filters=[Raises()])
    async with working(agent, valkey_url, prefix) as worker:
        await run(worker, "t", "r1", "hi")
        broken = await run(worker, "t", "r2", "hi", "and?", resume=yes)
        kept = await worker.registry.answers.pauses.read(key())

        await check_end(worker, broken)
    assert broken[-1]["code"] == "internal_error"
    assert [i.id for i in kept.open_questions] == ["call_pay"]
    assert [m.text for m in kept.said] == ["and?"]


async def test_a_tool_that_is_gone(valkey_url: str, prefix: str) -> None:
    """Approved while it was there and gone when it is to run: the question is open again."""

    @tool(sensitive=True)
    def pay() -> str:
        """Pay."""
        return "paid"

    yes = [{"interruptId": "call_pay", "status": "resolved", "payload": True}]
    model = StreamingModel([calls(call("pay", {}))])
    async with working(agent_of(model=model, tools=[pay]), valkey_url, prefix) as worker:
        await run(worker, "t", "r1", "hi")
    async with working(agent_of(model=model), valkey_url, prefix) as worker:
        worker.registry.answers._tools = ToolSet([pay])
        found = await run(worker, "t", "r2", "hi", resume=yes)
        kept = await worker.registry.answers.pauses.read(key())

        await check_end(worker, found)
    assert found[-1]["type"] == "RUN_ERROR"
    assert [i.id for i in kept.open_questions] == ["call_pay"]
