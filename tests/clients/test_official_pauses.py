"""Frontend tools and approvals with the official client, its older sibling, on every transport."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from client_cells import (
    BARE,
    CELLS,
    HTTP,
    assert_log_is_valid,
    assert_same_as_join,
    every_client,
)
from node_clients import Told, comparable, join, play, say
from provider_script import Call, Reply

if TYPE_CHECKING:
    from conftest import World
    from node_clients import Cell

TOOLS = [
    {"name": name, "description": name, "parameters": {"type": "object", "properties": {}}}
    for name in ("pick", "confirm")
]
PICK, CONFIRM = Call("pick", {}, "call_pick"), Call("confirm", {}, "call_confirm")
ADD = Call("add", {"a": 1, "b": 2}, "call_add")
PAY = Call("pay", {"to": "ann", "amount": 10}, "call_pay")
MAIL = Call("mail", {"to": "bob"}, "call_mail")
YES = {"approved": True}
EARLIER_RUN = "AGUI207"
"""The validator judges each run alone, so it misses the call that an earlier run announced."""


def answer(name: str, content: str, id: str = "") -> dict[str, Any]:
    """Return the message with which a page answers a call."""
    return {
        "id": id or f"t_{name}",
        "role": "tool",
        "toolCallId": f"call_{name}",
        "content": content,
    }


def go_on(*messages: Any, **more: Any) -> dict[str, Any]:
    """Return the step that sends results, or answers, or both."""
    return {"do": "run", "messages": list(messages), **more}


def resolved(**payloads: Any) -> list[dict[str, Any]]:
    """Return resume entries."""
    return [
        {"interruptId": f"call_{name}", "status": "resolved", "payload": payload}
        for name, payload in payloads.items()
    ]


def results(world: World, request: int = -1) -> list[str]:
    """Return the tool results that a request to the model held, in order."""
    return [m["content"] for m in world.model.requests[request].messages if m["role"] == "tool"]


def ended(told: Told, step: int = -1) -> dict[str, Any]:
    """Return the terminal event of a step."""
    event: dict[str, Any] = told.steps[step]["events"][-1]
    return event


def asked(told: Told, step: int = -1) -> list[str]:
    """Return the questions with which a step ended."""
    outcome = ended(told, step).get("outcome") or {}
    return [question["id"] for question in outcome.get("interrupts", ())]


@every_client
def test_client_tools_answered_together(world: World, cell: Cell) -> None:
    """S3, tools-05: two calls of the page and one of the server; one request has all results."""
    world.model.add(Reply("Your turn.", calls=(PICK, CONFIRM, ADD)), Reply("Thanks."))
    both = go_on(answer("confirm", "yes"), answer("pick", "red"), tools=TOOLS)

    told = play(cell, world.workers, world.thread, say("u1", "Go", tools=TOOLS), both)

    assert told.complaints == [] and told.messages[-1]["content"] == "Thanks."
    assert (
        told.types(0).count("TOOL_CALL_END") == 3 and told.types(0).count("TOOL_CALL_RESULT") == 1
    )
    if cell.client == "new":
        assert ended(told, 0)["outcome"]["pendingToolCallIds"] == ["call_pick", "call_confirm"]
    assert results(world) == ["red", "yes", "3"]
    assert_same_as_join(world, told)
    assert_log_is_valid(world)


@every_client
def test_client_tools_answered_apart(world: World, cell: Cell) -> None:
    """S3: the first result is kept and the rest still waits; the other worker joins in between."""
    world.model.add(Reply(calls=(PICK, CONFIRM)), Reply("Thanks."))
    steps = (say("u1", "Go", tools=TOOLS), go_on(answer("pick", "red"), tools=TOOLS))
    before = play(cell, world.workers, world.thread, *steps)
    joined = play(cell, world.workers[::-1], world.thread, join())

    last = go_on(answer("confirm", "yes"), tools=TOOLS)
    told = play(cell, world.workers[::-1], world.thread, join(), last)

    assert before.complaints == joined.complaints == told.complaints == []
    assert comparable(joined.messages) == comparable(before.messages)
    assert results(world) == ["red", "yes"] and told.messages[-1]["content"] == "Thanks."
    assert_same_as_join(world, told)
    assert_log_is_valid(world)


@every_client
def test_a_result_sent_twice(world: World, cell: Cell) -> None:
    """S3, tools-07: the second one is refused; one message, one continuation."""
    world.model.add(Reply(calls=(PICK,)), Reply("Thanks."))
    first = go_on(answer("pick", "red"), tools=TOOLS)
    before = play(cell, world.workers, world.thread, say("u1", "Go", tools=TOOLS), first)

    again = go_on(answer("pick", "blue", "other"), tools=TOOLS)
    late = play(cell, world.workers[::-1], world.thread, again, history=before.messages[:2])

    if cell.is_socket:
        assert late.codes() == ["already_answered"]
    else:
        assert json.loads(late.wire[-1]["text"])["error"]["code"] == "already_answered"
    assert len(world.model.requests) == 2 and results(world) == ["red"]
    assert_same_as_join(world, before)


@every_client
def test_approve_after_a_reload_on_the_other_worker(world: World, cell: Cell) -> None:
    """S4, hitl-01: the question is there again with its id and arguments, and is answered."""
    world.model.add(Reply("May I?", calls=(PAY,)), Reply("Done."))
    before = play(cell, world.workers, world.thread, say("u1", "Pay ann"))

    answered = go_on(resume=resolved(pay=YES))
    told = play(cell, world.workers[::-1], world.thread, join(), answered)

    assert before.complaints == told.complaints == []
    assert asked(before) == asked(told, 0) == ["call_pay"]
    question = ended(told, 0)["outcome"]["interrupts"][0]
    assert question["metadata"]["input"] == {"to": "ann", "amount": 10}
    assert results(world) == ["paid 10 to ann"] and told.messages[-1]["content"] == "Done."
    assert asked(told) == []
    assert_same_as_join(world, told)
    assert_log_is_valid(world, EARLIER_RUN)


@pytest.mark.parametrize(
    ("payload", "result"),
    [
        ({**YES, "editedArgs": {"to": "bob", "amount": 7}}, "paid 7 to bob"),
        ({"result": "paid by hand"}, "paid by hand"),
        (
            {"approved": False, "reason": "too much"},
            "The user did not allow this call: too much. It was not executed.",
        ),
    ],
    ids=["edit", "reply", "reject"],
)
@pytest.mark.parametrize("cell", CELLS, ids=str)
def test_other_answers(world: World, cell: Cell, payload: Any, result: str) -> None:
    """S4: edited arguments, an answer in place of the call, a refusal with its reason."""
    world.model.add(Reply(calls=(PAY,)), Reply("Done."))

    answered = go_on(resume=resolved(pay=payload))
    told = play(cell, world.workers, world.thread, say("u1", "Pay ann"), answered)

    assert told.complaints == [] and results(world) == [result]
    assert told.messages[-1]["content"] == "Done."
    assert_same_as_join(world, told)
    assert_log_is_valid(world, EARLIER_RUN)


@every_client
def test_reject_one_of_two(world: World, cell: Cell) -> None:
    """S4, hitl-05: the neighbour and the call that needs nobody run, one request has all three."""
    world.model.add(Reply(calls=(ADD, PAY, MAIL)), Reply("Done."))
    entries = [{"interruptId": "call_pay", "status": "cancelled"}, *resolved(mail=YES)]

    told = play(cell, world.workers, world.thread, say("u1", "Go"), go_on(resume=entries))

    assert told.complaints == [] and asked(told, 0) == ["call_pay", "call_mail"]
    refusal = "The user did not allow this call. It was not executed."
    assert results(world) == ["3", refusal, "sent to bob"]
    assert_same_as_join(world, told)
    assert_log_is_valid(world, EARLIER_RUN)


@every_client
def test_answered_twice(world: World, cell: Cell) -> None:
    """S4, hitl-03: a second client that still sees the question is told what holds."""
    world.model.add(Reply(calls=(PAY,)), Reply("Done."))
    before = play(cell, world.workers, world.thread, say("u1", "Pay ann"))
    answered = go_on(resume=resolved(pay=YES))
    told = play(cell, world.workers, world.thread, answered, history=before.messages)

    other = [{"interruptId": "call_pay", "status": "cancelled"}]
    late = play(
        cell, world.workers[::-1], world.thread, go_on(resume=other), history=before.messages
    )

    if cell.is_socket:
        assert late.codes() == ["already_answered"]
    else:
        details = json.loads(late.wire[-1]["text"])["error"]["details"]
        assert details["decision"]["payload"] == YES
    assert results(world) == ["paid 10 to ann"] and len(world.model.requests) == 2
    assert_same_as_join(world, told)


@every_client
def test_a_message_in_place_of_an_answer(world: World, cell: Cell) -> None:
    """S4, HITL5: refused while the question is open; with the wish to abandon it works."""
    world.model.add(Reply(calls=(PAY,)), Reply("Fine."))
    before = play(cell, world.workers, world.thread, say("u1", "Pay ann"))

    refused = play(
        cell, world.workers[::-1], world.thread, say("u2", "Hello?"), history=before.messages
    )
    props = {"backscroll.abandon": True}
    told = play(
        cell,
        world.workers[::-1],
        world.thread,
        say("u2", "Hello?", forwardedProps=props),
        history=before.messages,
    )

    if cell.is_socket:
        assert refused.codes() == ["awaiting_resume"]
    assert told.messages[-1]["content"] == "Fine." and told.complaints == []
    assert "never approved" in results(world)[0]
    assert_same_as_join(world, told)
    assert_log_is_valid(world, EARLIER_RUN)


def test_questions_survive_the_page_of_another_client(world: World) -> None:
    """S4: a client of one generation asks, one of the other generation answers."""
    old = next(cell for cell in CELLS if cell.client == "old" and cell.is_socket)
    world.model.add(Reply(calls=(PAY,)), Reply("Done."))
    play(old, world.workers, world.thread, say("u1", "Pay ann"))

    told = play(BARE, world.workers[::-1], world.thread, join(), go_on(resume=resolved(pay=YES)))

    assert told.complaints == [] and told.messages[-1]["content"] == "Done."
    assert_same_as_join(world, told)


@pytest.mark.parametrize("cell", [HTTP, BARE], ids=str)
def test_a_question_and_a_call_of_the_page(world: World, cell: Cell) -> None:
    """S3, S4: one reply asks people and the page; both answers go back in one request."""
    world.model.add(Reply("Both of you.", calls=(ADD, PAY, PICK)), Reply("Done."))
    before = play(cell, world.workers, world.thread, say("u1", "Go", tools=TOOLS))

    both = go_on(answer("pick", "red"), resume=resolved(pay=YES), tools=TOOLS)
    told = play(cell, world.workers[::-1], world.thread, join(), both)

    assert before.complaints == told.complaints == []
    assert asked(before) == asked(told, 0) == ["call_pay"] and asked(told) == []
    assert "TOOL_CALL_RESULT" not in before.types()
    assert results(world) == ["3", "paid 10 to ann", "red"]
    assert told.messages[-1]["content"] == "Done."
    assert_same_as_join(world, told)
    assert_log_is_valid(world, EARLIER_RUN)
