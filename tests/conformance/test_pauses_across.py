"""Pauses that outlive their worker: asked in a process that is killed, gone on with elsewhere.

Each scenario is played on two threads: the other worker takes one, a new process takes the other.
"""

from __future__ import annotations

from pathlib import Path

import psutil
from conformance.desk import (
    YES,
    Desk,
    answer,
    assert_sound,
    ended,
    get,
    joined,
    named,
    opened,
    refused,
)
from conformance.desk import run as run_at
from processes import PROGRAMS, ServerProcess
from provider_script import Call, Reply

PAY = Call("pay", {"amount": 10}, "call_pay")
MAIL = Call("mail", {}, "call_mail")
ADD = Call("add", {"a": 1, "b": 2}, "call_add")
SHOWN = {"approved": False, "reason": "wrong address"}
REFUSED = "The user did not allow this call: wrong address. It was not executed."


def resume(**payloads: object) -> list[dict[str, object]]:
    """Return resume entries."""
    return [
        {"interruptId": f"call_{name}", "status": "resolved", "payload": payload}
        for name, payload in payloads.items()
    ]


def test_pause(desk: Desk) -> None:
    """HITL1: the question waits unchanged, is listed, holds messages up, and nothing has run."""
    asked = opened(desk.ask(Reply(calls=(PAY, ADD))))

    for worker, thread in desk.elsewhere():
        (question,) = opened(joined(worker, thread))
        listed = get(worker, f"/threads/{thread}/questions")["questions"]
        head = get(worker, f"/threads/{thread}")

        told = {"kind": "approval", "toolName": "pay", "input": {"amount": 10, "to": thread}}
        assert question["metadata"] == told
        assert {**question, "metadata": None} == {**asked[0], "metadata": None}
        assert [(q["interrupt_id"], q["input"]["to"]) for q in listed] == [("call_pay", thread)]
        assert (head["status"], head["questions"]) == ("waiting", 1)
        assert refused(worker, thread, "go", "hello?")["code"] == "awaiting_resume"
        assert_sound(worker, thread)
    assert not {*desk.threads} & {word for line in desk.done() for word in line.split()}


def test_approved(desk: Desk) -> None:
    """HITL2, HITL12: the tool runs once, the model reads its result, the turn completes."""
    desk.ask(Reply(calls=(PAY,)))

    for worker, thread in desk.elsewhere():
        desk.model.add(Reply(text="done"))
        found = run_at(worker, thread, "r2", "go", resume=resume(pay=YES))

        assert found[-1]["outcome"] == {"type": "success"}
        assert desk.done(thread) == [f"pay {thread} 10"]
        assert desk.results(thread) == [f"paid 10 to {thread}"]
        assert opened(joined(worker, thread)) == []
        assert_sound(worker, thread)


def test_rejected(desk: Desk) -> None:
    """HITL3: it does not run; the model and the page read the refusal with its reason."""
    desk.ask(Reply(calls=(PAY,)))

    for worker, thread in desk.elsewhere():
        desk.model.add(Reply(text="a pity"))
        found = run_at(worker, thread, "r2", "go", resume=resume(pay=SHOWN))

        (result,) = [event for event in found if event["type"] == "TOOL_CALL_RESULT"]
        assert (result["toolCallId"], result["content"]) == ("call_pay", REFUSED)
        assert desk.results(thread) == [REFUSED] and desk.done(thread) == []
        assert_sound(worker, thread)


def test_mixed(desk: Desk) -> None:
    """HITL4: one rejected before its worker is lost, one approved after; one request has all."""
    desk.ask(Reply(calls=(ADD, PAY, MAIL)))
    for thread in desk.threads:
        told = answer(desk.workers[0], thread, "call_pay", SHOWN)
        assert (told["first"], told["open"]) == (True, ["call_mail"])
    before = desk.done().count("add")

    for worker, thread in desk.elsewhere():
        desk.model.add(Reply(text="done"))
        told = answer(worker, thread, "call_mail", YES, runId=f"r2-{thread}")

        assert ended(worker, thread, told["runId"]) == "ok"
        assert desk.results(thread) == ["3", REFUSED, f"sent to {thread}"]
        assert desk.done(thread) == [f"mail {thread}"]
        assert_sound(worker, thread)
    assert desk.done().count("add") == before + 2


def test_never_resumed(desk: Desk) -> None:
    """HITL5: given up for a new message, the calls read as never approved; too late is too late."""
    desk.ask(Reply(calls=(PAY,)))

    for worker, thread in desk.elsewhere():
        desk.model.add(Reply(text="fine"))
        props = {"backscroll.abandon": True}
        found = run_at(worker, thread, "r2", "go", "never mind", forwardedProps=props)
        late = answer(worker, thread, "call_pay", YES)

        assert found[-1]["outcome"] == {"type": "success"} and desk.done(thread) == []
        (result,) = desk.results(thread)
        assert "never approved" in result
        assert late["error"]["code"] == "already_answered"
        assert late["error"]["details"]["decision"]["status"] == "cancelled"
        assert_sound(worker, thread)


def test_the_whole_server_is_lost(desk: Desk, tmp_path: Path) -> None:
    """HITL12: worker and store are killed together; what was asked is in the store's files."""
    thread, model = desk.threads[0], desk.model
    env = {"OPENAI_BASE_URL": model.base_url, "OPENAI_API_KEY": "k", "PYTHONPATH": str(PROGRAMS)}
    env["LEDGER"] = str(desk.ledger)
    server = ServerProcess("asking_agent", data_dir=tmp_path, env=env).start()
    model.add(named(Reply(calls=(PAY,)), thread), Reply(text="done"))
    asked = opened(run_at(server, thread, "r1", "go"))
    family = psutil.Process(server.pid).children(recursive=True)
    server.kill()
    for process in family:
        process.kill()

    with server:
        again = opened(joined(server, thread))
        found = run_at(server, thread, "r2", "go", resume=resume(pay=YES))
        assert_sound(server, thread)

    assert again == asked and found[-1]["outcome"] == {"type": "success"}
    assert desk.done(thread) == [f"pay {thread} 10"]
