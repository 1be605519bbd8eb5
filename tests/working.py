"""A worker without a web server, for tests of the room runs: requests in, entries out."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from backscroll.agent.agent import Agent
from backscroll.agui.input import RunInput, read_input
from backscroll.agui.options import AgentRules
from backscroll.agui.refusal import RequestRefused
from backscroll.kernel.filter import Filter
from backscroll.kernel.model import Text
from backscroll.runs.registry import RunRules
from backscroll.runs.worker import Worker, WorkerOptions, open_worker
from backscroll.store.entry import Entry
from backscroll.store.keys import LOCAL_OWNER, ThreadKey
from deadlines import scaled
from played_model import Streamed, StreamingModel
from served import request

TERMINAL = ("RUN_FINISHED", "RUN_ERROR")


class Deaf(Filter):
    """A chat filter that waits for ever and heeds no token."""

    name = "deaf"

    def __init__(self) -> None:
        self.waits = asyncio.Event()

    async def chat(self, request: Any, chain: Any) -> Any:
        """Wait for what never comes."""
        self.waits.set()
        await asyncio.Event().wait()


def agent_of(*script: Any, **fields: Any) -> Agent:
    """Return an agent whose model streams the script."""
    return Agent(**{"name": "a", "model": StreamingModel(script), **fields})


def held(*texts: str) -> Streamed:
    """Return a reply that says something and then waits for ever."""
    return Streamed([*map(Text, texts or ("half",)), asyncio.Event()])


def key(thread: str = "t") -> ThreadKey:
    """Return the key of one of the local owner's threads."""
    return ThreadKey(LOCAL_OWNER, thread)


def asked(thread: str, run: str, *texts: Any, **members: Any) -> RunInput:
    """Return a request with user messages u1, u2, …, as it is after its checks."""
    return read_input(request(thread, run, *texts, **members))


@asynccontextmanager
async def working(
    agent: Agent,
    redis_url: str,
    prefix: str,
    *,
    rules: RunRules | None = None,
    agent_rules: AgentRules | None = None,
) -> AsyncIterator[Worker]:
    """Run a worker for as long as the block lasts."""
    options = WorkerOptions(redis_url, prefix, rules or RunRules())
    async with open_worker(agent, agent_rules or AgentRules(name=agent.name), options) as worker:
        yield worker


async def run(worker: Worker, thread: str, run_id: str, *texts: Any, **members: Any) -> list[Any]:
    """Carry out one request and return the events of its run."""
    await worker.registry.submit(LOCAL_OWNER, asked(thread, run_id, *texts, **members))
    await until_ended(worker, run_id, thread)
    return await events(worker, thread, run_id)


async def begun(worker: Worker, run_id: str = "r1", *texts: Any, thread: str = "t") -> None:
    """Start a run and return once it has said something."""
    await worker.registry.submit(LOCAL_OWNER, asked(thread, run_id, *(texts or ("hi",))))
    await until_entry(worker, run_id, "TEXT_MESSAGE_CONTENT", thread=thread)


async def refused(worker: Worker, request: RunInput) -> RequestRefused:
    """Return why a request is refused."""
    with pytest.raises(RequestRefused) as error:
        await worker.registry.submit(LOCAL_OWNER, request)
    return error.value


async def until_ended(worker: Worker, run_id: str, thread: str = "t") -> Entry:
    """Return the terminal event of a run as soon as it is in the log."""
    return await until_entry(worker, run_id, *TERMINAL, thread=thread)


async def until_entry(worker: Worker, run_id: str, *types: str, thread: str = "t") -> Entry:
    """Return the first entry of one of these types of a run as soon as it is in the log."""
    cursor = 0
    async with asyncio.timeout(scaled(15)), worker.hub.watch(key(thread)) as feed:
        while True:
            for held in await feed.after(cursor):
                cursor = held.seq
                if held.entry.run == run_id and held.entry.type in types:
                    return held.entry


async def entries(worker: Worker, thread: str = "t") -> list[Entry]:
    """Return all entries of a thread."""
    return await worker.log.read(key(thread), 0, 10_000)


async def events(worker: Worker, thread: str = "t", run_id: str | None = None) -> list[Any]:
    """Return what clients see of a thread, or of one run of it, as JSON values."""
    return [
        json.loads(entry.body)
        for entry in await entries(worker, thread)
        if entry.kind == "event" and run_id in (None, entry.run)
    ]


async def bodies(worker: Worker, kind: str, thread: str = "t") -> list[Any]:
    """Return the bodies of all entries of a kind."""
    return [json.loads(e.body) for e in await entries(worker, thread) if e.kind == kind]
