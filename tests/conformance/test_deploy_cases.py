"""Workers come and go: stopped in time, nothing is lost, and it never matters which one answers."""

from __future__ import annotations

import asyncio
import signal
import time
from contextlib import AsyncExitStack
from typing import Any

import httpx
import pytest
from agui_checker import problems_of
from backscroll.settings import Settings
from backscroll.store.connection import RedisClients
from backscroll.store.keys import Keys, ThreadKey
from conformance.stage import Stage
from deadlines import scaled
from processes import ServerProcess
from quiet_proxy import quiet_proxy
from scripted_provider import Call, Hold, Reply
from served import sse_events
from wire_client import WireClient, ask, deaf_socket

LIMIT_S = 15
DRAIN_S = 1
LEAVE_S = 5
"""What a worker takes at most besides: for runs to end, and for what is open to be closed."""


async def stopped(server: ServerProcess) -> tuple[int, float]:
    """Send SIGTERM once; return the exit status and how long the end took."""
    began = time.monotonic()
    server.signal(signal.SIGTERM)
    status = await asyncio.to_thread(server.wait, LIMIT_S)
    return status, time.monotonic() - began


@pytest.mark.parametrize("busy", ["model", "wait_for", "stuck"])
async def test_a_stop_ends_the_process_in_time(
    stage: Stage, clients: RedisClients, busy: str
) -> None:
    """deploy-01: twenty sockets and a run that hears nothing: status 0 in time, no lease left."""
    path = {"path": str(stage.folder / "never")}
    reply = Reply(chunks=({"content": "a"}, Hold(), {"content": "b"}))
    stage.model.add(reply if busy == "model" else Reply(calls=(Call(busy, path),)))
    watch = f"?dialect=durable&threadId={stage.thread}&protocolVersion=1.0"
    others = await living(clients, stage)
    server = stage.serve(drain_s=DRAIN_S).start()
    async with AsyncExitStack() as stack:
        stack.enter_context(deaf_socket(server.port, watch))
        streamed = asyncio.ensure_future(until_told_all(f"{server.url}/agui{watch}"))
        sockets = [
            await stack.enter_async_context(WireClient(server.ws_url, watch)) for _ in range(20)
        ]
        await sockets[0].send(ask(stage.thread, f"{stage.thread}-1", "go"))
        is_begun = "TEXT_MESSAGE_CONTENT" if busy == "model" else "TOOL_CALL_END"
        await sockets[0].until_saw(is_begun)
        status, took = await stopped(server)
        for client in sockets:
            await client.until_closed()

    assert status == 0 and "Cancel" not in server.output(), server.output()
    assert took < DRAIN_S + LEAVE_S
    assert {client.code for client in sockets} == {1012}
    assert sockets[7].saw("RUN_ERROR", code="restarting")
    assert [event["type"] for event in await streamed][-1] == "RUN_ERROR"
    meta = await clients.read.hgetall(Keys(stage.prefix).meta(ThreadKey("local", stage.thread)))
    assert not {b"run", b"lease", b"stop"} & set(meta) and meta[b"last_status"] == b"error"
    assert await living(clients, stage) == others


async def until_told_all(url: str) -> list[dict[str, Any]]:
    """Read a stream of server-sent events until it ends, as it must: not torn."""
    async with httpx.AsyncClient(trust_env=False, timeout=60) as http:
        return sse_events((await http.get(url)).text)


async def living(clients: RedisClients, stage: Stage) -> set[bytes]:
    """Return the workers that Redis knows of."""
    return set(await clients.read.hkeys(Keys(stage.prefix).workers()))


def test_the_default_is_in_time() -> None:
    """deploy-01: with what is set by default it takes fifteen seconds at most."""
    assert Settings(_env_file=None).drain_s + LEAVE_S <= LIMIT_S  # type: ignore[call-arg]


@pytest.mark.parametrize("is_ended", [True, False], ids=["ends", "is ended"])
async def test_a_deploy_loses_no_conversation(stage: Stage, is_ended: bool) -> None:
    """deploy-02: the run ends in the time it has or is ended; all of it is on the other worker."""
    stage.model.add(Reply(chunks=({"content": "Once "}, Hold(), {"content": "more."})))
    watch = f"?dialect=durable&threadId={stage.thread}&protocolVersion=1.0"
    leaving = stage.serve(drain_s=scaled(5 if is_ended else DRAIN_S)).start()
    async with quiet_proxy(leaving.port, stage.second.port) as proxy:
        url = f"ws://127.0.0.1:{proxy.port}"
        async with WireClient(url, watch) as client:
            await client.send(ask(stage.thread, f"{stage.thread}-1", "go"))
            await client.until_saw("TEXT_MESSAGE_CONTENT")
            ending = asyncio.ensure_future(stopped(leaving))
            refused = await draining(leaving, f"{stage.thread}-other")
            if is_ended:
                stage.model.release()
            await client.until_closed()
            status, _ = await ending
        again = f"{watch}&offset={client.cursors[-1]}"
        async with WireClient(url, again) as back, WireClient(url, watch) as joined:
            await joined.until_ended()
            stage.model.add(Reply("Here again."))
            await back.send(ask(stage.thread, f"{stage.thread}-2", "and now?"))
            await back.until_ended()

    assert (status, client.code, refused) == (0, 1012, "draining")
    whole = [*client.events, *back.events]
    assert whole[len(client.events)]["runId"] == f"{stage.thread}-2"
    told = [event for event in client.events if event["type"] in ("RUN_FINISHED", "RUN_ERROR")]
    assert told[-1].get("code") == (None if is_ended else "restarting")
    snapshot = next(e for e in joined.events if e["type"] == "MESSAGES_SNAPSHOT")["messages"]
    assert [m["content"] for m in snapshot] == ["go", "Once more." if is_ended else "Once "]
    assert problems_of(whole[2:]) == []


async def draining(server: ServerProcess, thread: str) -> str:
    """Ask a worker that was told to stop for a run until it refuses; return the code."""
    async with httpx.AsyncClient(base_url=server.url, trust_env=False) as http:
        while True:
            ready = await http.get("/readyz")
            if ready.status_code == 503:
                break
        answer = await http.post("/agui", json=ask(thread, f"{thread}-1", "hi"))
    code: str = answer.json()["error"]["code"]
    assert answer.headers["retry-after"] and answer.status_code == 503
    return code


async def test_any_worker_will_do(stage: Stage) -> None:
    """deploy-03: what is sent through another worker takes effect, and six clients see the same."""
    waits = Call("wait_for", {"path": str(stage.folder / "never")})
    pick = {"name": "pick", "description": "", "parameters": {"type": "object"}}
    thread, watch = stage.thread, f"?dialect=durable&threadId={stage.thread}&protocolVersion=1.0"
    stage.model.add(Reply("One."), Reply(calls=(waits,)), Reply(calls=(PAY,)), Reply("Paid."))
    stage.model.add(Reply(calls=(Call("pick", {}, "c_pick"),)), Reply("Picked."))
    with stage.serve() as third:
        workers = (stage.first, stage.second, third)
        async with AsyncExitStack() as stack:
            six = [
                await stack.enter_async_context(WireClient(workers[n % 3].ws_url, watch))
                for n in range(6)
            ]
            first, second, last = six[:3]
            await all_ended(six, 1)
            await second.send(ask(thread, f"{thread}-1", "go"))
            await all_ended(six, 2)
            await first.send(ask(thread, f"{thread}-2", "wait"))
            await last.until_saw("TOOL_CALL_END")
            await second.send({"type": "abort", "runId": f"{thread}-2"})
            await all_ended(six, 3, within_s=1)
            await first.send(ask(thread, f"{thread}-3", "pay"))
            await all_ended(six, 4)
            await last.send(approve(thread, first))
            await last.until_saw("TOOL_CALL_RESULT", within_s=1, content="paid 10 to ann")
            await all_ended(six, 5)
            await second.send(ask(thread, f"{thread}-4", "pick", tools=[pick]))
            await all_ended(six, 6)
            await last.send({**ask(thread, f"{thread}-5", tools=[pick]), "messages": [PICKED]})
            await all_ended(six, 7)

    assert len({tuple(client.cursors[1:]) for client in six}) == 1
    ends = [event for event in first.events if event["type"] in ("RUN_FINISHED", "RUN_ERROR")]
    kinds = [event["outcome"]["type"] for event in ends]
    assert kinds == ["success", "success", "cancelled", "interrupt", *["success"] * 3]
    assert problems_of(first.events) == []
    assert [m["content"] for m in stage.model.requests[-1].messages[-1:]] == ["the red one"]


PAY = Call("pay", {"to": "ann", "amount": 10}, "c_pay")
PICKED = {"id": "picked", "role": "tool", "toolCallId": "c_pick", "content": "the red one"}


async def all_ended(six: list[WireClient], runs: int, within_s: float = 10) -> None:
    """Return when every client has seen so many terminal events."""
    for client in six:
        await client.until_ended(runs, within_s)


def approve(thread: str, client: WireClient) -> dict[str, Any]:
    """Return the answer to the question that a client was told of last."""
    asked = client.events[-1]["outcome"]["interrupts"][0]["id"]
    answer = {"type": "answer", "threadId": thread, "interruptId": asked, "status": "resolved"}
    return {**answer, "payload": {"approved": True}}
