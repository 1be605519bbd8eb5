"""A batch runs its calls, or answers them without running, in call order."""

from __future__ import annotations

import asyncio
import contextvars
import dataclasses
import threading
from typing import Any

import pytest
from agent.agents import Events, QuickClock, pair_of_tools
from backscroll.agent.batch import Batch, Tooling, execute_batch, execute_runs
from backscroll.agent.events import Reported, ToolFinished, ToolStarted
from backscroll.agent.executors import ConcurrentExecutor, PoolExecutor, SequentialExecutor
from backscroll.agent.reporter import Reporter
from backscroll.agent.tool_run import ToolRun
from backscroll.kernel.client import ChatClient
from backscroll.kernel.errors import LeaseLost, SinkError, ToolError
from backscroll.kernel.filter import Filter
from backscroll.kernel.message import ToolCall
from backscroll.kernel.ports import CancelToken, SystemClock
from backscroll.kernel.request import ToolResponse
from backscroll.kernel.tool import Slot, Tool, ToolContext, ToolResult, ToolRetry, ToolSet, tool
from deadlines import scaled
from hypothesis import given, settings
from hypothesis import strategies as st
from played_model import call

SCOPE: Any = {"agent": "a", "conversation_id": "t", "turn_id": "turn", "run_id": None}
VAR: contextvars.ContextVar[str] = contextvars.ContextVar("VAR", default="unset")


class Shop:
    """Runs batches over some tools and keeps their events."""

    def __init__(self, *tools: Tool, executor: Any = None, **fields: Any) -> None:
        self.events, self.clock, self.cancel = Events(), QuickClock(), CancelToken()
        filters = fields.pop("filters", ())
        chosen = executor or ConcurrentExecutor()
        clock = fields.pop("clock", self.clock)
        client = ChatClient(tools=tools, filters=filters, executor=chosen, clock=clock)
        reporter = Reporter(self.events, SCOPE)
        slots = fields.pop("slots", {})
        self.tooling = Tooling(client, ToolSet(tools), chosen, slots, self.cancel, reporter)

    async def run(self, *wanted: ToolCall, context: Any = None, **fields: Any) -> Batch:
        """Run one batch."""
        return await execute_batch(self.tooling, wanted, context or {}, **fields)


def contents(batch: Batch) -> list[Any]:
    """Return the contents of a batch's messages, in order."""
    return [message.content for message in batch.messages]


async def test_tools_that_wait_for_each_other() -> None:
    """RUN1: two async tools of one batch run at once by default."""
    meet = asyncio.Barrier(2)

    @tool
    async def wait() -> str:
        """Wait for the other."""
        await asyncio.wait_for(meet.wait(), 5)
        return "met"

    batch = await Shop(wait).run(call("wait", id="1"), call("wait", id="2"))

    assert contents(batch) == ["met", "met"]


async def test_one_serial_tool_makes_the_batch_serial() -> None:
    """RUN2: with one serial tool of three nothing overlaps, and results are in call order."""
    trace: list[str] = []
    a, b = pair_of_tools(trace)

    batch = await Shop(a, b).run(call("a", id="1"), call("b", id="2"), call("a", id="3"))

    assert trace == ["a-start", "a-end", "b-start", "b-end", "a-start", "a-end"]
    assert contents(batch) == ["a", "b", "a"]


async def test_results_are_in_call_order() -> None:
    """RUN3: a slow first call comes first in messages and records, its event comes last."""
    first_may_end = asyncio.Event()

    @tool
    async def slow() -> str:
        """Be slow."""
        await first_may_end.wait()
        return "slow"

    @tool
    async def fast() -> str:
        """Be fast."""
        first_may_end.set()
        return "fast"

    shop = Shop(slow, fast)
    batch = await shop.run(call("slow"), call("fast"))

    assert contents(batch) == ["slow", "fast"]
    assert [record.content for record in batch.records] == ["slow", "fast"]
    finished = shop.events.of(ToolFinished)
    assert [event.message.content for event in finished] == ["fast", "slow"]
    assert {event.message for event in finished} == set(batch.messages)


async def test_plain_functions_leave_the_loop_alone() -> None:
    """RUN4: a plain function runs off the loop and reads the caller's context variables."""
    started, release = threading.Event(), threading.Event()

    @tool
    def block() -> str:
        """Block a thread."""
        started.set()
        return VAR.get() if release.wait(5) else "nobody else could run"

    VAR.set("set")
    task = asyncio.ensure_future(Shop(block).run(call("block")))
    async with asyncio.timeout(scaled(5)):
        while not started.is_set():  # noqa: ASYNC110 - a thread sets it
            await asyncio.sleep(0.001)
    release.set()

    assert contents(await task) == ["set"]


async def test_a_time_limit() -> None:
    """RUN6: a tool over its limit is a transient failure, soon; with a retry it is one record."""

    @tool(timeout_s=0.05, retry=ToolRetry(1, 0.0))
    async def slow() -> str:
        """Be slow."""
        await asyncio.Event().wait()
        return "never"

    shop = Shop(slow)
    async with asyncio.timeout(scaled(5)):
        batch = await shop.run(call("slow"))

    (record,) = batch.records
    assert record.failure is not None and record.failure.kind == "transient"
    assert record.attempts == 2
    assert str(record.content).startswith("error: slow timed out after 0.05 s.")
    assert len(shop.events.of(ToolStarted)) == len(shop.events.of(ToolFinished)) == 1


async def test_time_in_filters_does_not_count() -> None:
    """RUN6: a filter that takes longer than the limit causes no timeout."""

    async def slow(request: Any, chain: Any) -> Any:
        await asyncio.sleep(0.1)
        return await chain(request)

    @tool(timeout_s=0.05)
    async def quick() -> str:
        """Be quick."""
        return "ok"

    batch = await Shop(quick, filters=[Filter.of("slow", tool=slow)]).run(call("quick"))

    assert contents(batch) == ["ok"]


async def test_retries() -> None:
    """RUN7: transient failures are tried again after 0.2 s and 0.4 s, others are not."""
    failures = [ToolError("busy", "transient"), ToolError("busy", "transient")]

    @tool(retry=True)
    async def flaky() -> str:
        """Fail twice."""
        if failures:
            raise failures.pop()
        return "ok"

    @tool(retry=True)
    async def wrong() -> str:
        """Fail for good."""
        raise ValueError

    shop = Shop(flaky, wrong)
    first = await shop.run(call("flaky"))
    second = await shop.run(call("wrong"))

    assert contents(first) == ["ok"]
    assert first.records[0].attempts == 3
    assert shop.clock.waits == [0.2, 0.4]
    assert second.records[0].attempts == 1
    assert contents(second) == ["error: ValueError"]


async def test_a_closed_pool() -> None:
    """RUN8: calls of a closed pool fail with kind `environment`, plain or not."""

    @tool
    async def look() -> str:
        """Look."""
        return "never"

    shop = Shop(look, executor=PoolExecutor(2))
    await shop.tooling.executor.aclose()

    batch = await shop.run(call("look", id="1"), call("look", id="2"))

    assert [failure.kind for failure in batch.failures] == ["environment", "environment"]
    assert len(shop.events.of(ToolFinished)) == 2


async def test_tools_by_default_share_a_context() -> None:
    """CTX3, CTX5: all calls see the context of the round's start and cannot assign to it."""
    seen: list[Any] = []

    @tool
    async def write(value: int, ctx: ToolContext) -> ToolResult:
        """Write."""
        seen.append(ctx.get("x"))
        with pytest.raises(TypeError):
            ctx["x"] = 1  # type: ignore[index]
        return ToolResult("ok", writes={"x": value})

    for executor in (ConcurrentExecutor(), SequentialExecutor()):
        shop = Shop(write, executor=executor)
        calls = [call("write", {"value": n}, str(n)) for n in (1, 2)]
        batch = await shop.run(*calls, context={"x": 0})

        assert batch.context["x"] == 2
        assert batch.conflicts == ("x",)
    assert seen == [0, 0, 0, 0]


async def test_unrunnable_calls_are_answered() -> None:
    """RUN9, RUN10, RUN14: unknown names and bad arguments cost nothing; blank ones are `{}`."""
    runs: list[str] = []

    @tool
    async def look() -> str:
        """Look."""
        runs.append("look")
        return "ok"

    shop = Shop(look)
    bad, ghost = call("look", '{"ids":[1,2', "2"), call("lok", id="3")
    batch = await shop.run(call("look", "", "1"), bad, ghost)

    assert contents(batch)[0] == "ok"
    assert str(contents(batch)[1]).startswith("error: the arguments of look are not a JSON object")
    assert 'no tool named "lok". Available tools: look.' in str(contents(batch)[2])
    assert runs == ["look"]
    assert len(shop.events.of(ToolFinished)) == 3
    assert len(shop.events.of(ToolStarted)) == 1


async def test_what_a_tool_returns() -> None:
    """RUN11: a dict is content as it is; only a ToolResult writes."""

    @tool
    async def plain() -> dict[str, Any]:
        """Return a dict."""
        return {"result": 1, "writes": {"y": 1}}

    @tool
    async def writing() -> ToolResult:
        """Write."""
        return ToolResult("1", writes={"x": 2})

    batch = await Shop(plain, writing).run(call("plain"), call("writing"))

    assert contents(batch) == ['{"result":1,"writes":{"y":1}}', "1"]
    assert dict(batch.context) == {"x": 2}
    assert batch.written == ("x",)
    assert batch.messages[1].writes == {"x": 2}


async def test_a_filter_that_denies() -> None:
    """RUN12: what a filter answers is the content, without failure and writes."""

    async def deny(request: Any, chain: Any) -> ToolResponse:
        return ToolResponse("not today")

    @tool
    async def look() -> ToolResult:
        """Look."""
        return ToolResult("ok", writes={"x": 1})

    batch = await Shop(look, filters=[Filter.of("deny", tool=deny)]).run(call("look"))

    assert contents(batch) == ["not today"]
    assert batch.failures == () and dict(batch.context) == {}


async def test_a_filter_that_answers_nonsense() -> None:
    """Content that cannot be stored is a failure, and a number is written as text."""

    async def odd(request: Any, chain: Any) -> ToolResponse:
        return ToolResponse(7 if request.call_id == "1" else object())

    @tool
    async def look() -> str:
        """Look."""
        return "ok"

    shop = Shop(look, filters=[Filter.of("odd", tool=odd)])
    batch = await shop.run(call("look", id="1"), call("look", id="2"))

    assert contents(batch)[0] == "7"
    assert str(contents(batch)[1]).startswith("error: the result is unreadable")


@given(st.lists(st.tuples(st.sampled_from(["write", "fail", "unknown"]), st.integers(0, 3))))
@settings(deadline=None)
async def test_any_batch_is_reduced_in_call_order(kinds: list[tuple[str, int]]) -> None:
    """RUN3, RUN15, CTX3: whoever ends first, each call has its record, and only good ones write."""

    @tool
    async def write(n: int, turns: int) -> ToolResult:
        """Write, after some turns of the loop."""
        for _ in range(turns):
            await asyncio.sleep(0)
        return ToolResult(str(n), writes={"seen": n, "last": n})

    @tool
    async def fail(n: int, turns: int) -> str:
        """Fail, after some turns of the loop."""
        for _ in range(turns):
            await asyncio.sleep(0)
        raise ValueError(str(n))

    wanted = [call(k, {"n": n, "turns": t}, f"c{n}") for n, (k, t) in enumerate(kinds)]
    slots = {"seen": Slot(list, lambda seen, new: [*seen, new])}
    batch = await Shop(write, fail, slots=slots).run(*wanted, context={"a": 1})

    good = [n for n, (kind, _) in enumerate(kinds) if kind == "write"]
    ids = [item.id for item in wanted]
    assert [m.tool_call_id for m in batch.messages] == ids == [r.call_id for r in batch.records]
    assert [n for n, r in enumerate(batch.records) if r.outcome == "ok"] == good
    assert len({m.id for m in batch.messages}) == len(kinds)
    expected = {"a": 1} | ({"seen": good, "last": good[-1]} if good else {})
    assert dict(batch.context) == expected and len(batch.conflicts) == (len(good) > 1)


async def test_two_of_three_fail() -> None:
    """RUN15: three results, two failures, and the third one's write applies."""

    @tool
    async def pick(n: int) -> ToolResult:
        """Pick."""
        if n:
            raise ValueError(f"no {n}")
        return ToolResult("ok", writes={"x": n})

    batch = await Shop(pick).run(*(call("pick", {"n": n}, str(n)) for n in (1, 2, 0)))

    assert contents(batch) == ["error: no 1", "error: no 2", "ok"]
    assert len(batch.failures) == 2
    assert dict(batch.context) == {"x": 0}


async def test_answers_given_beforehand() -> None:
    """A call with an answer does not run; its result is the answer."""

    @tool
    async def look() -> str:
        """Look."""
        return "ok"

    answer = ToolResponse("The user did not allow it.", outcome="refused")
    runs = [ToolRun(call("look", id="1"), "m1", answer), ToolRun(call("look", id="2"), "m2")]
    batch = await execute_runs(Shop(look).tooling, runs, {}, "a1")

    assert [(m.id, m.outcome) for m in batch.messages] == [("m1", "refused"), ("m2", "ok")]


async def test_edited_arguments() -> None:
    """A call runs with the arguments put in place; the record keeps both."""

    @tool
    async def look(at: str) -> str:
        """Look."""
        return f"saw {at}"

    shop = Shop(look)
    run = ToolRun(call("look", {"at": "a"}, "1"), "m1", edited_args={"at": "b"}, start=2)
    batch = await execute_runs(shop.tooling, [run], {}, "a1")

    (record,), (started,) = batch.records, shop.events.of(ToolStarted)
    assert (record.content, record.args, record.edited_args) == ("saw b", {"at": "a"}, {"at": "b"})
    assert (started.args, started.attempt) == ({"at": "b"}, 2)


@pytest.mark.parametrize("is_cancelled", [False, True])
async def test_held_failures(is_cancelled: bool) -> None:
    """Failures of the environment are held without an event; a cancel lets them out."""

    @tool
    async def login() -> str:
        """Log in."""
        if is_cancelled:
            shop.cancel.cancel()
        raise ToolError("no key", "environment")

    shop = Shop(login, executor=SequentialExecutor())
    tooling = dataclasses.replace(shop.tooling, holds_environment=True)
    batch = await execute_batch(tooling, [call("login")], {})

    assert len(batch.held) == (0 if is_cancelled else 1)
    assert len(batch.messages) == len(shop.events.of(ToolFinished)) == (1 if is_cancelled else 0)


async def test_a_cancel_before_the_batch() -> None:
    """Calls that had not begun are told so."""

    @tool
    async def look() -> str:
        """Look."""
        return "ok"

    shop = Shop(look)
    shop.cancel.cancel()
    batch = await shop.run(call("look"))

    assert contents(batch) == ["Not executed: the run was stopped first."]
    assert batch.messages[0].outcome == "cancelled"
    assert shop.events.of(ToolStarted) == []


async def test_a_tool_that_ignores_the_cancel() -> None:
    """The batch ends within the grace time, with one result and one event for the call."""
    began, release = asyncio.Event(), asyncio.Event()

    @tool
    async def stubborn() -> str:
        """Ignore the cancel."""
        began.set()
        while not release.is_set():
            try:
                await release.wait()
            except asyncio.CancelledError:
                continue
        return "late"

    shop = Shop(stubborn)
    task = asyncio.ensure_future(shop.run(call("stubborn")))
    await asyncio.wait_for(began.wait(), 5)
    shop.cancel.cancel()
    batch = await asyncio.wait_for(task, 5)
    release.set()

    assert str(contents(batch)[0]).startswith("Interrupted:")
    stuck = [task for task in asyncio.all_tasks() if "_waiting" in repr(task)]
    await asyncio.wait(stuck, timeout=5)
    assert len(shop.events.of(ToolFinished)) == 1
    (note,) = [event.report for event in shop.events.of(Reported)]
    assert note.text == "stubborn: it does not heed the cancel"


async def test_an_abandoned_thread_is_noted() -> None:
    """A plain function that is cancelled goes on in its thread, and a note says so."""
    began, release = asyncio.Event(), threading.Event()
    loop = asyncio.get_running_loop()

    @tool
    def block() -> str:
        """Block a thread."""
        loop.call_soon_threadsafe(began.set)
        release.wait(10)
        return "late"

    shop = Shop(block)
    task = asyncio.ensure_future(shop.run(call("block")))
    await asyncio.wait_for(began.wait(), 5)
    shop.cancel.cancel()
    batch = await asyncio.wait_for(task, 5)
    release.set()

    assert str(contents(batch)[0]).startswith("Interrupted:")
    (note,) = [event.report for event in shop.events.of(Reported)]
    assert (note.kind, note.text) == ("tool_abandoned", "block: its thread goes on")


async def test_a_lost_lease_is_not_contained() -> None:
    """A lease that is lost while a tool runs ends everything."""

    @tool
    async def look() -> str:
        """Lose the lease."""
        raise LeaseLost("t", 1, 2)

    with pytest.raises(LeaseLost):
        await Shop(look).run(call("look", id="1"), call("look", id="2"))


async def test_a_sink_that_fails_during_a_batch() -> None:
    """What ran keeps its result, what had begun is open, what had not is missing."""

    @tool
    async def look(n: int) -> str:
        """Look."""
        return f"saw {n}"

    async def sink(event: Any) -> None:
        if isinstance(event, ToolStarted) and event.call_id == "2":
            raise OSError("log is gone")

    shop = Shop(look, executor=SequentialExecutor())
    tooling = Tooling(
        shop.tooling.client, shop.tooling.tools, SequentialExecutor(), {}, shop.cancel,
        Reporter(sink, SCOPE),
    )  # fmt: skip
    wanted = [call("look", {"n": n}, str(n)) for n in (1, 2, 3)]
    batch = await execute_batch(tooling, wanted, {})

    assert isinstance(batch.error, SinkError)
    assert [message.tool_call_id for message in batch.messages] == ["1", "2"]
    assert contents(batch)[0] == "saw 1"
    assert str(contents(batch)[1]).startswith("Interrupted:")


async def test_a_reducer_that_fails() -> None:
    """The results are kept, and the error comes with them."""

    @tool
    async def write() -> ToolResult:
        """Write."""
        return ToolResult("ok", writes={"x": 1})

    def broken(seen: Any, new: Any) -> Any:
        raise ValueError("no")

    batch = await Shop(write, slots={"x": Slot(list, broken)}).run(call("write"))

    assert contents(batch) == ["ok"]
    assert isinstance(batch.error, ValueError)


async def test_the_turns_own_task_is_cancelled() -> None:
    """When our own task is cancelled, the tools are ended and nothing is reported."""
    began, ended = asyncio.Event(), asyncio.Event()

    @tool
    async def wait() -> str:
        """Wait."""
        began.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()
        return "never"

    shop = Shop(wait, clock=SystemClock())
    task = asyncio.ensure_future(shop.run(call("wait")))
    await asyncio.wait_for(began.wait(), 5)
    task.cancel()

    with pytest.raises(asyncio.CancelledError):
        await task
    await asyncio.wait_for(ended.wait(), 5)
    assert shop.events.of(ToolFinished) == []
