"""The history in Redis as clients meet it: order, names, lifetime, what appending leaves alone."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import pytest
from backscroll.agent.agent import Agent
from backscroll.agui.options import AgentRules
from backscroll.compaction.extractive import ExtractiveSummariser
from backscroll.compaction.filter import Compaction
from backscroll.compaction.summariser import SummaryDraft, SummaryPart
from backscroll.kernel.message import user
from backscroll.runs.worker import WorkerOptions, open_worker
from backscroll.store.chat_memory import RedisChatMemory
from backscroll.store.connection import RedisClients
from backscroll.store.keys import Keys
from backscroll.store.thread_log import ThreadLog
from backscroll.store.threads import ThreadStore
from played_model import StreamingModel
from served import Served, request, served
from windowed_model import Windowed
from working import key, run, working

NAMES = ["a", "a:b", "a*", "a[1]", "会话 1", "x" * 200, "../a"]


class Counted(ExtractiveSummariser):
    """Counts how often it is asked."""

    asked = 0

    async def summarise(self, part: SummaryPart) -> SummaryDraft:
        """Count, then summarise."""
        self.asked += 1
        return await super().summarise(part)


async def age(clients: RedisClients, prefix: str, left_ms: int) -> int:
    """Let time pass until only this much is left; returns how many keys of the thread live."""
    names = [name async for name in clients.read.scan_iter(match=f"{prefix}:{{t}}*")]
    for name in names:
        assert 0 < await clients.read.pttl(name) <= 10_000
        await clients.write.pexpire(name, left_ms)
    return len(names)


async def test_an_expired_thread_is_an_empty_one(
    valkey_url: str, prefix: str, clients: RedisClients
) -> None:
    """memory-01: writes slide the end, then no key is left, and the thread opens without error."""
    agent = Agent(name="a", model=StreamingModel([f"answer {n}" for n in range(4)]))
    options = WorkerOptions(valkey_url, prefix, thread_ttl_s=10)
    async with open_worker(agent, AgentRules("a"), options) as worker:
        for n in range(1, 4):
            await run(worker, "t", f"r{n}", *(f"q{k}" for k in range(1, n + 1)))
            assert await clients.read.pttl(worker.keys.messages(key())) > 4_000
            await age(clients, prefix, 4_000)
        assert len((await worker.history.read(key())).live) == 6
        await age(clients, prefix, 0)
        assert await age(clients, prefix, 0) == 0
        assert (await worker.history.read(key())).live == []
        assert await ThreadStore(worker.log).heads() == []
        anew = await run(worker, "t", "r9", "hello again")

    assert anew[-1]["type"] == "RUN_FINISHED"


async def test_order_is_that_of_appending(
    clients: RedisClients, prefix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """memory-02: whatever the clocks of workers say; numbers only rise."""
    now = [1_700_000_000.0]
    monkeypatch.setattr("time.time", lambda: now[0])
    logs = [ThreadLog(clients, Keys(prefix), f"w{n}") for n in range(2)]
    ones, others = (RedisChatMemory(log) for log in logs)
    said = [user(f"m{n}", f"u{n}") for n in range(240)]
    for start, size in [*((n, 1) for n in range(100)), *((n, 20) for n in range(100, 200, 20))]:
        await ones.add("t", said[start : start + size])
    now[0] -= 3600
    await ones.add("t", said[200:220])
    for n in range(220, 240):
        now[0] += 5 if n % 2 else -5
        await (ones, others)[n % 2].add("t", [said[n]])

    assert await others.get("t") == await ones.get("t") == said
    entries = await logs[0].read(key(), 0, 1000)
    assert [entry.seq for entry in entries] == list(range(1, 241))
    assert [entry.time for entry in entries] == sorted(entry.time for entry in entries)


async def shown(server: Served, name: str) -> list[str]:
    """Return the texts that an operator sees of a thread."""
    path = f"/console/api/threads/{quote(key(name).key, safe='')}/messages?fields=full"
    return [found["message"]["content"] for found in (await server.get(path))["messages"]]


async def test_threads_of_any_name_stay_apart(valkey_url: str, prefix: str) -> None:
    """memory-03: each has its own message; clearing and deleting one leaves the others."""
    agent = Agent(name="a", model=StreamingModel(["fine"] * len(NAMES)))
    async with served(agent, valkey_url, prefix) as server:
        for n, name in enumerate(NAMES):
            assert (await server.run(name, f"r{n}", f"I am {name}"))[-1]["type"] == "RUN_FINISHED"
        refused = await server.http.post("/agui", json=request("a\nb", "r", "I am a\nb"))
        memory = RedisChatMemory(server.worker.log)
        await memory.clear("a")
        held = {name: [m.text for m in await memory.get(name)] for name in NAMES}
        still_active = await server.worker.threads.delete(key("a"))
        seen = {name: await shown(server, name) for name in NAMES[1:]}
        listed = (await server.get("/console/api/threads"))["threads"]

    assert held == {name: [f"I am {name}", "fine"] if name != "a" else [] for name in NAMES}
    assert still_active is None and refused.status_code == 422
    assert "threadId has control characters" in refused.text
    assert seen == {name: [f"I am {name}", "fine"] for name in NAMES[1:]}
    assert sorted(thread["thread_id"] for thread in listed) == sorted(NAMES[1:])


@pytest.mark.timeout(120)
async def test_appending_leaves_summary_and_lifetime(
    valkey_url: str, prefix: str, clients: RedisClients
) -> None:
    """memory-04: record, failures, pins and lifetime are as before; the summary is used on."""
    counted = Counted()
    script: list[Any] = [f"{n}: " + "Many words and no surprise. " * 150 for n in range(30)]
    agent = Agent(name="a", model=Windowed(script), compaction=Compaction(counted))
    options = WorkerOptions(valkey_url, prefix, thread_ttl_s=3600)
    async with (
        open_worker(agent, AgentRules("a"), options) as worker,
        working(agent, valkey_url, prefix) as second,
    ):
        turn = 0
        while counted.asked == 0:
            turn += 1
            await run(worker, "t", f"r{turn}", *(f"q{k}" for k in range(1, turn + 1)))
        entry = await worker.compaction.get("t")
        await worker.compaction.put("t", entry.replace(failures=1, opened_ms=5))
        await worker.operator.choices(key()).pin("t", "u1")
        before = await clients.read.hgetall(worker.keys.compaction(key()))
        for appending in (worker, second):
            await RedisChatMemory(appending.log).add("t", [user("by the way")])
        after = await clients.read.hgetall(worker.keys.compaction(key()))
        ttl = await clients.read.pttl(worker.keys.compaction(key()))
        asked = counted.asked
        await run(second, "t", "next", {"id": "n", "role": "user", "content": "go on"})
        sent = agent.client.model.requests[-1]  # type: ignore[union-attr]

    assert entry.cache is not None and after == before and b"pin:u1" in after
    assert 3_500_000 < ttl <= 3_600_000
    assert counted.asked == asked == 1
    assert sent.messages[0].text.startswith("<earlier-conversation>")
