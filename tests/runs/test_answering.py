"""Approvals over the protocol: asked, answered together or one by one, carried out once."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from agui_checker import assert_valid
from backscroll.agui.input import ResumeEntry
from backscroll.agui.refusal import RequestRefused
from backscroll.kernel.errors import ToolError
from backscroll.kernel.tool import tool
from backscroll.runs.answering import Answered
from backscroll.store.keys import LOCAL_OWNER
from backscroll.store.pause_record import Decision
from played_model import StreamingModel, call, calls, sent
from till import (
    ADD,
    MAIL,
    OFFERED,
    PAY,
    PICK,
    YES,
    Till,
    answer,
    model_of,
    results,
    resume,
    two_workers,
)
from working import agent_of, asked, bodies, events, key, refused, run, until_ended, working


@pytest.fixture
def till() -> Till:
    """Give tools that did nothing yet."""
    return Till()


async def test_a_pause_ends_the_run_with_its_question(
    valkey_url: str, prefix: str, till: Till
) -> None:
    """HITL1: nothing ran; the interrupt has the id, the tool, all arguments and the schema."""
    async with two_workers(model_of(calls(PAY, ADD)), till, valkey_url, prefix) as (one, _):
        found = await run(one, "t", "r", "pay ann")
        info = await one.registry.store.run_info(LOCAL_OWNER, "r")

        assert_valid(await events(one))
    outcome = found[-1]["outcome"]
    assert outcome["type"] == "interrupt" and len(outcome["interrupts"]) == 1
    (question,) = outcome["interrupts"]
    assert (question["id"], question["toolCallId"]) == ("call_pay", "call_pay")
    assert question["reason"] == "tool_call" and "expiresAt" not in question
    assert question["message"] == "pay needs approval before it runs."
    told = {"kind": "approval", "toolName": "pay", "input": {"to": "ann", "amount": 10}}
    assert question["metadata"] == told
    assert set(question["responseSchema"]["properties"]) == {
        "approved", "editedArgs", "reason", "result",
    }  # fmt: skip
    assert info is not None and info.status == "waiting" and till.done == []


async def test_approved_by_another_worker_after_a_restart(
    valkey_url: str, prefix: str, till: Till
) -> None:
    """hitl-01, HITL2, HITL12: the asking worker is gone; the tool runs once, then the model."""
    model = model_of(calls(PAY), "done")
    async with working(agent_of(model=model, tools=till.tools()), valkey_url, prefix) as one:
        await run(one, "t", "r", "pay ann")
    async with working(agent_of(model=model, tools=till.tools()), valkey_url, prefix) as other:
        found = await run(other, "t", "r2", "pay ann", resume=resume(pay=YES))

        assert_valid(await events(other))
    assert till.done == ["pay ann 10"] and results(found) == {"call_pay": "paid"}
    types = [event["type"] for event in found]
    assert types[:3] == ["RUN_STARTED", "TOOL_CALL_RESULT", "STEP_STARTED"]
    assert found[-1]["outcome"] == {"type": "success"} and "input" not in found[0]
    assert sent(model.requests[1])[2:] == ["tool: paid"]


async def test_rejected(valkey_url: str, prefix: str, till: Till) -> None:
    """HITL3: not run; the model and the clients read the refusal with its reason."""
    model = model_of(calls(PAY), "a pity")
    async with two_workers(model, till, valkey_url, prefix) as (one, other):
        await run(one, "t", "r", "pay ann")
        entries = resume(pay={"approved": False, "reason": "wrong address"})
        found = await run(other, "t", "r2", "pay ann", resume=entries)

    text = "The user did not allow this call: wrong address. It was not executed."
    assert results(found) == {"call_pay": text} and till.done == []
    (event,) = (e for e in found if e["type"] == "TOOL_CALL_RESULT")
    assert event["metadata"] == {"backscroll": {"outcome": "refused"}}
    assert sent(model.requests[1])[-1] == f"tool: {text}"


async def test_mixed(valkey_url: str, prefix: str, till: Till) -> None:
    """hitl-05, HITL4: pay rejected, mail approved one by one elsewhere; add runs all the same."""
    model = model_of(calls(ADD, PAY, MAIL), "done")
    async with two_workers(model, till, valkey_url, prefix) as (one, other):
        await run(one, "t", "r", "go")
        first = await answer(one, "pay", None)
        before = list(till.done)
        second = await answer(other, "mail", YES, run_id="r9")
        await until_ended(other, "r9")

        assert_valid(await events(other))
        decided = [b for b in await bodies(one, "note") if b["kind"] == "decided"]
    assert (first.first, first.open, first.run_id) == (True, ("call_mail",), "")
    assert before == [] and second.open == () and second.run_id == "r9"
    assert sorted(till.done) == ["add", "mail bob"]
    refusal = "The user did not allow this call. It was not executed."
    assert sent(model.requests[1])[2:] == ["tool: 3", f"tool: {refusal}", "tool: sent"]
    assert [(b["status"], b["text"]) for b in decided] == [
        ("cancelled", "pay: rejected by local"),
        ("resolved", "mail: approved by local"),
    ]


async def test_never_resumed(valkey_url: str, prefix: str, till: Till) -> None:
    """HITL5: a new message is refused, with abandon it discards the pause and works."""
    model = model_of(calls(PAY), "fine")
    async with two_workers(model, till, valkey_url, prefix) as (one, other):
        await run(one, "t", "r", "pay ann")
        refusal = await refused(other, asked("t", "r2", "pay ann", "hello?"))
        props = {"backscroll.abandon": True}
        found = await run(other, "t", "r3", "pay ann", "hello?", forwardedProps=props)
        late = await refused(one, asked("t", "r4", "pay ann", resume=resume(pay=YES)))

        assert_valid(await events(other))
    assert refusal.code == "awaiting_resume"
    assert refusal.details["open"] == [
        {"interruptId": "call_pay", "kind": "approval", "toolName": "pay"}
    ]
    gone = "Not executed: this call was never approved or answered before the conversation went on."
    assert results(found) == {"call_pay": gone} and till.done == []
    assert sent(model.requests[1])[2:] == [f"tool: {gone}", "user: hello?"]
    assert late.code == "already_answered" and late.details["decision"]["status"] == "cancelled"


async def test_approved_with_changes(valkey_url: str, prefix: str, till: Till) -> None:
    """HITL6: the edited arguments run; those that fail the schema leave the question open."""
    async with two_workers(model_of(calls(PAY), "done"), till, valkey_url, prefix) as (one, other):
        await run(one, "t", "r", "pay ann")
        bad = {**YES, "editedArgs": {"to": "ann", "amount": "lots"}}
        refusal = await refused(one, asked("t", "r2", "pay ann", resume=resume(pay=bad)))
        good = {**YES, "editedArgs": {"to": "bob", "amount": 7}}
        await run(other, "t", "r3", "pay ann", resume=resume(pay=good))

    assert refusal.code == "invalid_arguments" and "amount" in str(refusal)
    assert refusal.details["problems"][0]["path"] == "resume[0].payload.editedArgs"
    assert till.done == ["pay bob 7"]


async def test_a_reply_in_place_of_the_call(valkey_url: str, prefix: str, till: Till) -> None:
    """HITL8: the body never runs; the text is the result."""
    model = model_of(calls(PAY), "done")
    async with two_workers(model, till, valkey_url, prefix) as (one, other):
        await run(one, "t", "r", "pay ann")
        found = await run(
            other, "t", "r2", "pay ann", resume=resume(pay={"result": "paid by hand"})
        )

    assert results(found) == {"call_pay": "paid by hand"} and till.done == []
    (event,) = (e for e in found if e["type"] == "TOOL_CALL_RESULT")
    assert "metadata" not in event


@pytest.mark.parametrize(
    ("entries", "code"),
    [
        (resume(pay=YES), "interrupt_incomplete"),
        (resume(pay=YES, mail="maybe"), "interrupt_invalid"),
        (resume(pay={"approved": "yes"}, mail=YES), "interrupt_invalid"),
        (resume(nothing=YES), "interrupt_unknown"),
        ([], "awaiting_resume"),
    ],
)
async def test_answers_that_do_not_fit(
    valkey_url: str, prefix: str, till: Till, entries: list[Any], code: str
) -> None:
    """HITL7: all are checked before anything changes: nothing is recorded, nothing ran."""
    async with two_workers(model_of(calls(PAY, MAIL)), till, valkey_url, prefix) as (one, other):
        await run(one, "t", "r", "go")
        refusal = await refused(other, asked("t", "r2", "go", resume=entries))
        record = await one.registry.answers.pauses.read(key())

    assert refusal.code == code and till.done == []
    assert [item.id for item in record.open_questions] == ["call_pay", "call_mail"]


async def test_an_answer_without_a_pause(valkey_url: str, prefix: str, till: Till) -> None:
    """not_paused: by resume and by frame, on a thread that waits for nothing."""
    async with two_workers(model_of("hi"), till, valkey_url, prefix) as (one, _):
        await run(one, "t", "r", "hello")
        refusal = await refused(one, asked("t", "r2", "hello", resume=resume(pay=YES)))
        with pytest.raises(RequestRefused) as caught:
            await answer(one, "pay", YES)

    assert (refusal.code, caught.value.code) == ("not_paused", "not_paused")


async def test_decided_stays_decided(valkey_url: str, prefix: str, till: Till) -> None:
    """hitl-03: the same again gets the same answer and runs nothing, another one is refused."""
    async with two_workers(model_of(calls(PAY), "done"), till, valkey_url, prefix) as (one, other):
        await run(one, "t", "r", "pay ann")
        await answer(one, "pay", YES, run_id="r9")
        await until_ended(one, "r9")
        again = await answer(other, "pay", YES)
        with pytest.raises(RequestRefused) as caught:
            await answer(other, "pay", None)
        late = await refused(other, asked("t", "r5", "pay ann", resume=resume(pay=None)))

    assert (again.first, again.run_id, again.decision.payload) == (False, "r9", YES)
    held = {"status": "resolved", "payload": YES, "runId": "r9"}
    assert caught.value.code == "already_answered" and caught.value.details["decision"] == held
    assert late.code == "already_answered" and late.details["decision"] == held
    assert till.done == ["pay ann 10"]


@pytest.mark.timeout(90)
async def test_two_tabs_decide_once(valkey_url: str, prefix: str, till: Till) -> None:
    """hitl-07, HITL9: 50 rounds from two workers; in half of them one of the two rejects."""
    script = [reply for n in range(50) for reply in (calls(call("pay", PAY.args, f"c{n}")), "ok")]
    ran, losers = 0, 0
    async with two_workers(StreamingModel(script), till, valkey_url, prefix) as (one, other):
        for n in range(50):
            thread = key(f"t{n}")
            await run(one, f"t{n}", f"r{n}", "pay")
            entries = [
                ResumeEntry(f"c{n}", "resolved", YES),
                ResumeEntry(f"c{n}", "cancelled")
                if n % 2
                else ResumeEntry(f"c{n}", "resolved", YES),
            ]
            told = await asyncio.gather(
                one.registry.answers.answer(thread, entries[0], f"x{n}"),
                other.registry.answers.answer(thread, entries[1], f"y{n}"),
                return_exceptions=True,
            )
            firsts = [t for t in told if isinstance(t, Answered) and t.first]
            losers += sum(isinstance(t, RequestRefused) for t in told)
            assert len(firsts) == 1 and firsts[0].run_id
            await until_ended(one, firsts[0].run_id, f"t{n}")
            ran += firsts[0].decision.status == "resolved"
    assert len(till.done) == ran and losers == 25


async def test_messages_with_the_last_answer(valkey_url: str, prefix: str, till: Till) -> None:
    """They go behind the results, in the same turn, and are echoed."""
    model = model_of(calls(PAY), "done")
    async with two_workers(model, till, valkey_url, prefix) as (one, other):
        await run(one, "t", "r", "pay ann")
        found = await run(other, "t", "r2", "pay ann", "and hurry", resume=resume(pay=YES))
        stored = await one.history.stored(key(), 1, 9)

        assert_valid(await events(other))
    assert sent(model.requests[1])[2:] == ["tool: paid", "user: and hurry"]
    assert [m["id"] for m in found[0]["input"]["messages"]] == ["u2"]
    assert [m.message.text for m in stored[2:]] == ["paid", "and hurry", "done"]


async def test_questions_and_calls_of_the_client(valkey_url: str, prefix: str, till: Till) -> None:
    """Both open lists the questions only; a result is kept, then the answer goes on."""
    model = model_of(calls(PAY, PICK), "done")
    picked = {"id": "t1", "role": "tool", "toolCallId": "call_pick", "content": "red"}
    async with two_workers(model, till, valkey_url, prefix) as (one, other):
        both = await run(one, "t", "r", "go", tools=OFFERED)
        kept = await run(other, "t", "r2", "go", picked, tools=OFFERED)
        found = await run(one, "t", "r3", "go", picked, resume=resume(pay=YES), tools=OFFERED)

        assert_valid(await events(other))
    for end in (both[-1], kept[-1]):
        assert [i["id"] for i in end["outcome"]["interrupts"]] == ["call_pay"]
    assert [m["id"] for m in kept[0]["input"]["messages"]] == ["t1"]
    assert found[-1]["outcome"] == {"type": "success"} and results(found) == {"call_pay": "paid"}
    assert sent(model.requests[1])[2:] == ["tool: paid", "tool: red"]


async def test_the_answer_first_and_the_client_last(
    valkey_url: str, prefix: str, till: Till
) -> None:
    """With the question answered the run ends with the calls that are still pending."""
    model = model_of(calls(PAY, PICK), "done")
    picked = {"id": "t1", "role": "tool", "toolCallId": "call_pick", "content": "red"}
    async with two_workers(model, till, valkey_url, prefix) as (one, other):
        await run(one, "t", "r", "go", tools=OFFERED)
        kept = await run(other, "t", "r2", "go", resume=resume(pay=YES), tools=OFFERED)
        before = list(till.done)
        found = await run(one, "t", "r3", "go", picked, tools=OFFERED)

    assert kept[-1]["outcome"] == {"type": "success", "pendingToolCallIds": ["call_pick"]}
    assert before == [] and till.done == ["pay ann 10"]
    assert found[-1]["outcome"] == {"type": "success"}
    assert sent(model.requests[1])[2:] == ["tool: paid", "tool: red"]


async def test_a_result_invented_for_a_question(valkey_url: str, prefix: str, till: Till) -> None:
    """Covered by an entry it is ignored and the client put right, else it is refused."""
    invented = {"id": "t1", "role": "tool", "toolCallId": "call_pay", "content": "never mind"}
    async with two_workers(model_of(calls(PAY), "done"), till, valkey_url, prefix) as (one, other):
        await run(one, "t", "r", "pay ann")
        refusal = await refused(one, asked("t", "r2", "pay ann", invented))
        request = asked("t", "r3", "pay ann", invented, resume=resume(pay=YES))
        accepted = await other.registry.submit(LOCAL_OWNER, request)
        await until_ended(other, "r3")
        stored = await one.history.stored(key(), 1, 9)

    assert refusal.code == "awaiting_resume" and accepted.behind is not None
    assert [m.message.text for m in stored if m.message.role == "tool"] == ["paid"]


async def test_a_client_call_answered_by_frame(valkey_url: str, prefix: str, till: Till) -> None:
    """A pending call may be rejected by whoever sees it; the model reads that it was not done."""
    model = model_of(calls(PICK), "a pity")
    async with two_workers(model, till, valkey_url, prefix) as (one, other):
        await run(one, "t", "r", "go", tools=OFFERED)
        told = await answer(other, "pick", None, run_id="r2")
        await until_ended(one, "r2")
        found = await events(one, "t", "r2")

        assert_valid(await events(one))
    text = "The user cancelled this step on their side. It was not carried out."
    assert told.open == () and results(found) == {"call_pick": text}
    assert sent(model.requests[1])[2:] == [f"tool: {text}"]


async def test_an_environment_failure(valkey_url: str, prefix: str) -> None:
    """HITL11, HITL15: retried it fails and asks again, retried once more it works."""
    doors: list[str] = []

    @tool
    def login() -> str:
        """Log in."""
        doors.append("knock")
        if len(doors) < 3:
            raise ToolError("no key", "environment")
        return "in"

    model = model_of(calls(call("login")), "done")
    agent = agent_of(model=model, tools=[login], on_environment_error="pause")
    async with working(agent, valkey_url, prefix) as worker:
        first = await run(worker, "t", "r", "go")
        second = await run(worker, "t", "r2", "go", resume=resume(login={"retry": True}))
        third = await run(worker, "t", "r3", "go", resume=resume(login={"retry": True}))

        assert_valid(await events(worker))
    (question,) = first[-1]["outcome"]["interrupts"]
    assert question["reason"] == "backscroll.environment"
    assert question["responseSchema"]["required"] == ["retry"]
    assert question["message"] == "login failed because of its environment: no key"
    assert second[-1]["outcome"]["type"] == "interrupt" and results(second) == {}
    assert results(third) == {"call_login": "in"} and len(doors) == 3


async def test_giving_up(valkey_url: str, prefix: str) -> None:
    """HITL11: the model reads the error."""

    @tool
    def login() -> str:
        """Log in."""
        raise ToolError("no key", "environment")

    model = model_of(calls(call("login")), "done")
    agent = agent_of(model=model, tools=[login], on_environment_error="pause")
    async with working(agent, valkey_url, prefix) as worker:
        await run(worker, "t", "r", "go")
        found = await run(worker, "t", "r2", "go", resume=resume(login={"retry": False}))

    assert results(found) == {"call_login": "error: no key"}
    assert sent(model.requests[1])[2:] == ["tool: error: no key"]


async def test_an_unknown_question(valkey_url: str, prefix: str, till: Till) -> None:
    """While another one is open, the name is what is unknown; the notice has all there is."""
    async with two_workers(model_of(calls(PAY, MAIL)), till, valkey_url, prefix) as (one, other):
        await run(one, "t", "r", "go")
        with pytest.raises(RequestRefused) as caught:
            await answer(one, "nothing", YES)
        with pytest.raises(RequestRefused) as wrong:
            await answer(one, "pay", "hm")
        first = await answer(one, "pay", YES)
        again = await answer(other, "pay", YES)

    assert caught.value.code == "interrupt_unknown" and wrong.value.code == "interrupt_invalid"
    assert first.to_json() == {
        "type": "answered",
        "threadId": "t",
        "interruptId": "call_pay",
        "first": True,
        "decision": {"status": "resolved", "payload": YES},
        "open": ["call_mail"],
    }
    assert again.to_json() == {**first.to_json(), "first": False}
    told = Answered("t", "c", True, Decision("cancelled"), (), "r9").to_json()
    assert told["runId"] == "r9" and told["decision"] == {"status": "cancelled"}
