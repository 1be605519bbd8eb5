"""A worker served in the test's own process and loop, on a real Redis and a real socket."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx
import websockets
from backscroll.agent.agent import Agent
from backscroll.agui.options import AgentRules
from backscroll.runs.registry import RunRules
from backscroll.runs.worker import Worker, WorkerOptions, open_worker
from backscroll.web.app import build_app
from backscroll.web.origins import OriginRules
from backscroll.web.services import WebLimits
from backscroll.web.serving import ServingOptions, listen, make_server
from deadlines import scaled, wait_until


@dataclass
class Served:
    """A worker that answers on `url`."""

    worker: Worker
    port: int
    http: httpx.AsyncClient
    stopping: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def ws_url(self) -> str:
        """Where its sockets are."""
        return f"ws://127.0.0.1:{self.port}"

    async def get(self, path: str) -> Any:
        """Return the JSON answer of the operator API."""
        answer = await self.http.get(path)
        assert answer.status_code == 200, (path, answer.status_code, answer.text)
        return answer.json()

    async def run(self, thread: str, run: str, *texts: str, **members: Any) -> list[dict[str, Any]]:
        """Post a request with user messages and return the events of its run."""
        answer = await self.http.post("/agui", json=request(thread, run, *texts, **members))
        assert answer.status_code == 200, answer.text
        return sse_events(answer.text)

    def socket(self, path: str = "/agui", **options: Any) -> Any:
        """Open a socket; use it as an async context manager."""
        return websockets.connect(f"{self.ws_url}{path}", **options)


def request(thread: str, run: str, *texts: str, **members: Any) -> dict[str, Any]:
    """Return a RunAgentInput; user messages get the ids u1, u2, … unless given as dicts."""
    messages = [
        text if isinstance(text, dict) else {"id": f"u{n}", "role": "user", "content": text}
        for n, text in enumerate(texts, 1)
    ]
    return {
        "threadId": thread,
        "runId": run,
        "messages": messages,
        "tools": [],
        "context": [],
        "state": {},
        "forwardedProps": {},
        "protocolVersion": "1.0",
        **members,
    }


def sse_events(text: str) -> list[dict[str, Any]]:
    """Return the events of a stream of server-sent events."""
    lines = (line for line in text.split("\n") if line.startswith("data: "))
    return [json.loads(line.removeprefix("data: ")) for line in lines]


async def read_run(socket: Any) -> list[dict[str, Any]]:
    """Read bare frames until a terminal event, and return all of them."""
    events: list[dict[str, Any]] = []
    async with asyncio.timeout(scaled(10)):
        while not events or events[-1]["type"] not in ("RUN_FINISHED", "RUN_ERROR"):
            events.append(json.loads(await socket.recv()))
    return events


async def until(condition: Callable[[], bool], what: str, within_s: float = 5) -> None:
    """Wait for a condition without holding up the loop."""
    await asyncio.to_thread(wait_until, condition, within_s, what)


@asynccontextmanager
async def served(
    agent: Agent,
    redis_url: str,
    prefix: str,
    *,
    limits: WebLimits | None = None,
    rules: RunRules | None = None,
    agent_rules: AgentRules | None = None,
    origins: OriginRules | None = None,
) -> AsyncIterator[Served]:
    """Serve an agent for as long as the block lasts."""
    limits = limits or WebLimits(keepalive_s=5, send_timeout_s=5)
    options = WorkerOptions(redis_url, prefix, rules or RunRules())
    opened: asyncio.Future[Worker] = asyncio.get_running_loop().create_future()
    app = build_app(
        lambda: open_worker(agent, agent_rules or AgentRules(name=agent.name), options),
        limits,
        origins or OriginRules(),
        opened.set_result,
    )

    async def drain() -> None:
        await (await opened).registry.drain(1)

    serving = ServingOptions(limits.input.input_bytes, limits.keepalive_s, False, "warning")
    server = make_server(app, serving, drain)
    listener = listen("127.0.0.1", 0)
    port = listener.getsockname()[1]
    task = asyncio.ensure_future(server.serve(sockets=[listener]))
    try:
        async with asyncio.timeout(scaled(10)):
            worker = await opened
        await until(lambda: worker.hub.subscribed, "the hub is subscribed")
        url = f"http://127.0.0.1:{port}"
        async with httpx.AsyncClient(base_url=url, timeout=scaled(10), trust_env=False) as http:
            yield Served(worker, port, http)
    finally:
        server.should_exit = True
        await asyncio.wait([task], timeout=scaled(15))
        listener.close()
