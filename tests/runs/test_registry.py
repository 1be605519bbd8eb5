"""Which runs may start, and which are refused or attached to."""

from __future__ import annotations

import asyncio
from typing import Any

from agui_checker import assert_valid
from backscroll.agui.input import ResumeEntry
from backscroll.agui.options import AgentRules
from backscroll.agui.refusal import RequestRefused
from backscroll.kernel.tool import tool
from backscroll.runs.registry import RunRules
from played_model import call, calls, sent
from working import (
    LOCAL_OWNER,
    agent_of,
    asked,
    begun,
    bodies,
    events,
    held,
    key,
    refused,
    run,
    until_ended,
    working,
)

SUPERSEDE = AgentRules("a", busy_allowed=("reject", "supersede"))


async def test_the_echo_and_the_message_are_there_at_once(valkey_url: str, prefix: str) -> None:
    """What the run added is in RUN_STARTED and in the store when the request is accepted."""
    async with working(agent_of(held()), valkey_url, prefix) as worker:
        accepted = await worker.registry.submit(LOCAL_OWNER, asked("t", "r1", "hi"))
        first = (await events(worker))[0]
        stored = await worker.history.stored(key(), 1, 9)
        record = await worker.threads.record(key())

    assert (accepted.after, accepted.attached, accepted.behind) == (0, False, None)
    assert [m["id"] for m in first["input"]["messages"]] == ["u1"]
    assert [m.message.id for m in stored] == ["u1"]
    assert record is not None and (record.title, record.run) == ("hi", "r1")


async def test_a_second_turn_stores_only_what_is_new(valkey_url: str, prefix: str) -> None:
    """protocol-10: the whole list is sent each time; nothing is stored or asked twice."""
    agent = agent_of("a1", "a2", "a3")
    async with working(agent, valkey_url, prefix) as worker:
        said: list[Any] = []
        for n in range(1, 4):
            said.append({"id": f"u{n}", "role": "user", "content": f"q{n}"})
            found = await run(worker, "t", f"r{n}", *said)
            name = next(e for e in found if e["type"] == "TEXT_MESSAGE_START")["messageId"]
            said.append({"id": name, "role": "assistant", "content": f"a{n}"})
        total = await worker.history.total(key())

    requests = agent.model.requests  # type: ignore[union-attr]
    assert sent(requests[2]) == [
        "user: q1",
        "assistant: a1",
        "user: q2",
        "assistant: a2",
        "user: q3",
    ]
    assert total == 6


async def test_the_same_run_id_attaches(valkey_url: str, prefix: str) -> None:
    """Live or finished, the same request starts nothing and stores nothing."""
    async with working(agent_of(held("x")), valkey_url, prefix) as worker:
        await begun(worker)
        live = await worker.registry.submit(LOCAL_OWNER, asked("t", "r1", "hi"))
        await worker.registry.stop(LOCAL_OWNER, "r1")
        await until_ended(worker, "r1")
        ended = await worker.registry.submit(LOCAL_OWNER, asked("t", "r1", "hi"))
        started = [e for e in await events(worker) if e["type"] == "RUN_STARTED"]

    assert (live.attached, ended.attached, len(started)) == (True, True, 1)


async def test_a_run_id_means_one_request(valkey_url: str, prefix: str) -> None:
    """Other content, or another thread, is a conflict."""
    async with working(agent_of("x"), valkey_url, prefix) as worker:
        await run(worker, "t", "r1", "hi")
        other = await refused(worker, asked("t", "r1", "something else"))
        elsewhere = await refused(worker, asked("t2", "r1", "hi"))

    assert (other.code, elsewhere.code) == ("run_conflict", "run_conflict")
    assert other.ids == {"threadId": "t", "runId": "r1"}


async def test_two_starts_at_one_instant_start_one_run(valkey_url: str, prefix: str) -> None:
    """Of two workers that start the same run, one does and the other attaches."""
    first, second = agent_of("one"), agent_of("one")
    async with (
        working(first, valkey_url, prefix) as one,
        working(second, valkey_url, prefix) as two,
    ):
        futures = [w.registry.submit(LOCAL_OWNER, asked("t", "r1", "hi")) for w in (one, two)]
        accepted = await asyncio.gather(*futures)
        await until_ended(one, "r1")
        found = await events(one)

    assert sorted(a.attached for a in accepted) == [False, True]
    assert [e["type"] for e in found].count("RUN_STARTED") == 1
    made = len(first.model.requests) + len(second.model.requests)  # type: ignore[union-attr]
    assert made == 1


async def test_two_runs_at_one_instant_do_not_share_a_thread(valkey_url: str, prefix: str) -> None:
    """Exactly one starts, the other is told which run it met."""
    async with (
        working(agent_of(held()), valkey_url, prefix) as one,
        working(agent_of(held()), valkey_url, prefix) as two,
    ):
        futures = [
            worker.registry.submit(LOCAL_OWNER, asked("t", name, "hi"))
            for worker, name in ((one, "r1"), (two, "r2"))
        ]
        answers = await asyncio.gather(*futures, return_exceptions=True)

    lost = [answer for answer in answers if isinstance(answer, RequestRefused)]
    won = [answer for answer in answers if not isinstance(answer, BaseException)]
    assert len(won) == 1 and [r.code for r in lost] == ["thread_busy"]
    assert lost[0].details["runId"] == won[0].run_id != lost[0].ids["runId"]


async def test_a_busy_thread_refuses_and_says_so_to_operators(valkey_url: str, prefix: str) -> None:
    """A refused request leaves a note, and nothing else."""
    async with working(agent_of(held()), valkey_url, prefix) as worker:
        await begun(worker)
        refusal = await refused(worker, asked("t", "r2", "hi", "again"))
        notes = await bodies(worker, "note")
        total = await worker.history.total(key())

    assert (refusal.code, refusal.details) == ("thread_busy", {"runId": "r1"})
    assert total == 1
    (note,) = notes
    assert (note["kind"], note["code"], note["refused_run"]) == ("refused", "thread_busy", "r2")


async def test_a_refusal_on_a_thread_nobody_knows_leaves_nothing(
    valkey_url: str, prefix: str
) -> None:
    """A thread is not made by a note."""
    async with working(agent_of("x"), valkey_url, prefix) as worker:
        refusal = await refused(worker, asked("t", "r1"))

        assert refusal.code == "nothing_to_run"
        assert await worker.threads.record(key()) is None


async def test_a_thread_belongs_to_one_agent(valkey_url: str, prefix: str) -> None:
    """Another agent's run on it is refused."""
    async with (
        working(agent_of("x"), valkey_url, prefix) as one,
        working(agent_of("y", name="b"), valkey_url, prefix) as two,
    ):
        await run(one, "t", "r1", "hi")
        refusal = await refused(two, asked("t", "r2", "hi", "again"))

    assert refusal.code == "agent_mismatch"


async def test_what_the_agent_does_not_allow_is_refused(valkey_url: str, prefix: str) -> None:
    """A tool named as one of the server's, a policy that is not offered."""
    rules = AgentRules("a", tool_names=frozenset({"add"}))
    offered = [{"name": "add", "description": "Mine.", "parameters": {"type": "object"}}]
    async with working(agent_of("x"), valkey_url, prefix, agent_rules=rules) as worker:
        tool = await refused(worker, asked("t", "r1", "hi", tools=offered))
        props = {"backscroll.busy": "supersede"}
        busy = await refused(worker, asked("t", "r1", "hi", forwardedProps=props))

    assert (tool.code, tool.details["problems"][0]["path"]) == ("duplicate_tool", "tools[0].name")
    assert busy.details["problems"][0]["path"] == "forwardedProps.backscroll.busy"


async def test_the_number_of_active_runs_is_bounded(valkey_url: str, prefix: str) -> None:
    """More of them are refused as unavailable, without a note."""
    rules = RunRules(active_runs=1)
    async with working(agent_of(held()), valkey_url, prefix, rules=rules) as worker:
        await begun(worker)
        refusal = await refused(worker, asked("t2", "r2", "hi"))
        attached = await worker.registry.submit(LOCAL_OWNER, asked("t", "r1", "hi"))

        assert await bodies(worker, "note", "t2") == []
    assert refusal.code == "unavailable" and refusal.status.http == 503
    assert attached.attached


async def test_an_import_stores_the_whole_list(valkey_url: str, prefix: str) -> None:
    """A thread nobody knows takes over what the client has, and marks it."""
    messages = [
        {"id": "w", "role": "assistant", "content": "Welcome!"},
        {"id": "q", "role": "user", "content": "hi"},
    ]
    async with working(agent_of("hello"), valkey_url, prefix) as worker:
        found = await run(worker, "t", "r1", *messages)
        stored = await worker.history.stored(key(), 1, 9)

    assert [m["id"] for m in found[0]["input"]["messages"]] == ["w", "q"]
    assert [(m.message.text, m.marks) for m in stored[:2]] == [
        ("Welcome!", ("imported",)),
        ("hi", ("imported",)),
    ]


async def test_answer_again_supersedes_with_a_logged_snapshot(valkey_url: str, prefix: str) -> None:
    """What follows the question is superseded, and every reader is told by a snapshot."""
    async with working(agent_of("one", "two"), valkey_url, prefix) as worker:
        await run(worker, "t", "r1", "hi")
        found = await run(worker, "t", "r2", "hi")
        stored = await worker.history.stored(key(), 1, 9)

        assert_valid(await events(worker))
    assert [e["type"] for e in found[:2]] == ["RUN_STARTED", "MESSAGES_SNAPSHOT"]
    assert [m["content"] for m in found[1]["messages"]] == ["hi"]
    assert [(m.message.text, m.is_live) for m in stored] == [
        ("hi", True),
        ("one", False),
        ("two", True),
    ]


async def test_a_client_that_is_behind_is_told_what_it_lacks(valkey_url: str, prefix: str) -> None:
    """The history, and how much of it the sender's list holds."""
    async with working(agent_of("one", "two"), valkey_url, prefix) as worker:
        await run(worker, "t", "r1", "hi")
        messages = [{"id": "u9", "role": "user", "content": "new"}]
        accepted = await worker.registry.submit(LOCAL_OWNER, asked("t", "r2", *messages))
        await until_ended(worker, "r2")

    assert accepted.behind == 1
    assert [m.text for m in accepted.history] == ["hi", "one", "new"]


async def test_a_settled_pause_goes_on_once(valkey_url: str, prefix: str) -> None:
    """hitl-07: whoever starts the run that goes on, a second one is told that it cannot."""

    @tool(sensitive=True)
    def pay() -> str:
        """Pay."""
        return "paid"

    agent = agent_of(calls(call("pay", {})), "done", tools=[pay])
    async with working(agent, valkey_url, prefix) as worker:
        await run(worker, "t", "r1", "hi")
        entry = ResumeEntry("call_pay", "resolved", True)
        told = await worker.registry.answers.answer(key(), entry, "r2")
        await until_ended(worker, "r2")
        again = await worker.registry._go_on(key(), "r3")
        notes = [body["kind"] for body in await bodies(worker, "note")]

    assert told.run_id == "r2" and again is False
    assert "refused" not in notes
