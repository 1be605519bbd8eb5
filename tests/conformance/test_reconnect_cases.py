"""Clients that come late, come back or come too late: each ends with what everyone holds."""

from __future__ import annotations

import asyncio
import json
import random
from typing import Any

import httpx
import pytest
from agui_checker import problems_of
from agui_client import Client
from backscroll.store.connection import RedisClients
from backscroll.store.keys import Keys, ThreadKey
from conformance.stage import Stage
from scripted_provider import Call, Hold, Reply
from wire_client import Frame, WireClient, ask

TRIES, AT_ONCE = 200, 10
OFF = {"content": "goes on."}


def results(client: Client) -> list[tuple[str, str]]:
    """Return call and content of every tool message."""
    tools = (message for message in client.messages if message["role"] == "tool")
    return [(message["toolCallId"], message["content"]) for message in tools]


@pytest.mark.parametrize("is_first_slow", [False, True], ids=["first", "second"])
async def test_one_result_per_call(stage: Stage, is_first_slow: bool) -> None:
    """protocol-08: who joins between two results of a batch, and at the end, has each once."""
    door = stage.folder / "door"
    calls = [Call("get_order", {"id": 7}, "c1"), Call("wait_for", {"path": str(door)}, "c2")]
    early, late = "c1", "c2"
    stage.model.add(Reply(calls=tuple(calls[::-1] if is_first_slow else calls)), Reply("Done."))
    watch = f"?threadId={stage.thread}&protocolVersion=1.0"

    async with WireClient(stage.first.ws_url) as asking:
        await asking.send(ask(stage.thread, f"{stage.thread}-1", "go"))
        await asking.until_saw("TOOL_CALL_RESULT", toolCallId=early)
        async with WireClient(stage.second.ws_url, watch) as joined:
            await joined.until_saw("STEP_STARTED")
            held = Client().apply(*joined.events)
            door.touch()
            await asking.until_ended()
            await joined.until_ended()
        async with WireClient(stage.first.ws_url, watch) as last:
            await last.until_ended()

    assert [call for call, _ in results(held)] == [early]
    for client in (asking, joined):
        both = Client().apply(*client.events, *last.events)
        assert sorted(call for call, _ in results(both)) == [early, late]
        assert Client().apply(*client.events).shown() == Client().apply(*last.events).shown()
    assert problems_of(joined.events) == []
    await answers_again(stage)


async def test_one_result_per_call_over_sse(stage: Stage) -> None:
    """protocol-08: the same for a reader of server-sent events that joins between the results."""
    door = stage.folder / "door"
    calls = (Call("get_order", {"id": 7}, "c1"), Call("wait_for", {"path": str(door)}, "c2"))
    stage.model.add(Reply(calls=calls), Reply("Done."))
    run = f"{stage.thread}-1"
    async with WireClient(stage.first.ws_url) as asking:
        await asking.send(ask(stage.thread, run, "go"))
        await asking.until_saw("TOOL_CALL_RESULT", toolCallId="c1")
        async with httpx.AsyncClient(trust_env=False, timeout=20) as http:
            url = f"{stage.second.url}/agui?runId={run}&protocolVersion=1.0"
            async with http.stream("GET", url) as answer:
                lines = answer.aiter_lines()
                events = await sse_until(lines, "STEP_STARTED")
                door.touch()
                events += await sse_until(lines, "RUN_FINISHED")
        await asking.until_ended()

    assert sorted(call for call, _ in results(Client().apply(*events))) == ["c1", "c2"]
    assert Client().apply(*events).shown() == Client().apply(*asking.events).shown()


async def sse_until(lines: Any, kind: str) -> list[Frame]:
    """Read events up to the first of a type."""
    events: list[Frame] = []
    async for line in lines:
        if line.startswith("data: "):
            events.append(json.loads(line.removeprefix("data: ")))
            if events[-1]["type"] == kind:
                break
    return events


async def answers_again(stage: Stage) -> None:
    """Take one more ordinary turn on the thread."""
    stage.model.add(Reply("Again."))
    async with WireClient(stage.second.ws_url) as client:
        await client.send(ask(stage.thread, f"{stage.thread}-again", "and now?"))
        await client.until_saw("TEXT_MESSAGE_CONTENT", delta="Again.")
        await client.until_ended()
    assert client.types()[-1] == "RUN_FINISHED"


async def forget_deltas(redis: RedisClients, thread: ThreadKey, keys: Keys, floor: int) -> None:
    """Remove the deltas up to a number, as a log may that keeps only the newest ones."""
    log = keys.log(thread)
    for seq, fields in await redis.read.xrange(log, "-", f"{floor}-0"):
        if b"_CONTENT" in b"".join(fields.values()):
            await redis.write.xdel(log, seq)
    await redis.write.hset(keys.meta(thread), "floor", floor)


@pytest.mark.parametrize("transport", ["durable", "sse"])
async def test_a_cursor_below_what_is_kept(
    stage: Stage, clients: RedisClients, transport: str
) -> None:
    """reconnect-01: the gap is said, then a snapshot, state and the position, then live events."""
    thread, keys = ThreadKey("local", stage.thread), Keys(stage.prefix)
    words = " ".join(f"word-{n}" for n in range(300))
    stage.model.add(Reply("One."), Reply(words), Reply(chunks=({"content": "It "}, Hold(), OFF)))
    async with WireClient(stage.first.ws_url) as starting:
        await starting.send(ask(stage.thread, f"{stage.thread}-1", "go"))
        await starting.until_ended()
    await clients.write.set(keys.state(thread), b'{"todos":["a"]}')
    watch = f"?dialect=durable&protocolVersion=1.0&threadId={stage.thread}"
    async with WireClient(stage.first.ws_url, watch) as always:
        await always.until_ended()
        seen = always.cursors[-1]
        await always.send(ask(stage.thread, f"{stage.thread}-2", "count"))
        await always.until_ended(2)
        await forget_deltas(clients, thread, keys, int(always.cursors[-1].split(".")[0]) - 3)
        await always.send(ask(stage.thread, f"{stage.thread}-3", "go on"))
        await stage.model.await_held()
        come_back = back_over_sse if transport == "sse" else back_over_a_socket
        first, events = await come_back(stage, watch, seen)
        await always.until_ended(3)

    head = always.cursors.index(first["head"])
    assert (first["type"], first.get("from", seen)) == ("resync", seen) and head > 300 // 16
    kinds = [event["type"] for event in events]
    assert kinds[:3] == ["RUN_STARTED", "MESSAGES_SNAPSHOT", "STATE_SNAPSHOT"]
    ours, theirs = Client().apply(*events), Client().apply(*always.events)
    assert ours.shown() == theirs.shown() and ours.state == theirs.state == {"todos": ["a"]}
    assert [message["content"] for message in ours.messages][3::2] == [words, "It goes on."]
    await answers_again(stage)


async def back_over_a_socket(stage: Stage, watch: str, seen: str) -> tuple[Frame, list[Frame]]:
    """Watch again by cursor; return the first frame, and the events until the run has ended."""
    async with WireClient(stage.second.ws_url, f"{watch}&offset={seen}") as back:
        await back.until_saw("TEXT_MESSAGE_CONTENT")
        stage.model.release()
        await back.until_ended()
        assert back.frames[0].get("reason") == "trimmed"
    return back.frames[0], back.events


async def back_over_sse(stage: Stage, watch: str, seen: str) -> tuple[Frame, list[Frame]]:
    """The same over SSE, whose notice is a comment."""
    url, headers = f"{stage.second.url}/agui{watch}", {"last-event-id": seen}
    async with httpx.AsyncClient(trust_env=False, timeout=20) as http:
        async with http.stream("GET", url, headers=headers) as answer:
            lines = answer.aiter_lines()
            word, head = (await anext(lines)).removeprefix(": ").split(" head=")
            events = await sse_until(lines, "TEXT_MESSAGE_CONTENT")
            stage.model.release()
            events += await sse_until(lines, "RUN_FINISHED")
    return {"type": word, "head": head}, events


@pytest.mark.timeout(120)
async def test_a_run_that_ends_while_a_client_catches_up(stage: Stage) -> None:
    """reconnect-02: two hundred times the rest comes once, in order, with the terminal event."""
    rng = random.Random(2)
    turn = asyncio.Semaphore(AT_ONCE)

    async def one(number: int) -> None:
        async with turn:
            await resumes_at_the_end(stage, f"{stage.thread}-{number}", rng)

    for n in range(TRIES):
        chunks = ({"content": "a"}, {"content": "b"}, Hold(f"h{n}"), {"content": "c"})
        stage.model.when(f"try {n}.", Reply(chunks=chunks))
    async with asyncio.TaskGroup() as group:
        for n in range(TRIES):
            group.create_task(one(n))


async def resumes_at_the_end(stage: Stage, thread: str, rng: random.Random) -> None:
    """Resume a run on the other worker at any event while it ends."""
    number = thread.rsplit("-", 1)[1]
    query = f"?dialect=durable&protocolVersion=1.0&runId={thread}"
    async with WireClient(stage.first.ws_url, query) as asking:
        await asking.send(ask(thread, thread, f"try {number}."))
        await asking.until_saw("TEXT_MESSAGE_CONTENT")
        await stage.model.await_held(f"h{number}")
        seen = rng.choice(asking.cursors)
        # The run ends at a moment that the resuming client does not choose.
        loop = asyncio.get_running_loop()
        loop.call_later(rng.uniform(0, 0.02), stage.model.release, f"h{number}")
        async with WireClient(stage.second.ws_url, f"{query}&offset={seen}") as back:
            await back.until_ended(within_s=2)
        await asking.until_ended()

    whole = asking.cursors
    assert back.cursors == whole[whole.index(seen) + 1 :]
    assert back.ended() == 1 and back.types()[-1] == "RUN_FINISHED"
