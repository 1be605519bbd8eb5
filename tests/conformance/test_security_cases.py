"""Who may not come in: pages of others, and people who know the id of somebody else's thread."""

from __future__ import annotations

import json
import re
from typing import Any
from uuid import uuid4

import httpx
import websockets
from backscroll.runs.worker import Worker
from backscroll.store.entry import NewEntry
from backscroll.store.keys import ThreadKey
from backscroll.web.app import routes
from conformance.stage import Stage
from scripted_provider import Reply
from served import served
from starlette.routing import Mount, Route
from wire_client import WireClient, ask
from working import agent_of

FOREIGN = ["http://evil.example", "null", "http://localhost:1", "https://chat.example"]
LISTED = "https://app.example"
SOCKETS = ["/agui", "/agui/waiting", "/agui?threadId=t&dialect=durable", "/console/ws"]
READING = {"GET", "HEAD", "OPTIONS"}


async def handshake(port: int, path: str, origin: str | None = None, host: str = "") -> int:
    """Return the HTTP status of a handshake; 101 when it was accepted."""
    url, headers = f"ws://{host or f'127.0.0.1:{port}'}{path}", {"Origin": origin} if origin else {}
    try:
        async with websockets.connect(url, host="127.0.0.1", port=port, additional_headers=headers):
            return 101
    except websockets.InvalidStatus as refused:
        return refused.response.status_code


async def test_foreign_pages_open_no_socket(stage: Stage) -> None:
    """security-03: 403 before acceptance for pages of others and rebound names; ours pass."""
    foreign, rebound, accepted = [], [], []
    with stage.serve(allowed_origins=json.dumps([LISTED])) as server:
        port, own = server.port, f"http://127.0.0.1:{server.port}"
        hosts = (f"evil.example:{port}", "evil.example", f"127.0.0.1.evil.example:{port}")
        for path in SOCKETS:
            foreign += [await handshake(port, path, origin) for origin in FOREIGN]
            rebound += [await handshake(port, path, host=host) for host in hosts]
            accepted += [await handshake(port, path, origin) for origin in (own, LISTED, None)]
            foreign.append(await handshake(stage.first.port, path, LISTED))

    assert set(foreign) == set(rebound) == {403}
    assert accepted == [101] * 3 * len(SOCKETS)


def changing() -> list[tuple[str, str]]:
    """Return method and path of every route that changes something."""
    found = set()
    for route in routes():
        prefix = route.path if isinstance(route, Mount) else ""
        for item in (route.routes if isinstance(route, Mount) else [route]) or ():
            if isinstance(item, Route):
                path = re.sub(r"\{[^}]+\}", "1", prefix + item.path)
                found |= {(method, path) for method in (item.methods or set()) - READING}
    return sorted(found)


async def test_foreign_pages_change_nothing(stage: Stage) -> None:
    """security-03: the same rule for every request that changes something; nothing is started."""
    own, answers = stage.first.url, {}
    body = ask(stage.thread, f"{stage.thread}-1", "hi")
    async with httpx.AsyncClient(base_url=own, trust_env=False, timeout=20) as http:
        for method, path in changing():
            for headers in [{"origin": origin} for origin in FOREIGN] + [{"host": "evil.example"}]:
                answer = await http.request(method, path, json=body, headers=headers)
                answers[method, path, *headers.values()] = answer
        unknown = await http.get(f"/console/api/threads/{stage.thread}")
        stage.model.add(Reply("Hello."))
        ours = await http.post("/agui", json=body, headers={"origin": own})

    assert len(answers) >= 80
    codes = {answer.json()["error"]["code"] for answer in answers.values()}
    assert {answer.status_code for answer in answers.values()} == {403}
    assert codes == {"bad_origin", "bad_host"} and unknown.status_code == 404
    assert "RUN_FINISHED" in ours.text


SECRET = "what only Ann may read"


async def write_as_ann(worker: Worker, thread: ThreadKey) -> None:
    """Write an entry into a thread that belongs to somebody else."""
    event = {"type": "TEXT_MESSAGE_CONTENT", "messageId": "m", "delta": SECRET, "timestamp": 1}
    entry = NewEntry("event", event["type"], json.dumps(event).encode(), "client", "r")
    await worker.log.append(thread, [entry], fence=0, meta={"owner": thread.owner})


async def everything_asked(server: Any, thread: str) -> list[Any]:
    """Return what a client is told that asks for a thread in every way there is."""
    told: list[Any] = []
    watch = f"?protocolVersion=1.0&threadId={thread}"
    for query in (watch, f"{watch}&dialect=durable", f"{watch}&offset=3.aaaa"):
        async with WireClient(server.ws_url, query) as client:
            await client.until_ended()
        told.append(client.frames)
    async with WireClient(server.ws_url, f"?runId={thread}-run&offset=-1") as client:
        await client.until_closed()
    told.append((client.code, client.reason, client.frames))
    async with WireClient(server.ws_url, "?dialect=durable&threadId=other") as client:
        for frame in ({"type": "abort", "runId": f"{thread}-run"}, question(thread)):
            await client.send(frame)
        await client.until(lambda: client.ended() == 1 and len(client.frames) == 4, "refusals")
    refusals = [frame for frame in client.frames if frame.get("type") == "refusal"]
    told.append(sorted(refusals, key=json.dumps))
    for method, path, body in (
        ("GET", f"/agui?runId={thread}-run", None),
        ("POST", "/agui/abort", {"threadId": thread}),
        ("POST", "/agui/abort", {"runId": f"{thread}-run"}),
        ("POST", "/agui/answer", question(thread)),
    ):
        answer = await server.http.request(method, path, json=body)
        told.append((answer.status_code, answer.json()))
    return told


def question(thread: str) -> dict[str, Any]:
    """Return an answer to a question that nobody may know of."""
    asked = {"type": "answer", "threadId": thread, "interruptId": "c1"}
    return {**asked, "status": "resolved", "payload": True}


async def test_a_thread_of_someone_else(valkey_url: str, prefix: str) -> None:
    """security-04: every way to ask for it is answered as for a thread that does not exist."""
    async with served(agent_of("Hello."), valkey_url, prefix) as server:
        await write_as_ann(server.worker, ThreadKey("ann", "of-ann"))
        hers = await everything_asked(server, "of-ann")
        nobodys = await everything_asked(server, "unknown")
        operators = await server.http.get("/console/api/threads/of-ann/export")

    assert leveled(hers, "of-ann") == leveled(nobodys, "unknown")
    assert SECRET not in json.dumps(hers) and SECRET not in operators.text


def leveled(told: Any, thread: str) -> str:
    """Return answers without what is different every time."""
    text = json.dumps(told).replace(thread, "T")
    return re.sub(r'"timestamp": \d+|req_\w+', "-", text)


async def test_a_watch_before_the_thread_exists(valkey_url: str, prefix: str) -> None:
    """security-04: who watches a name hears only of his own thread, whoever else takes it."""
    async with served(agent_of("Hello."), valkey_url, prefix) as server:
        async with WireClient(server.ws_url, "?threadId=both&protocolVersion=1.0") as watching:
            await watching.until_ended()
            await write_as_ann(server.worker, ThreadKey("ann", "both"))
            await server.run("both", f"r-{uuid4().hex}", "hi")
            await watching.until_ended(2)
        stored = await server.get("/console/api/threads/both/messages")

    assert SECRET not in json.dumps(watching.frames)
    assert watching.saw("TEXT_MESSAGE_CONTENT", delta="Hello.")
    assert [message["preview"] for message in stored["messages"]] == ["hi", "Hello."]
