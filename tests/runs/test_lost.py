"""Runs whose worker is gone: they end, once, and nothing of them dangles."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from agui_checker import assert_valid
from backscroll.agui.options import AgentRules
from backscroll.agui.plan import Stored
from backscroll.agui.reconcile import reconcile
from backscroll.kernel.message import Message, Role, assistant, tool_call, tool_result, user
from backscroll.kernel.model import CallArgs, CallOpened, Reasoning, Text
from backscroll.kernel.ports import RandomIds
from backscroll.kernel.texts import Texts
from backscroll.kernel.tool import tool
from backscroll.runs.lost import keepable
from backscroll.runs.worker import Worker
from backscroll.store.run_record import StartRequest
from played_model import Streamed, call, calls
from working import (
    LOCAL_OWNER,
    agent_of,
    asked,
    events,
    key,
    run,
    until_ended,
    until_entry,
    working,
)


async def lost(script: Any, until: str, url: str, prefix: str, **fields: Any) -> Worker:
    """Let a worker die when its run has said this much; return another that looks on."""
    rules = fields.pop("rules", None)
    async with working(agent_of(script, **fields), url, prefix, agent_rules=rules) as worker:
        await worker.registry.submit(LOCAL_OWNER, asked("t", "r1", "hi"))
        await until_entry(worker, "r1", until)
    return worker


async def ended(worker: Worker) -> list[Any]:
    """Let the lease of the lost run expire, end it, and return what clients saw."""
    await worker.clients.write.hset(worker.keys.meta(key()), "lease", 1)
    await worker.registry.lost.end_thread(key())
    found = await events(worker)
    assert_valid(found)
    assert [e["type"] for e in found].count("RUN_ERROR") == 1
    assert (found[-1]["type"], found[-1]["code"]) == ("RUN_ERROR", "worker_lost")
    return found


async def history(worker: Worker) -> list[Message]:
    """Return the stored messages."""
    return [stored.message for stored in await worker.history.stored(key(), 1, 99)]


async def test_a_worker_lost_in_mid_text(valkey_url: str, prefix: str) -> None:
    """What was said is closed and kept, marked incomplete; the next turn works."""
    script = Streamed([Reasoning("hm "), Text("half an "), asyncio.Event()])
    await lost(script, "TEXT_MESSAGE_CONTENT", valkey_url, prefix)
    async with working(agent_of("whole"), valkey_url, prefix) as worker:
        found = await ended(worker)
        stored = await history(worker)
        again = await run(worker, "t", "r2", "hi", "again")
        info = await worker.registry.store.run_info(LOCAL_OWNER, "r1")

    assert found[-1]["metadata"] == {"backscroll": {"retryable": True}}
    end = next(e for e in found if e["type"] == "TEXT_MESSAGE_END")
    assert end["metadata"] == {"backscroll": {"incomplete": True}}
    assert (
        stored[1].incomplete and stored[1].text == "half an " and stored[1].id == end["messageId"]
    )
    assert again[-1]["outcome"] == {"type": "success"}
    assert info is not None and (info.status, info.error) == ("error", "worker_lost")


async def test_a_worker_lost_in_mid_arguments(valkey_url: str, prefix: str) -> None:
    """A call received in part is closed, run by nobody, and taken back by a snapshot."""
    script = Streamed(
        [Text("Let me "), CallOpened("c1", "add"), CallArgs("c1", '{"a":'), asyncio.Event()]
    )
    await lost(script, "TOOL_CALL_ARGS", valkey_url, prefix)
    async with working(agent_of("whole"), valkey_url, prefix) as worker:
        found = await ended(worker)
        stored = await history(worker)

    snapshot = next(e for e in found if e["type"] == "MESSAGES_SNAPSHOT")
    assert [m.get("toolCalls") for m in snapshot["messages"]] == [None, None]
    assert [m.role for m in stored] == [Role.USER, Role.ASSISTANT] and not stored[1].tool_calls


async def test_a_worker_lost_while_a_tool_runs(valkey_url: str, prefix: str) -> None:
    """Its outcome is unknown, which client and model are told; a finished one keeps its own."""

    @tool
    async def hang() -> str:
        """Take for ever."""
        await asyncio.Event().wait()
        return ""

    @tool
    def add(a: int) -> int:
        """Add."""
        return a

    script = calls(call("add", {"a": 7}), call("hang"))
    await lost(script, "TOOL_CALL_RESULT", valkey_url, prefix, tools=[add, hang])
    async with working(agent_of("whole"), valkey_url, prefix) as worker:
        found = await ended(worker)
        stored = await history(worker)

    results = {e["toolCallId"]: e for e in found if e["type"] == "TOOL_CALL_RESULT"}
    assert results["call_add"]["content"] == "7" and "metadata" not in results["call_add"]
    unknown = Texts().outcome_unknown.format(name="hang")
    assert results["call_hang"]["content"] == unknown
    assert results["call_hang"]["metadata"] == {"backscroll": {"outcome": "unknown"}}
    told = {m.tool_call_id: (m.text, m.outcome) for m in stored if m.role is Role.TOOL}
    assert told == {"call_add": ("7", "ok"), "call_hang": (unknown, "unknown")}


async def test_hidden_reasoning_stays_hidden(valkey_url: str, prefix: str) -> None:
    """With show_reasoning false, the snapshot of a lost run has none either."""
    rules = AgentRules("a", show_reasoning=False)
    script = Streamed([Reasoning("secret "), Text("x"), CallOpened("c1", "f"), asyncio.Event()])
    await lost(script, "TOOL_CALL_START", valkey_url, prefix, rules=rules)
    async with working(agent_of("x"), valkey_url, prefix, agent_rules=rules) as worker:
        found = await ended(worker)

    assert any(e["type"] == "MESSAGES_SNAPSHOT" for e in found)
    assert "REASONING" not in str([e["type"] for e in found])
    assert "reasoning" not in str([e.get("messages") for e in found])


async def test_a_worker_lost_before_it_said_anything(valkey_url: str, prefix: str) -> None:
    """There is nothing to close but the step."""
    await lost(Streamed([asyncio.Event()]), "STEP_STARTED", valkey_url, prefix)
    async with working(agent_of("x"), valkey_url, prefix) as worker:
        found = await ended(worker)
        stored = await history(worker)

    assert [e["type"] for e in found] == [
        "RUN_STARTED",
        "STEP_STARTED",
        "STEP_FINISHED",
        "RUN_ERROR",
    ]
    assert len(stored) == 1


async def test_a_run_with_a_lease_is_let_be(valkey_url: str, prefix: str) -> None:
    """Nobody ends what a living worker writes, and a thread without a run has none to end."""
    await lost(Streamed([asyncio.Event()]), "STEP_STARTED", valkey_url, prefix)
    async with working(agent_of("x"), valkey_url, prefix) as worker:
        await worker.registry.lost.end_thread(key())
        await worker.registry.lost.end_thread(key("unknown"))

        assert (await worker.log.head(key())).run == "r1"


async def test_the_sweep_finds_what_is_lost(
    valkey_url: str, prefix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every worker looks for expired leases; of several only one ends the run."""
    monkeypatch.setattr("backscroll.runs.worker.SWEEP_S", 0.05)
    await lost(Streamed([Text("x"), asyncio.Event()]), "TEXT_MESSAGE_CONTENT", valkey_url, prefix)
    async with (
        working(agent_of("x"), valkey_url, prefix) as one,
        working(agent_of("x"), valkey_url, prefix) as two,
    ):
        await one.clients.write.hset(one.keys.meta(key()), "lease", 1)
        await one.clients.write.zadd(one.keys.leases(), {key().key: 1})
        await until_ended(two, "r1")
        found = await events(two)

    assert_valid(found)
    assert [e["type"] for e in found].count("RUN_ERROR") == 1


async def test_a_late_worker_is_shut_out(
    valkey_url: str, prefix: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Of two that claim one after the other the first one writes nothing more."""
    await lost(Streamed([Text("x"), asyncio.Event()]), "TEXT_MESSAGE_CONTENT", valkey_url, prefix)
    caplog.set_level("INFO")
    async with working(agent_of("x"), valkey_url, prefix) as worker:
        meta = worker.keys.meta(key())
        await worker.clients.write.hset(meta, "lease", 1)
        first = await worker.registry.store.claim_lost(key(), 0)
        second = await worker.registry.store.claim_lost(key(), 15)
        assert first is not None and second is not None
        await worker.registry.lost._end(first)
        before = (await events(worker))[-1]["type"]
        await worker.registry.lost._end(second)
        found = await events(worker)

    assert before == "TEXT_MESSAGE_CONTENT" and "ended by another worker" in caplog.text
    assert_valid(found)


async def test_a_long_run_is_read_in_pages(
    valkey_url: str, prefix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many entries the lost run wrote, all of them count."""
    monkeypatch.setattr("backscroll.runs.lost.PAGE", 3)
    words = [Text(f"{n} ") for n in range(40)]
    script = Streamed([*words, Reasoning("end"), asyncio.Event()])
    await lost(script, "REASONING_MESSAGE_CONTENT", valkey_url, prefix)
    async with working(agent_of("x"), valkey_url, prefix) as worker:
        await ended(worker)
        stored = await history(worker)

    assert stored[1].text == "".join(f"{n} " for n in range(40))


def test_what_may_be_kept() -> None:
    """Text and results; a call that nobody ran is left out, an empty reply too."""
    wanted = tool_call("c", "add")
    result = tool_result("c", "add", "3", id="t")
    shown = [assistant("a", [wanted], id="m1"), assistant(None, [wanted], id="m2"), result]

    kept = keepable([*shown, user("u", "u")])

    assert [m.id for m in kept] == ["m1", "t"]
    assert kept[0].incomplete and not kept[0].tool_calls


async def test_a_worker_lost_while_calls_wait(valkey_url: str, prefix: str) -> None:
    """hitl-04: a run that only kept a result is lost; what is waited for stays answerable."""
    pick = {"name": "pick", "description": "Pick.", "parameters": {"type": "object"}}
    picked = {"id": "t1", "role": "tool", "toolCallId": "call_a", "content": "red"}
    batch = calls(call("pick", {}, "call_a"), call("pick", {}, "call_b"))
    async with working(agent_of(batch, "thanks"), valkey_url, prefix) as worker:
        await run(worker, "t", "r0", "hi", tools=[pick])
        await worker.registry.store.start(await _start_of(worker, picked))
        found = await ended(worker)
        answer = {**picked, "id": "t2", "toolCallId": "call_b"}
        after = await run(worker, "t", "r2", "hi", picked, answer, tools=[pick])

    assert not any(e["type"] == "TOOL_CALL_RESULT" for e in found)
    assert after[-1]["outcome"] == {"type": "success"}


async def test_a_worker_lost_while_nobody_can_tell_what_waits(valkey_url: str, prefix: str) -> None:
    """pause_unreadable: the run is ended, the calls it left waiting are left alone."""
    pick = {"name": "pick", "description": "Pick.", "parameters": {"type": "object"}}
    picked = {"id": "t1", "role": "tool", "toolCallId": "call_a", "content": "red"}
    batch = calls(call("pick", {}, "call_a"), call("pick", {}, "call_b"))
    async with working(agent_of(batch), valkey_url, prefix) as worker:
        await run(worker, "t", "r0", "hi", tools=[pick])
        await worker.registry.store.start(await _start_of(worker, picked))
        await worker.clients.write.hset(worker.keys.pause(key()), "open", b"{}")
        found = await ended(worker)
        stored = await history(worker)

    assert not any(e["type"] == "TOOL_CALL_RESULT" for e in found)
    assert [m.tool_call_id for m in stored if m.tool_call_id] == ["call_a"]


async def test_a_worker_lost_while_an_answer_is_carried_out(valkey_url: str, prefix: str) -> None:
    """protocol-05: the call's outcome is unknown, and what was said besides is kept behind it."""
    waits = asyncio.Event()

    @tool(sensitive=True)
    async def pay() -> str:
        """Pay, slowly."""
        waits.set()
        await asyncio.Event().wait()
        return "never"

    yes = [{"interruptId": "call_pay", "status": "resolved", "payload": True}]
    agent = agent_of(calls(call("pay", {})), tools=[pay])
    async with working(agent, valkey_url, prefix) as worker:
        await run(worker, "t", "r0", "hi")
        request = asked("t", "r1", "hi", "and hurry", resume=yes)
        await worker.registry.submit(LOCAL_OWNER, request)
        await waits.wait()
    async with working(agent_of("fine"), valkey_url, prefix) as other:
        await ended(other)
        stored = await history(other)

    assert [m.role for m in stored] == ["user", "assistant", "tool", "user"]
    assert stored[2].outcome == "unknown" and stored[3].text == "and hurry"


async def _start_of(worker: Worker, *messages: Any) -> StartRequest:
    """Return the start of a run that keeps results and would end at once."""
    registry = worker.registry
    request = asked("t", "r1", "hi", *messages)
    waiting = await registry.answers.waiting(key())
    stored = await worker.history.read(key())
    known = Stored(tuple(m.message for m in stored.live), True, waiting)
    plan = reconcile(request, known, RandomIds(), Texts(), AgentRules("a"))
    encoder = registry._assembly.encoder(request)
    return registry._assembly.start(key(), request, "mark", stored, plan, encoder)
