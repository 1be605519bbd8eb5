"""Questions and calls of a page as the cases have them: two real workers, sockets, and a kill."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from threading import Barrier
from typing import Any

import pytest
from conformance.desk import (
    YES,
    Desk,
    Events,
    answer,
    assert_sound,
    ended,
    get,
    joined,
    opened,
    refused,
    run,
    send,
)
from deadlines import scaled
from processes import ServerProcess
from provider_script import Call, Reply
from served import request
from websockets.sync.client import ClientConnection, connect

PAY = Call("pay", {"amount": 10}, "call_pay")
MAIL = Call("mail", {}, "call_mail")
ADD = Call("add", {"a": 1, "b": 2}, "call_add")
PICK, CONFIRM = Call("pick", {"of": "x"}, "call_pick"), Call("confirm", {"of": "y"}, "call_confirm")
OFFERED = [
    {"name": name, "description": name, "parameters": {"type": "object"}}
    for name in ("pick", "confirm")
]


def picked(name: str, content: str, id: str = "") -> dict[str, Any]:
    """Return the message with which a page answers a call."""
    found = {"id": id or f"t_{name}", "role": "tool", "toolCallId": f"call_{name}"}
    return {**found, "content": content}


@contextmanager
def socket(worker: ServerProcess, query: str = "") -> Iterator[ClientConnection]:
    """Open an AG-UI socket of a client."""
    with connect(f"{worker.ws_url}/agui{query}", max_size=None, proxy=None) as found:
        yield found


def hear(socket: ClientConnection, *until: str) -> Events:
    """Return the events of a socket up to the first of a type."""
    found: Events = []
    while not found or found[-1]["type"] not in until:
        frame = json.loads(socket.recv(timeout=scaled(15)))
        found.append(frame.get("chunk", frame))
    return found


def at_once(*jobs: Any) -> list[Any]:
    """Do things in threads of their own at the same instant; return what each returned."""
    start = Barrier(len(jobs))

    def do(job: Any) -> Any:
        start.wait()
        return job()

    with ThreadPoolExecutor(len(jobs)) as pool:
        return list(pool.map(do, jobs))


def test_an_approval_survives_a_disconnect(desk: Desk) -> None:
    """hitl-01: its socket closes; a client of another worker is asked the same and approves."""
    thread, (first, second) = desk.threads[0], desk.workers
    desk.model.add(Reply(calls=(Call("pay", {"to": thread, "amount": 10}, "call_pay"),)))
    with socket(first) as asking:
        asking.send(json.dumps(request(thread, f"r1-{thread}", "go")))
        asked = opened(hear(asking, "RUN_FINISHED"))
    desk.model.add(Reply(text="done"))

    with socket(second, f"?threadId={thread}&protocolVersion=1.0") as other:
        again = opened(hear(other, "RUN_FINISHED"))
        decision = {"interruptId": "call_pay", "status": "resolved", "payload": YES}
        other.send(json.dumps({"type": "answer", "threadId": thread, **decision}))
        found = hear(other, "RUN_FINISHED")

    assert again == asked and asked[0]["metadata"]["toolName"] == "pay"
    assert asked[0]["metadata"]["input"] == {"to": thread, "amount": 10}
    assert found[-1]["outcome"] == {"type": "success"}
    assert desk.done(thread) == [f"pay {thread} 10"]
    assert_sound(first, thread)


def test_an_approval_after_errors_and_a_restart(desk: Desk) -> None:
    """hitl-04: a refused run, a result of the page, a killed server; it is answered by its id."""
    desk.ask(Reply(text="May I?", calls=(PAY, PICK)), tools=OFFERED)
    first, second = desk.workers
    for thread in desk.threads:
        assert refused(second, thread, "go", "hello?")["code"] == "awaiting_resume"
        kept = run(second, thread, "r2", "go", picked("pick", "red"), tools=OFFERED)
        assert [question["id"] for question in opened(kept)] == ["call_pay"]
        assert refused(first, thread, "go", "and now?")["code"] == "awaiting_resume"

    for worker, thread in desk.elsewhere():
        desk.model.add(Reply(text="done"))
        told = answer(worker, thread, "call_pay", YES)

        assert ended(worker, thread, told["runId"]) == "ok"
        assert desk.done(thread) == [f"pay {thread} 10"]
        assert desk.results(thread) == [f"paid 10 to {thread}", "red"]
        assert_sound(worker, thread)


def test_rejecting_one_spares_its_neighbours(desk: Desk) -> None:
    """hitl-05: pay rejected at one worker, then mail approved at the other; one request has all."""
    thread, (first, second) = desk.threads[0], desk.workers
    desk.ask(Reply(calls=(ADD, PAY, MAIL)))
    before, asked = desk.done().count("add"), len(desk.model.requests)
    desk.model.add(Reply(text="done"))

    one = answer(first, thread, "call_pay", None)
    between = desk.done(thread)
    two = answer(second, thread, "call_mail", YES)

    assert ended(first, thread, two["runId"]) == "ok"
    assert (one["open"], between, two["open"]) == (["call_mail"], [], [])
    assert desk.done(thread) == [f"mail {thread}"] and desk.done().count("add") == before + 1
    assert len(desk.model.requests) == asked + 1
    refusal = "The user did not allow this call. It was not executed."
    assert desk.results(thread) == ["3", refusal, f"sent to {thread}"]
    assert_sound(first, thread)


@pytest.mark.timeout(120)
def test_two_tabs_decide_once(desk: Desk) -> None:
    """hitl-07: 50 questions, two workers asked at the same instant; in half of them one refuses."""
    first, second = desk.workers
    held: dict[str, tuple[str, str]] = {}
    for n in range(50):
        thread, other = f"{desk.threads[0]}-{n}", None if n % 2 else YES
        pay = Call("pay", {"to": thread, "amount": n}, "call_pay")
        desk.model.when(thread, Reply(calls=(pay,)), Reply(text="ok"))
        run(first, thread, "r1", thread)
        told = at_once(
            partial(answer, first, thread, "call_pay", YES),
            partial(answer, second, thread, "call_pay", other),
        )
        (winner,) = [each for each in told if each.get("first")]
        (loser,) = [each for each in told if not each.get("first")]
        assert ("error" in loser) == (other is None)
        error = loser.get("error", {"code": "already_answered", "details": loser})
        assert error["code"] == "already_answered"
        assert error["details"]["decision"]["status"] == winner["decision"]["status"]
        held[thread] = winner["runId"], winner["decision"]["status"]

    for thread, (run_id, status) in held.items():
        assert ended(second, thread, run_id) == "ok"
        assert len(desk.done(thread)) == (status == "resolved")


def test_client_tools_of_one_turn(desk: Desk) -> None:
    """tools-05: three calls announced, one result; both answers come back in one request."""
    thread, (first, second) = desk.threads[0], desk.workers
    desk.model.add(Reply(calls=(PICK, CONFIRM, ADD)), Reply(text="thanks"))
    with socket(first) as page:
        page.send(json.dumps(request(thread, f"r1-{thread}", "go", tools=OFFERED)))
        found = hear(page, "RUN_FINISHED")
    answers = picked("pick", "red"), picked("confirm", "yes")
    after = run(second, thread, "r2", "go", *answers, tools=OFFERED)

    for kind in ("START", "ARGS", "END"):
        calls = [e["toolCallId"] for e in found if e["type"] == f"TOOL_CALL_{kind}"]
        assert sorted(set(calls)) == ["call_add", "call_confirm", "call_pick"]
    results = [e["toolCallId"] for e in found if e["type"] == "TOOL_CALL_RESULT"]
    assert results == ["call_add"]
    assert found[-1]["outcome"]["pendingToolCallIds"] == ["call_pick", "call_confirm"]
    assert after[-1]["outcome"] == {"type": "success"}
    assert len(desk.model.requests) == 2
    listed = [m for m in desk.model.requests[-1].messages if m["role"] == "tool"]
    assert [m["content"] for m in listed] == ["red", "yes", "3"]
    assert_sound(first, thread)


def test_a_result_from_two_tabs(desk: Desk) -> None:
    """tools-07: at the same instant and again later; one is stored, sent and gone on with."""
    thread, (first, second) = desk.threads[0], desk.workers
    desk.model.add(Reply(calls=(PICK,)), Reply(text="thanks"))
    run(first, thread, "r1", "go", tools=OFFERED)
    told = at_once(
        lambda: send(first, thread, "r2", "go", picked("pick", "red", "t1"), tools=OFFERED),
        lambda: send(second, thread, "r3", "go", picked("pick", "blue", "t2"), tools=OFFERED),
    )
    again = refused(second, thread, "go", picked("pick", "green", "t3"), tools=OFFERED)
    snapshot = next(e for e in joined(second, thread) if e["type"] == "MESSAGES_SNAPSHOT")

    (lost,) = [each.json()["error"] for each in told if each.status_code != 200]
    assert lost["code"] in ("already_answered", "thread_busy")
    won = "red" if told[0].status_code == 200 else "blue"
    assert again["code"] == "already_answered"
    heads = get(first, f"/threads/{thread}/messages?fields=full")["messages"]
    stored = [head["message"] for head in heads]
    for messages in (stored, snapshot["messages"], desk.model.requests[-1].messages):
        assert [m["content"] for m in messages if m["role"] == "tool"] == [won]
    assert len(desk.model.requests) == 2
    assert_sound(first, thread)


def test_a_producer_that_is_killed(desk: Desk) -> None:
    """protocol-05: SIGKILL in mid-text; who watches elsewhere gets the end, and it goes on."""
    thread, (_, second) = desk.threads[0], desk.workers
    desk.model.add(Reply(text="half of it", hold_after=3))
    with (
        socket(desk.workers[0]) as asking,
        socket(second, f"?threadId={thread}&protocolVersion=1.0") as watching,
    ):
        asking.send(json.dumps(request(thread, f"r1-{thread}", "go")))
        hear(watching, "TEXT_MESSAGE_CONTENT")
        desk.workers[0].kill()
        found = hear(watching, "RUN_ERROR")
    desk.workers[0] = desk.new()
    desk.model.add(Reply(text="whole"))
    after = run(desk.workers[0], thread, "r2", "go", "again")

    types = [event["type"] for event in found if event["type"] != "TEXT_MESSAGE_CONTENT"]
    assert types == ["TEXT_MESSAGE_END", "STEP_FINISHED", "RUN_ERROR"]
    assert found[-1]["code"] == "worker_lost"
    assert after[-1]["outcome"] == {"type": "success"}
    assert_sound(second, thread)
