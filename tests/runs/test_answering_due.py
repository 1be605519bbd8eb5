"""Paused runs that nobody goes on with: expired, left, given back and stopped."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from agui_checker import assert_valid
from backscroll.agent.agent import Agent
from backscroll.agui.refusal import RequestRefused
from backscroll.kernel.filter import Filter
from backscroll.kernel.pause_codec import write_pause
from backscroll.kernel.tool import tool
from backscroll.runs.joining import Joiner
from backscroll.runs.worker import Worker
from backscroll.store.keys import LOCAL_OWNER
from deadlines import scaled
from played_model import call, calls, sent
from till import MAIL, PAY, YES, Till, answer, model_of, resume, two_workers
from working import agent_of, asked, events, key, refused, run, until_ended, working

LONG: dict[str, Any] = {"pause_expires_s": 1000}


async def overdue(worker: Worker) -> None:
    """Let the pause of thread t have expired a second ago, before anybody looks after it."""
    pause = (await worker.registry.answers.pauses.read(key())).pause
    assert pause is not None
    late = pause.replace(expires_at=await worker.log.now() / 1000 - 1)
    await worker.clients.write.hset(worker.keys.pause(key()), "open", write_pause(late))


@pytest.fixture
def till() -> Till:
    """Give tools that did nothing yet."""
    return Till()


async def test_what_nobody_answers_expires(valkey_url: str, prefix: str, till: Till) -> None:
    """hitl-01: it counts as refused, and the server goes on by itself."""
    model = model_of(calls(PAY), "a pity")
    fields = {"pause_expires_s": 0.2}
    async with two_workers(model, till, valkey_url, prefix, **fields) as (one, _):
        found = await run(one, "t", "r", "pay ann")
        async with asyncio.timeout(scaled(15)):
            while len(model.requests) < 2:
                await one.registry.answers.settle_due()
        info = await one.registry.store.runs(key())
        await until_ended(one, info[-1].run_id)
        record = await one.registry.answers.pauses.read(key())
        late = await refused(one, asked("t", "r2", "pay ann", resume=resume(pay=YES)))

    assert found[-1]["outcome"]["interrupts"][0]["expiresAt"].endswith("Z")
    decision = record.questions["call_pay"].decision
    assert decision is not None and (decision.status, decision.by) == ("cancelled", "expiry")
    assert till.done == [] and late.code == "already_answered"
    assert "nobody answered in time" in sent(model.requests[1])[-1]


async def test_an_expired_question_can_only_be_given_up(
    valkey_url: str, prefix: str, till: Till
) -> None:
    """interrupt_expired: approved too late by frame or by request; rejected it goes on."""
    agent = agent_of(model=model_of(calls(PAY, MAIL), "ok"), tools=till.tools(), **LONG)
    async with working(agent, valkey_url, prefix) as worker:
        await run(worker, "t", "r", "pay ann")
        await overdue(worker)
        with pytest.raises(RequestRefused) as caught:
            await answer(worker, "pay", YES)
        entries = resume(pay=YES, mail=None)
        late = await refused(worker, asked("t", "r2", "pay ann", resume=entries))
        still = (await worker.registry.answers.pauses.read(key())).open_questions
        given_up = await run(worker, "t", "r3", "pay ann", resume=resume(pay=None, mail=None))

    assert caught.value.code == late.code == "interrupt_expired"
    assert late.details["problems"][0]["path"] == "resume[0].payload"
    assert [item.id for item in still] == ["call_pay", "call_mail"]
    assert given_up[-1]["outcome"] == {"type": "success"} and till.done == []


async def test_a_pause_nobody_can_read(valkey_url: str, prefix: str, till: Till) -> None:
    """pause_unreadable: it is never taken for none; whoever gives it up can go on."""
    model = model_of(calls(PAY), "fine")
    async with two_workers(model, till, valkey_url, prefix) as (one, other):
        await run(one, "t", "r", "pay ann")
        await one.clients.write.hset(one.keys.pause(key()), "open", b'{"version":99}')
        refusal = await refused(other, asked("t", "r2", "pay ann", "hello?"))
        with pytest.raises(RequestRefused) as caught:
            await answer(other, "pay", YES)
        joiner = Joiner(other.log, other.registry.store, other.agent_rules)
        joined = json.loads((await joiner.of_thread(key(), 10**6)).texts[-1])
        props = {"backscroll.abandon": True}
        found = await run(other, "t", "r3", "pay ann", "hello?", forwardedProps=props)
        after = await one.registry.answers.pauses.read(key())

        assert_valid(await events(other))
    assert refusal.code == caught.value.code == "pause_unreadable"
    assert "expected version 1, got 99" in str(refusal) and refusal.status.http == 500
    told = {"status": "error", "code": "pause_unreadable"}
    assert joined["metadata"]["backscroll"]["last_run"] == told
    assert found[-1]["outcome"] == {"type": "success"} and after.pause is None
    assert "never approved" in sent(model.requests[1])[-2] and till.done == []


async def test_abandoned_without_a_message(valkey_url: str, prefix: str, till: Till) -> None:
    """The calls are answered as abandoned, no model is asked, the thread goes on."""
    model = model_of(calls(PAY), "fine")
    async with two_workers(model, till, valkey_url, prefix) as (one, other):
        await run(one, "t", "r", "pay ann")
        props = {"backscroll.abandon": True}
        given_up = await run(other, "t", "r2", "pay ann", forwardedProps=props)
        asked_before = len(model.requests)
        after = await run(one, "t", "r3", "pay ann", "hello?")

        assert_valid(await events(other))
    (result,) = [event for event in given_up if event["type"] == "TOOL_CALL_RESULT"]
    assert "never approved" in result["content"]
    assert result["metadata"]["backscroll"]["outcome"] == "cancelled"
    assert given_up[-1]["outcome"] == {"type": "success"} and asked_before == 1
    assert after[-1]["outcome"] == {"type": "success"} and till.done == []


async def test_a_resume_that_nobody_carried_out(valkey_url: str, prefix: str, till: Till) -> None:
    """hitl-04: a filter breaks the run that goes on; the question is open again, by its id."""

    class Breaking(Filter):
        name = "breaking"
        broken = False

        async def turn(self, request: Any, chain: Any) -> Any:
            if request.is_resume and not self.broken:
                self.broken = True
                raise RuntimeError("boom")
            return await chain(request)

    model = model_of(calls(PAY), "done")
    agent = agent_of(model=model, tools=till.tools(), filters=[Breaking()])
    async with working(agent, valkey_url, prefix) as worker:
        await run(worker, "t", "r", "pay ann")
        broken = await run(worker, "t", "r2", "pay ann", "now", resume=resume(pay=YES))
        before = list(till.done)
        found = await run(worker, "t", "r3", "pay ann", "now", resume=resume(pay=YES))

        assert_valid(await events(worker))
    assert broken[-1]["type"] == "RUN_ERROR" and before == []
    assert found[-1]["outcome"] == {"type": "success"} and till.done == ["pay ann 10"]
    assert sent(model.requests[1])[2:] == ["tool: paid", "user: now"]


async def test_a_settled_pause_nobody_went_on_with(
    valkey_url: str, prefix: str, till: Till
) -> None:
    """The worker died between the decision and the start: the next look goes on."""
    model = model_of(calls(PAY), "done")
    async with two_workers(model, till, valkey_url, prefix) as (one, other):
        await run(one, "t", "r", "pay ann")
        answers = one.registry.answers

        async def dies(*_: Any) -> bool:
            return False

        answers._go_on = dies
        told = await answer(one, "pay", YES)
        await other.log.indexes.mark_pause(key(), 1)
        async with asyncio.timeout(scaled(15)):
            while len(model.requests) < 2:
                await other.registry.answers.settle_due()

    assert told.first and told.run_id == "" and till.done == ["pay ann 10"]


async def test_whoever_answers_may_leave(valkey_url: str, prefix: str, till: Till) -> None:
    """hitl-01: whoever answered is gone at once; the turn goes on all the same."""
    model = model_of(calls(PAY), "done")
    async with two_workers(model, till, valkey_url, prefix) as (one, _):
        await run(one, "t", "r", "pay ann")
        task = asyncio.ensure_future(answer(one, "pay", YES, run_id="r9"))
        record = await one.registry.answers.pauses.read(key())
        while record.questions["call_pay"].decision is None:
            record = await one.registry.answers.pauses.read(key())
        task.cancel()
        async with asyncio.timeout(scaled(15)):
            while len(model.requests) < 2:
                await one.registry.answers.settle_due()

    assert till.done == ["pay ann 10"]


async def test_pauses_are_looked_at_when_due(valkey_url: str, prefix: str, till: Till) -> None:
    """One that is not due is noted again, one that is gone forgotten, a broken one put aside."""
    agent = agent_of(model=model_of(calls(PAY)), tools=till.tools(), pause_expires_s=1000)
    async with working(agent, valkey_url, prefix) as worker:
        await run(worker, "t", "r", "pay ann")
        answers, indexes = worker.registry.answers, worker.log.indexes
        await indexes.mark_pause(key(), 1)
        await indexes.mark_pause(key("gone"), 1)
        await indexes.mark_pause(key("broken"), 1)
        await worker.clients.write.hset(worker.keys.pause(key("broken")), "open", b"{}")

        await answers.settle_due()

        now = await worker.log.now()
        due, every = await indexes.paused(now), await indexes.paused()
        many = await answers.pauses.read_many(every)
    assert due == [] and set(every) == {key(), key("broken")} and set(many) == {key()}


async def test_a_stop_while_the_answer_is_carried_out(valkey_url: str, prefix: str) -> None:
    """HITL4, LOOP9: the run ends cancelled, every call has a result, the thread goes on."""
    started = asyncio.Event()

    @tool(sensitive=True)
    async def pay() -> str:
        """Take long."""
        started.set()
        await asyncio.Event().wait()
        return "never"

    agent = Agent(name="a", model=model_of(calls(call("pay")), "fine"), tools=[pay])
    async with working(agent, valkey_url, prefix) as worker:
        await run(worker, "t", "r", "go")
        await answer(worker, "pay", YES, run_id="r2")
        await started.wait()
        await worker.registry.stop(LOCAL_OWNER, "r2")
        await until_ended(worker, "r2")
        after = await run(worker, "t", "r3", "go", "and now?")
        found = await events(worker, "t", "r2")

    assert found[-1]["outcome"] == {"type": "cancelled"}
    assert after[-1]["outcome"] == {"type": "success"}
