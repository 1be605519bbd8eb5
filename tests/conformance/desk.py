"""Two server processes of an agent that asks, one Redis, one model: what pause cases play on."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
from agui_checker import assert_valid
from deadlines import scaled, wait_until
from processes import PROGRAMS, ServerProcess
from provider_script import Call, Reply
from scripted_provider import ScriptedProvider
from served import request, sse_events

YES = {"approved": True}
HTTP = httpx.Client(trust_env=False, timeout=scaled(20))
Events = list[dict[str, Any]]


@dataclass
class Desk:
    """The running parts; `threads` are names that no other test uses."""

    model: ScriptedProvider
    ledger: Path
    new: Callable[[], ServerProcess]
    workers: list[ServerProcess]
    threads: tuple[str, str]

    def done(self, thread: str = "") -> list[str]:
        """Return what tools really did, whichever worker ran them; of one thread, or everything."""
        lines = self.ledger.read_text().splitlines() if self.ledger.exists() else []
        return [line for line in lines if thread in line.split() or not thread]

    def lose(self, place: int = 0) -> ServerProcess:
        """Kill a worker without warning and return the one that is started in its place."""
        self.workers[place].kill()
        self.workers[place] = self.new()
        return self.workers[place]

    def ask(self, *replies: Reply, tools: Any = ()) -> Events:
        """Let a thread of its own be asked about by each worker to come, at the first worker."""
        for thread in self.threads:
            self.model.add(*(named(reply, thread) for reply in replies))
            found = run(self.workers[0], thread, "r1", "go", tools=list(tools))
        return found

    def elsewhere(self) -> Iterator[tuple[ServerProcess, str]]:
        """Lose the worker that asked; give the other one, then a new one, with a thread each."""
        self.workers[0].kill()
        yield self.workers[1], self.threads[0]
        self.workers[0] = self.new()
        yield self.workers[0], self.threads[1]

    def results(self, thread: str) -> list[str]:
        """Return the tool results that the last request to the model about a thread held."""
        asked = [r for r in self.model.requests if thread in json.dumps(r.messages)]
        return [m["content"] for m in asked[-1].messages if m["role"] == "tool"]


def running(url: str, folder: Path) -> Iterator[Desk]:
    """Run a desk; what it was in the middle of is gone when it is closed."""
    with ExitStack() as stack:
        model = stack.enter_context(ScriptedProvider())
        env = {
            "OPENAI_BASE_URL": model.base_url,
            "OPENAI_API_KEY": "none-needed",
            "PYTHONPATH": str(PROGRAMS),
            "BACKSCROLL_KEY_PREFIX": f"desk-{uuid4().hex[:8]}",
            "BACKSCROLL_LEASE_S": "2",
            "LEDGER": str(folder / "ledger"),
        }

        def new() -> ServerProcess:
            worker = ServerProcess("asking_agent", redis_url=url, env=env)
            stack.callback(worker.stop)
            return worker.start()

        yield Desk(model, folder / "ledger", new, [new(), new()], ("", ""))


def named(reply: Reply, thread: str) -> Reply:
    """Return a reply whose calls of pay and mail are about a thread."""
    calls = (
        Call(c.name, {**c.args, "to": thread}, c.id) if c.name in ("pay", "mail") else c
        for c in reply.calls
    )
    return replace(reply, calls=tuple(calls))


def send(worker: ServerProcess, thread: str, run_id: str, *messages: Any, **more: Any) -> Any:
    """Post a request and return the answer; the run id is one of the thread's own."""
    body = request(thread, f"{run_id}-{thread}", *messages, **more)
    return HTTP.post(f"{worker.url}/agui", json=body)


def run(worker: ServerProcess, thread: str, run_id: str, *messages: Any, **more: Any) -> Events:
    """Carry out a request and return its events."""
    answer = send(worker, thread, run_id, *messages, **more)
    assert answer.status_code == 200, answer.text
    return sse_events(answer.text)


def refused(worker: ServerProcess, thread: str, *messages: Any, **more: Any) -> dict[str, Any]:
    """Return the error with which a request is refused."""
    run_id = f"refused-{uuid4().hex[:8]}"
    error: dict[str, Any] = send(worker, thread, run_id, *messages, **more).json()["error"]
    return error


def answer(worker: ServerProcess, thread: str, name: str, payload: Any, **more: Any) -> Any:
    """Decide one question by POST, None refuses; return the answer."""
    status = "cancelled" if payload is None else "resolved"
    body = {"threadId": thread, "interruptId": name, "status": status, "payload": payload, **more}
    url = f"{worker.url}/agui/answer"
    return HTTP.post(url, json=body).json()


def get(worker: ServerProcess, path: str) -> Any:
    """Return an answer of the operator API."""
    answer = HTTP.get(f"{worker.url}/console/api{path}")
    assert answer.status_code == 200, answer.text
    return answer.json()


def ended(worker: ServerProcess, thread: str, run_id: str) -> str:
    """Wait for the end of a run and return how it ended."""

    def status() -> str:
        runs = get(worker, f"/threads/{thread}/runs")["runs"]
        return next((r["status"] for r in runs if r["run"] == run_id), "running")

    wait_until(lambda: status() != "running", 15, f"{run_id} has ended")
    return status()


def opened(found: Events) -> Events:
    """Return the questions with which a run or a join ended."""
    questions: Events = (found[-1].get("outcome") or {}).get("interrupts", [])
    return questions


def joined(worker: ServerProcess, thread: str) -> Events:
    """Return what a client is sent that opens the thread."""
    url = f"{worker.url}/agui?threadId={thread}&protocolVersion=1.0"
    found: Events = []
    with HTTP.stream("GET", url) as told:
        for line in told.iter_lines():
            found += sse_events(line)
            if found and found[-1]["type"] == "RUN_FINISHED":
                break
    return found


def assert_sound(worker: ServerProcess, thread: str) -> None:
    """The thread's events are valid, nothing dangles, and it can be used for another turn."""
    url = f"{worker.url}/console/api/threads/{thread}/export?format=events"
    lines = HTTP.get(url).text.splitlines()
    assert_valid([json.loads(line) for line in lines])
