"""Questions over the wire: listed, decided by frame, by POST, by operators; told as they change."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from backscroll.kernel.tool import tool
from deadlines import scaled
from played_model import StreamingModel, call, calls
from served import Served, request, served, until
from working import agent_of, key, until_ended

YES = {"approved": True}
API = "/console/api"


@tool(sensitive=True)
def pay(to: str) -> str:
    """Pay somebody."""
    return f"paid {to}"


@pytest.fixture
async def asking(valkey_url: str, prefix: str) -> AsyncIterator[Served]:
    """Give a server whose thread t waits for two approvals."""
    batch = calls(call("pay", {"to": "ann"}, "c1"), call("pay", {"to": "bob"}, "c2"))
    agent = agent_of(model=StreamingModel([batch, "done"]), tools=[pay])
    async with served(agent, valkey_url, prefix) as server:
        await server.run("t", "r", "go")
        yield server


def frame(name: str, status: str = "resolved", **more: Any) -> dict[str, Any]:
    """Return the decision of a question of thread t."""
    return {"threadId": "t", "interruptId": name, "status": status, "payload": YES, **more}


async def hear(socket: Any) -> Any:
    """Return the next frame of a socket."""
    async with asyncio.timeout(scaled(10)):
        return json.loads(await socket.recv())


@asynccontextmanager
async def subscribed(server: Served) -> AsyncIterator[Any]:
    """Open a console socket that follows the questions."""
    async with server.socket("/console/ws") as socket:
        await socket.send(json.dumps({"subscribe": {"questions": True}}))
        yield socket


async def test_questions_are_listed(asking: Served) -> None:
    """hitl-02: of all threads and of one, with their arguments; heads count them."""
    every = (await asking.get(f"{API}/questions"))["questions"]
    own = (await asking.get(f"{API}/threads/t/questions"))["questions"]
    head = await asking.get(f"{API}/threads/t")
    found = await asking.get(f"{API}/threads?has=questions")

    assert every == own and [q["interrupt_id"] for q in every] == ["c1", "c2"]
    assert every[0] == {
        "interrupt_id": "c1",
        "thread": "t",
        "kind": "approval",
        "run": "r",
        "tool": "pay",
        "input": {"to": "ann"},
        "asked": every[0]["asked"],
        "reason": "pay needs approval before it runs.",
    }
    assert (head["status"], head["questions"]) == ("waiting", 2) and head["pause"]
    assert [thread["thread"] for thread in found["threads"]] == ["t"]


async def test_one_by_one_over_http(asking: Served) -> None:
    """The answer names what is open; the last one starts the run that was asked for."""
    first = await asking.http.post("/agui/answer", json=frame("c1"))
    body = {"status": "cancelled", "payload": {"reason": "no"}, "runId": "r9"}
    second = await asking.http.post(f"{API}/threads/t/questions/c2", json=body)
    await until_ended(asking.worker, "r9")
    own = (await asking.get(f"{API}/threads/t/questions"))["questions"]

    assert first.json() == {
        "type": "answered",
        "threadId": "t",
        "interruptId": "c1",
        "first": True,
        "decision": {"status": "resolved", "payload": YES},
        "open": ["c2"],
    }
    assert second.json()["open"] == [] and second.json()["runId"] == "r9"
    assert [q["decision"]["status"] for q in own] == ["resolved", "cancelled"]
    assert {(q["decision"]["by"], q["decision"]["run"]) for q in own} == {("local", "r9")}
    assert (await asking.get(f"{API}/questions"))["questions"] == []


async def test_answers_by_frame(asking: Served) -> None:
    """hitl-03: answered, the same again, and another one, each as a notice."""
    async with asking.socket() as socket:
        told = []
        for each in (frame("c1"), frame("c1"), frame("c1", "cancelled", payload=None)):
            await socket.send(json.dumps({"type": "answer", **each}))
            told.append(await hear(socket))

    assert [t.get("first") for t in told] == [True, False, None]
    assert told[2]["type"] == "refusal" and told[2]["error"]["code"] == "already_answered"
    details = told[2]["error"]["details"]
    assert details["decision"] == {"status": "resolved", "payload": YES}
    assert details["interruptId"] == "c1"


@pytest.mark.parametrize("path", ["/agui", "/agui?dialect=durable"])
async def test_an_answer_on_a_socket_that_watches_nothing(asking: Served, path: str) -> None:
    """It is told what came of it and nothing else; the run it names can be replayed."""
    async with asking.socket(path) as socket:
        told = []
        for each in (frame("c1"), frame("c2", runId="r9")):
            await socket.send(json.dumps({"type": "answer", **each}))
            told.append(await hear(socket))
        await until_ended(asking.worker, "r9")
        await socket.send(json.dumps({"type": "ping"}))
        while (after := await hear(socket)) == {"type": "ping"}:
            pass
    async with asking.socket("/agui?runId=r9&offset=-1") as socket:
        replayed = [json.loads(text)["chunk"] async for text in socket]

    assert {notice["type"] for notice in told} == {"answered"} and after == {"type": "pong"}
    assert (told[1]["open"], told[1]["runId"]) == ([], "r9")
    ran = [e["content"] for e in replayed if e["type"] == "TOOL_CALL_RESULT"]
    assert sorted(ran) == ["paid ann", "paid bob"]
    assert replayed[-1]["type"] == "RUN_FINISHED"


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        (frame("c1", "maybe"), 422, "invalid_input"),
        (frame("c1", payload={"approved": 1}), 422, "interrupt_invalid"),
        (frame("c7"), 409, "interrupt_unknown"),
        ({**frame("c1"), "threadId": "other"}, 409, "not_paused"),
        ({"status": "resolved"}, 422, "invalid_input"),
    ],
)
async def test_answers_that_do_not_fit(
    asking: Served, body: dict[str, Any], status: int, code: str
) -> None:
    """Each is refused with its code, and the question stays open."""
    answer = await asking.http.post("/agui/answer", json=body)

    assert (answer.status_code, answer.json()["error"]["code"]) == (status, code)
    assert len((await asking.get(f"{API}/questions"))["questions"]) == 2


async def test_the_socket_tells_of_changes(asking: Served) -> None:
    """hitl-02: the open ones on subscribing, then what is decided elsewhere, within 2 s."""
    async with subscribed(asking) as socket:
        first = await hear(socket)
        await asking.http.post("/agui/answer", json=frame("c1"))
        second = await hear(socket)

    assert [q["interrupt_id"] for q in first["questions"]] == ["c1", "c2"]
    (decided,) = second["questions"]
    assert decided["interrupt_id"] == "c1" and decided["decision"]["status"] == "resolved"


async def test_calls_of_a_page_wait_too(valkey_url: str, prefix: str) -> None:
    """A call that waits for a page is listed, counted in the head, and gone with its result."""
    offered = [{"name": "pick", "description": "Pick.", "parameters": {"type": "object"}}]
    picked = {"id": "t1", "role": "tool", "toolCallId": "call_pick", "content": "red"}
    agent = agent_of(model=StreamingModel([calls(call("pick")), "thanks"]))
    async with served(agent, valkey_url, prefix) as server:
        await server.run("t", "r", "go", tools=offered)
        every = (await server.get(f"{API}/questions"))["questions"]
        found = (await server.get(f"{API}/threads?has=questions"))["threads"]
        await server.run("t", "r2", "go", picked, tools=offered)
        after = (await server.get(f"{API}/questions"))["questions"]
        head = await server.get(f"{API}/threads/t")

    assert [(q["interrupt_id"], q["kind"]) for q in every] == [("call_pick", "client")]
    assert [(t["thread"], t["questions"]) for t in found] == [("t", 1)]
    assert after == [] and head["questions"] == 0


async def test_a_pause_nobody_can_read(asking: Served, caplog: pytest.LogCaptureFixture) -> None:
    """pause_unreadable: every route says so; a console's socket goes on with what it knew."""
    worker, name = asking.worker, asking.worker.keys.pause(key())
    async with subscribed(asking) as socket:
        await hear(socket)
        kept = await worker.clients.read.hget(name, "open")
        await worker.clients.write.hset(name, "open", b'{"version":99}')
        answers = [
            await asking.http.get(f"{API}/threads/t/questions"),
            await asking.http.post("/agui/answer", json=frame("c1")),
            await asking.http.post("/agui", json=request("t", "r2", "go", "hello?")),
        ]
        seen = caplog.text.count("cannot be read")
        await until(lambda: caplog.text.count("cannot be read") > seen + 2, "it looked again")
        await worker.clients.write.hset(name, "open", kept)
        await asking.http.post("/agui/answer", json=frame("c1"))
        (told,) = (await hear(socket))["questions"]

    found = {(a.status_code, a.json()["error"]["code"]) for a in answers}
    assert found == {(500, "pause_unreadable")}
    assert told["interrupt_id"] == "c1" and told["decision"]["status"] == "resolved"


async def test_nothing_asked_is_said_so(valkey_url: str, prefix: str) -> None:
    """An empty list is told once: an error is never taken for it."""
    async with served(agent_of("x"), valkey_url, prefix) as server, subscribed(server) as socket:
        assert await hear(socket) == {"questions": []}


async def test_joining_shows_what_is_still_open(asking: Served) -> None:
    """hitl-01: the prelude ends with the questions nobody answered yet."""
    await asking.http.post("/agui/answer", json=frame("c1"))
    async with asking.socket("/agui?threadId=t&protocolVersion=1.0") as socket:
        found = [await hear(socket)]
        while found[-1]["type"] != "RUN_FINISHED":
            found.append(await hear(socket))

    (question,) = found[-1]["outcome"]["interrupts"]
    assert question["id"] == "c2" and question["metadata"]["input"] == {"to": "bob"}
    assert found[0]["runId"] == found[-1]["runId"] == "r"
