"""Joining a thread: the prelude of a real log, and that with its tail it is the whole."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from agui_checker import assert_valid
from agui_client import Client
from backscroll.agui.join import Prelude
from backscroll.agui.options import AgentRules
from backscroll.agui.refusal import RequestRefused
from backscroll.kernel.errors import ModelError
from backscroll.kernel.tool import tool
from backscroll.runs.joining import Joiner
from backscroll.runs.registry import RunRules
from backscroll.runs.runner import RunTimes
from backscroll.runs.worker import Worker
from deadlines import scaled
from played_model import Said, Streamed, call, calls
from working import (
    LOCAL_OWNER,
    agent_of,
    asked,
    begun,
    events,
    held,
    key,
    run,
    until_ended,
    working,
)

RULES = AgentRules("a")
MOST = 1_000_000


def joiner(worker: Worker, rules: AgentRules = RULES) -> Joiner:
    """Return the joiner of a worker."""
    return Joiner(worker.log, worker.registry.store, rules)


def told(prelude: Prelude) -> list[Any]:
    """Return the events of a prelude."""
    return [json.loads(text) for text in prelude.texts]


def types(prelude: Prelude) -> list[str]:
    """Return the types of a prelude's events."""
    return [event["type"] for event in told(prelude)]


@tool
def add(a: int) -> int:
    """Add."""
    return a


async def test_a_thread_nobody_knows(valkey_url: str, prefix: str) -> None:
    """A well-formed prelude without messages, so that it tells nobody that it is unknown."""
    async with working(agent_of("x"), valkey_url, prefix) as worker:
        prelude = await joiner(worker).of_thread(key("nope"), MOST)

    assert types(prelude) == ["RUN_STARTED", "RUN_FINISHED"]
    assert told(prelude)[0]["runId"] == "backscroll-join" and str(prelude.cursor) == "0"
    assert_valid(prelude.texts)


async def test_an_idle_thread(valkey_url: str, prefix: str) -> None:
    """protocol-11: one snapshot in stored order; the cursor is that of the head."""
    async with working(agent_of("one", "two"), valkey_url, prefix) as worker:
        await run(worker, "t", "r1", "hi")
        await run(worker, "t", "r2", "hi", "again")
        prelude = await joiner(worker).of_thread(key(), MOST)
        head = await worker.log.head(key())

    assert types(prelude) == ["RUN_STARTED", "MESSAGES_SNAPSHOT", "RUN_FINISHED"]
    shown = [m["content"] for m in told(prelude)[1]["messages"]]
    assert shown == ["hi", "one", "again", "two"]
    assert told(prelude)[0]["runId"] == "r2"
    assert (prelude.cursor.seq, prelude.cursor.epoch) == (head.seq, head.epoch)


@pytest.mark.parametrize("status", ["cancelled", "error"])
async def test_how_the_last_run_ended(valkey_url: str, prefix: str, status: str) -> None:
    """A prelude raises no error; what happened is in its metadata."""
    script = held() if status == "cancelled" else ModelError("auth", "no")
    async with working(agent_of(script), valkey_url, prefix) as worker:
        await worker.registry.submit(LOCAL_OWNER, asked("t", "r1", "hi"))
        if status == "cancelled":
            await worker.registry.stop(LOCAL_OWNER, "r1")
        await until_ended(worker, "r1")
        prelude = await joiner(worker).of_thread(key(), MOST)

    last = told(prelude)[-1]
    about = {"status": status, **({"code": "auth"} if status == "error" else {})}
    assert (last["type"], last["outcome"]) == ("RUN_FINISHED", {"type": "success"})
    assert last["metadata"] == {"backscroll": {"last_run": about}}


async def test_pending_calls_are_named(valkey_url: str, prefix: str) -> None:
    """Calls that wait for the client are in the outcome of an idle thread."""
    wanted = {"id": "c1", "type": "function", "function": {"name": "pick", "arguments": "{}"}}
    messages = [
        {"id": "a1", "role": "assistant", "toolCalls": [wanted, {**wanted, "id": "c2"}]},
        {"id": "t1", "role": "tool", "toolCallId": "c1", "content": "red"},
    ]
    offered = [{"name": "pick", "description": "Pick.", "parameters": {"type": "object"}}]
    async with working(agent_of("x"), valkey_url, prefix) as worker:
        await run(worker, "t", "r1", "hi", *messages, tools=offered)
        prelude = await joiner(worker).of_thread(key(), MOST)

    assert told(prelude)[-1]["outcome"] == {"type": "success", "pendingToolCallIds": ["c2"]}


async def test_a_live_thread(valkey_url: str, prefix: str) -> None:
    """What is open is restated whole, and the run stays open."""
    async with working(agent_of(held("half ", "an ")), valkey_url, prefix) as worker:
        await begun(worker)
        prelude = await joiner(worker).of_thread(key(), MOST)

    assert types(prelude) == [
        "RUN_STARTED",
        "MESSAGES_SNAPSHOT",
        "STEP_STARTED",
        "TEXT_MESSAGE_START",
        "TEXT_MESSAGE_CONTENT",
    ]
    assert "input" not in told(prelude)[0]


def gated(reply: Said) -> tuple[Streamed, list[asyncio.Event]]:
    """Return a reply each piece of which waits for an event."""
    deltas = reply.deltas()
    gates = [asyncio.Event() for _ in deltas]
    pairs = zip(gates, deltas, strict=True)
    return Streamed([piece for pair in pairs for piece in pair]), gates


async def test_prelude_and_tail_are_the_whole_at_every_cut(valkey_url: str, prefix: str) -> None:
    """Whoever joins while the run goes on holds in the end what everyone holds."""
    wanted = [call("add", {"a": 1}, "c1"), call("add", {"a": 2}, "c2")]
    first, gates = gated(Said("Let me see", wanted, "I think"))
    second, more = gated(Said("one two three", reasoning="so it is"))
    rules = RunRules(RunTimes(coalesce_s=0, coalesce_deltas=1))
    async with working(agent_of(first, second, tools=[add]), valkey_url, prefix, rules=rules) as (
        worker
    ):
        preludes = [await joiner(worker).of_thread(key(), MOST)]
        await worker.registry.submit(LOCAL_OWNER, asked("t", "r1", "hi"))
        async with asyncio.timeout(scaled(15)), worker.hub.watch(key()) as feed:
            for gate in (*gates, *more):
                await feed.after(preludes[-1].cursor.seq)
                preludes.append(await joiner(worker).of_thread(key(), MOST))
                gate.set()
        await until_ended(worker, "r1")
        log = await worker.log.read(key(), 0)

    whole = Client().apply(*(e.body for e in log if e.kind == "event")).shown()
    assert len({p.cursor.seq for p in preludes}) == len(preludes) == len([*gates, *more]) + 1
    for prelude in preludes[1:]:
        tail = [e.body for e in log if e.kind == "event" and e.seq > prelude.cursor.seq]
        assert Client().apply(*prelude.texts, *tail).shown() == whole, prelude.cursor
        assert_valid([*prelude.texts, *tail])


async def test_a_run_that_has_ended_is_joined_with_its_own_end(
    valkey_url: str, prefix: str
) -> None:
    """Its own terminal event, RUN_ERROR included, whatever came after it."""
    script = (ModelError("auth", "no"), "fine")
    async with working(agent_of(*script), valkey_url, prefix) as worker:
        await run(worker, "t", "r1", "hi")
        await run(worker, "t", "r2", "hi")
        first = await joiner(worker).of_run(key(), "r1", MOST)
        second = await joiner(worker).of_run(key(), "r2", MOST)

    assert not first.is_live and types(first.prelude)[-1] == "RUN_ERROR"
    assert told(first.prelude)[0]["runId"] == "r1"
    assert not second.is_live and types(second.prelude)[-1] == "RUN_FINISHED"


async def test_a_live_run_is_joined(valkey_url: str, prefix: str) -> None:
    """Attaching to a known run id: as live."""
    async with working(agent_of(held()), valkey_url, prefix) as worker:
        await begun(worker)
        joined = await joiner(worker).of_run(key(), "r1", MOST)

    assert joined.is_live and types(joined.prelude)[-1] == "TEXT_MESSAGE_CONTENT"


async def test_an_unknown_run(valkey_url: str, prefix: str) -> None:
    """It is not found."""
    async with working(agent_of("x"), valkey_url, prefix) as worker:
        with pytest.raises(RequestRefused) as error:
            await joiner(worker).of_run(key(), "nope", MOST)

    assert error.value.code == "not_found"


async def test_the_opening_pair(valkey_url: str, prefix: str) -> None:
    """First what the client's list holds of the history, then all of it."""
    async with working(agent_of("one", "two"), valkey_url, prefix) as worker:
        await run(worker, "t", "r1", "hi")
        new = {"id": "u9", "role": "user", "content": "new"}
        request = asked("t", "r2", {"id": "u1", "role": "user", "content": "hi"}, new)
        accepted = await worker.registry.submit(LOCAL_OWNER, request)
        await until_ended(worker, "r2")
        assert accepted.behind is not None
        pair = await joiner(worker).opening(key(), accepted.history, accepted.behind, MOST)

    held_, whole = [json.loads(text)["messages"] for text in pair.after]
    assert [m["content"] for m in held_] == ["hi"]
    assert [m["content"] for m in whole] == ["hi", "one", "new"]


async def test_hidden_reasoning_and_state(valkey_url: str, prefix: str) -> None:
    """The rules of the agent hold for preludes; the stored state is stated."""
    rules = AgentRules("a", show_reasoning=False)
    script = Said("x", reasoning="secret")
    async with working(agent_of(script), valkey_url, prefix, agent_rules=rules) as worker:
        await run(worker, "t", "r1", "hi")
        await worker.log.append(key(), [], fence=0, state=b'{"todos":[]}')
        prelude = await joiner(worker, rules).of_thread(key(), MOST)
        open_to_all = await joiner(worker).of_thread(key(), MOST)

    roles = [m["role"] for m in told(prelude)[1]["messages"]]
    assert roles == ["user", "assistant"]
    assert told(prelude)[2] == {**told(prelude)[2], "snapshot": {"todos": []}}
    assert "reasoning" in [m["role"] for m in told(open_to_all)[1]["messages"]]


async def test_a_long_run_is_read_in_pages(
    valkey_url: str, prefix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is open is whole, however many entries it took."""
    monkeypatch.setattr("backscroll.runs.joining.PAGE", 2)
    words = [f"{n} " for n in range(30)]
    rules = RunRules(RunTimes(coalesce_s=0, coalesce_deltas=1))
    async with working(agent_of(held(*words)), valkey_url, prefix, rules=rules) as worker:
        await worker.registry.submit(LOCAL_OWNER, asked("t", "r1", "hi"))
        async with asyncio.timeout(scaled(10)), worker.hub.watch(key()) as feed:
            cursor, seen = 0, ""
            while seen != "".join(words):
                for item in await feed.after(cursor):
                    cursor = item.seq
                    body = json.loads(item.entry.body)
                    seen += body.get("delta", "") if item.entry.kind == "event" else ""
        prelude = await joiner(worker).of_thread(key(), MOST)
        everything = await events(worker)

    assert told(prelude)[-1]["delta"] == "".join(words)
    assert len(everything) > 30


async def test_a_pause_nobody_can_read(valkey_url: str, prefix: str) -> None:
    """The thread can be read; that something waited is told, never taken for nothing."""
    pick = {"name": "pick", "description": "Pick.", "parameters": {"type": "object"}}
    async with working(agent_of(calls(call("pick"))), valkey_url, prefix) as worker:
        await run(worker, "t", "r", "hi", tools=[pick])
        await worker.clients.write.hset(worker.keys.pause(key()), "open", b"{}")

        found = told(await joiner(worker).of_thread(key(), MOST))

    assert [e["type"] for e in found] == ["RUN_STARTED", "MESSAGES_SNAPSHOT", "RUN_FINISHED"]
    assert found[-1]["runId"] == "r" and found[-1]["outcome"] == {"type": "success"}
    last = {"status": "error", "code": "pause_unreadable"}
    assert found[-1]["metadata"] == {"backscroll": {"last_run": last}}
