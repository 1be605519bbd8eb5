"""The official AG-UI client, its older sibling, over HTTP and over WebSocket."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import httpx
import pytest
from client_cells import (
    BARE,
    DURABLE,
    HTTP,
    OLD_BARE,
    assert_log_is_valid,
    assert_same_as_join,
    every_client,
    every_socket,
)
from deadlines import wait_until
from node_clients import Playing, comparable, join, play, say
from provider_script import Call, Hold, Reply

if TYPE_CHECKING:
    from conftest import World
    from node_clients import Cell


@every_client
def test_two_turns(world: World, cell: Cell) -> None:
    """S1, protocol-10: two turns with the whole list resent store each message once."""
    world.model.add(Reply("Hello."), Reply("Fine."))

    told = play(cell, world.workers, world.thread, say("u1", "Hi"), say("u2", "How are you?"))

    assert told.complaints == []
    roles_and_texts = [(m["role"], m["content"]) for m in comparable(told.messages)]
    assert roles_and_texts == [
        ("user", "Hi"),
        ("assistant", "Hello."),
        ("user", "How are you?"),
        ("assistant", "Fine."),
    ]
    sent = [m["content"] for m in world.model.requests[1].messages if m["role"] != "system"]
    assert sent == ["Hi", "Hello.", "How are you?"]
    assert_same_as_join(world, told)
    assert_log_is_valid(world)


@every_client
def test_tools(world: World, cell: Cell) -> None:
    """S2, protocol-01, protocol-12: parallel calls, one of them failing, text around them."""
    wanted = (Call("add", {"a": 1, "b": 2}), Call("get_order", {"id": 7}), Call("broken"))
    world.model.add(Reply("Let me look.", calls=wanted), Reply("All done."))

    told = play(cell, world.workers, world.thread, say("u1", "Go"))

    assert told.complaints == []
    user, asked, *results, answer = comparable(told.messages)
    assert asked["content"] == "Let me look." and answer["content"] == "All done."
    arguments = [json.loads(call["function"]["arguments"]) for call in asked["toolCalls"]]
    assert arguments == [call.args for call in wanted]
    assert [r["toolCallId"] for r in results] == [call["id"] for call in asked["toolCalls"]]
    assert results[0]["content"] == "3" and "paid" in results[1]["content"]
    assert_same_as_join(world, told)
    assert_log_is_valid(world, "AGUI208")


@every_client
def test_text_is_closed_before_calls(world: World, cell: Cell) -> None:
    """protocol-01, protocol-06: no tool event lies inside a text message, no delta is empty."""
    function = {"name": "add", "arguments": '{"a":1,"b":2}'}
    call = {"index": 0, "id": "c1", "type": "function", "function": function}
    deltas = [{"content": text} for text in ("", "Let me look", "")]
    finish = {"choices": [{"index": 0, "delta": {"content": ""}, "finish_reason": "tool_calls"}]}
    world.model.add(Reply(chunks=(*deltas, {"tool_calls": [call]}, finish)), Reply("3"))

    told = play(cell, world.workers, world.thread, say("u1", "Add"))

    first = [t for t in told.types() if t.startswith(("TEXT", "TOOL"))][:7]
    assert first == [
        "TEXT_MESSAGE_START",
        "TEXT_MESSAGE_CONTENT",
        "TEXT_MESSAGE_END",
        "TOOL_CALL_START",
        "TOOL_CALL_ARGS",
        "TOOL_CALL_END",
        "TOOL_CALL_RESULT",
    ]
    assert all(event.get("delta") != "" for event in told.steps[0]["events"])


@every_client
def test_history_without_a_run(world: World, cell: Cell) -> None:
    """protocol-11: joining a thread gives its history once and asks no model."""
    world.model.add(Reply("One."), Reply("Two."))
    before = play(HTTP, world.workers, world.thread, say("u1", "A"), say("u2", "B"))

    told = play(cell, world.workers[::-1], world.thread, join())

    assert told.types().count("MESSAGES_SNAPSHOT") == 1
    assert comparable(told.messages) == comparable(before.messages)
    assert len(world.model.requests) == 2


@pytest.mark.parametrize("cell", [HTTP, BARE, OLD_BARE], ids=str)
def test_join_with_other_messages(world: World, cell: Cell) -> None:
    """S8: a client that is behind and holds messages of its own ends with the stored history."""
    world.model.add(Reply("One."), Reply("Two."))
    before = play(HTTP, world.workers, world.thread, say("u1", "A"), say("u2", "B"))
    foreign = {"id": "x1", "role": "assistant", "content": "a greeting that is not stored"}

    told = play(
        cell, world.workers[::-1], world.thread, join(), history=[foreign, *before.messages[:2]]
    )

    assert told.complaints == []
    assert comparable(told.messages) == comparable(before.messages)


@every_client
def test_unknown_thread(world: World, cell: Cell) -> None:
    """protocol-11: joining a thread that does not exist is an empty, well-formed answer."""
    told = play(cell, world.workers, world.thread, join())

    assert told.types() == ["RUN_STARTED", "RUN_FINISHED"]
    assert told.messages == [] and told.complaints == []


def connections(world: World) -> int:
    """Return how many sockets the workers have open."""
    answer = httpx.get(f"{world.second.url}/console/api/system", trust_env=False, timeout=10)
    return sum(worker["connections"] for worker in answer.json()["workers"])


@pytest.mark.parametrize("spoken", [0, 1, 50])
@every_socket
def test_join_a_live_run(world: World, cell: Cell, spoken: int) -> None:
    """S8: clients that join on the other worker in mid-answer end with the same messages."""
    words = [{"content": f"{n} "} for n in range(100)]
    finish = {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}
    world.model.add(Reply(chunks=(*words[:spoken], Hold(), *words[spoken:], finish)))
    running = Playing(BARE, world.workers, world.thread, steps=[say("u1", "Count")])
    world.model.wait_held()
    before = connections(world)

    others = [Playing(cell, world.workers[::-1], world.thread, steps=[join()]) for _ in range(3)]
    wait_until(lambda: connections(world) >= before + 3, 10, "three clients have joined")
    world.model.release()

    whole = running.told()
    assert whole.messages[-1]["content"].split() == [str(n) for n in range(100)]
    for other in others:
        told = other.told()
        assert told.complaints == []
        assert comparable(told.messages) == comparable(whole.messages)


@pytest.mark.parametrize("after", [1, 2, 3, 10, 30])
def test_drop_and_resume(world: World, after: int) -> None:
    """S9: a socket lost in mid-answer is resumed by cursor on the other worker, nothing twice."""
    words = " ".join(str(n) for n in range(60))
    world.model.add(Reply(words, pause_s=0.02))

    told = play(DURABLE, world.workers, world.thread, say("u1", "Count"), dropAfter=after)

    assert told.complaints == []
    assert told.types()[0] == "RUN_STARTED" and told.types()[-1] == "RUN_FINISHED"
    assert told.messages[-1]["content"] == words
    cursors = [json.loads(frame)["id"] for frame in told.wire if "chunk" in frame]
    numbers = [int(cursor.split(".")[0]) for cursor in cursors]
    assert numbers == sorted(set(numbers))
    assert_same_as_join(world, told)


BAD = {
    "not_json": ("hello", "not_json", 400),
    "list": ("[]", "not_json", 400),
    "no_id": ({"messages": [{"role": "user", "content": "x"}]}, "invalid_input", 422),
    "role": ({"messages": [{"id": "u0", "role": "robot", "content": "x"}]}, "invalid_input", 422),
    "no_messages": ({}, "invalid_input", 422),
}
PATHS = {"no_id": "messages[0].id", "role": "messages[0].role", "no_messages": "messages"}


def bad_request(name: str, thread: str) -> str:
    """Return the text of a bad request: as it stands, or a whole request with one member off."""
    bad = BAD[name][0]
    if isinstance(bad, str):
        return bad
    rest = {
        "threadId": thread,
        "runId": f"{thread}-{name}",
        "tools": [],
        "context": [],
        "state": {},
    }
    return json.dumps({**rest, "forwardedProps": {}, **bad})


@pytest.mark.parametrize("cell", [HTTP, BARE], ids=str)
def test_bad_requests_then_a_good_one(world: World, cell: Cell) -> None:
    """S16, protocol-09: each bad request is refused with the path, then a good one runs."""
    world.model.add(Reply("Fine."))
    bad = [{"do": "run", "instead": bad_request(name, world.thread)} for name in BAD]

    told = play(cell, world.workers, world.thread, *bad, say("u1", "Hi"))

    for place, (name, (_, code, status)) in enumerate(BAD.items()):
        if cell.is_socket:
            assert told.codes(place) == [code], name
            said = told.steps[place]["events"][0]["message"]
        else:
            assert told.wire[place]["status"] == status, name
            error = json.loads(told.wire[place]["text"])["error"]
            said, answered = error["message"], error["code"]
            assert answered == code
        assert PATHS.get(name, "") in said
    assert told.steps[-1]["messages"][-1]["content"] == "Fine."
    assert len(world.model.requests) == 1
