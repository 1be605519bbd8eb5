"""Several real processes on one compaction store, and a store that is gone."""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
from collections.abc import Sequence
from typing import Any

import pytest
from backscroll.agent.agent import Agent
from backscroll.compaction.extractive import ExtractiveSummariser
from backscroll.compaction.filter import Compaction
from backscroll.store.chat_memory import RedisChatMemory
from backscroll.store.compaction_store import RedisCompactionStore
from backscroll.store.connection import RedisClients, connect
from backscroll.store.embedded import EmbeddedValkey
from backscroll.store.keys import Keys
from backscroll.store.thread_log import ThreadLog
from compaction.edge import NOTES
from compaction.planning import talk
from deadlines import scaled
from processes import PROGRAMS
from scripted_provider import Reply, ScriptedProvider
from windowed_model import Windowed
from working import bodies, events, run, working

LONG = talk(46, 60)
FILTERS, WITH_AHEAD = ("filter",) * 4, ("filter", "ahead", "filter", "filter")


class One:
    """A process that makes one call."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    @classmethod
    async def start(cls, *arguments: str) -> One:
        """Return a process that is ready."""
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, str(PROGRAMS / "one_call.py"), *arguments),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
        )
        one = cls(process)
        assert await one.line() == "ready"
        return one

    async def line(self) -> str:
        """Return its next line."""
        assert self._process.stdout is not None
        async with asyncio.timeout(scaled(30)):
            return (await self._process.stdout.readline()).decode().strip()

    def go(self) -> None:
        """Let it begin."""
        assert self._process.stdin is not None
        self._process.stdin.write(b"go\n")

    async def told(self) -> dict[str, Any]:
        """Return what came of it."""
        found: dict[str, Any] = json.loads(await self.line())
        assert await self._process.wait() == 0
        return found


async def at_once(
    url: str, prefix: str, provider: ScriptedProvider, roles: Sequence[str], name: str
) -> list[dict[str, Any]]:
    """Run processes that begin together; the summariser answers once all have begun."""
    places = enumerate(roles)
    ones = await asyncio.gather(
        *(One.start(url, prefix, provider.base_url, role, f"{name}{n}") for n, role in places)
    )
    for one in ones:
        one.go()
    assert [await one.line() for one in ones] == ["begins"] * len(ones)
    await provider.await_held(within_s=scaled(20))
    provider.release("hold")
    return [await one.told() for one in ones]


async def test_four_processes_make_one_summary(
    valkey_url: str, prefix: str, clients: RedisClients, provider: ScriptedProvider
) -> None:
    """concurrency-05, STO3: one summariser call for the range, all use it, no append is lost."""
    memory = RedisChatMemory(ThreadLog(clients, Keys(prefix), "w"))
    await memory.add("t", LONG)
    provider.add(Reply(text=NOTES, hold_after=0))
    found = await at_once(valkey_url, prefix, provider, WITH_AHEAD, "p")
    views = [told["sent"] for told in found if "sent" in told]
    entry = await RedisCompactionStore(clients, Keys(prefix)).get("t")

    assert len(provider.requests) == 1
    assert all(view == views[0] for view in views) and "keep going" in views[0][0]
    kept = [cache for cache in (entry.cache, *entry.ring) if cache is not None]
    assert [cache.summary.count("keep going") for cache in kept] == [1] and entry.failures == 0
    texts = [message.text for message in await memory.get("t")]
    late = sorted(f"{when} p{n}" for n in range(4) for when in ("after", "before"))
    assert texts[: len(LONG)] == [m.text for m in LONG] and sorted(texts[len(LONG) :]) == late


async def test_a_summary_of_an_edited_history_is_used_by_nobody(
    valkey_url: str, prefix: str, clients: RedisClients, provider: ScriptedProvider
) -> None:
    """STO6: another range, another single call; the old text is in no view."""
    memory = RedisChatMemory(ThreadLog(clients, Keys(prefix), "w"))
    await memory.add("t", LONG)
    provider.add(Reply(text=NOTES, hold_after=0))
    await at_once(valkey_url, prefix, provider, ("filter", "filter"), "p")
    await memory.supersede("t", 2)
    await memory.add("t", [m.replace(id=f"n-{m.id}") for m in talk(45, 60, start=500)])
    other = NOTES.replace("keep going", "begin anew")
    provider.add(Reply(text=other, hold_after=0))
    found = await at_once(valkey_url, prefix, provider, FILTERS, "q")

    assert len(provider.requests) == 2
    for told in found:
        assert "begin anew" in told["sent"][0]
        assert not any("keep going" in text for text in told["sent"])


@pytest.mark.timeout(120)
async def test_a_turn_goes_on_without_its_store(valkey_url: str, prefix: str) -> None:
    """STO8: the store's own server is stopped; the turns end well, and a note says so once each."""
    with tempfile.TemporaryDirectory(prefix="valkey-") as folder:
        server = EmbeddedValkey(folder)
        clients = connect(server.start())
        store = RedisCompactionStore(clients, Keys(prefix))
        script = [f"{n}: " + "Many words and no surprise. " * 150 for n in range(30)]
        agent = Agent(
            name="a",
            model=Windowed(script),
            compaction=Compaction(ExtractiveSummariser(), store=store),
        )
        async with working(agent, valkey_url, prefix) as worker:
            for turn in range(1, 11):
                if turn == 8:
                    assert (await store.get("t")).cache is not None
                    server.stop()
                await run(worker, "t", f"r{turn}", *(f"q{n}" for n in range(1, turn + 1)))
            ends = [e["type"] for e in await events(worker) if e["type"].startswith("RUN_")]
            notes = [n for n in await bodies(worker, "note") if "store" in json.dumps(n)]
            calls = [c for c in await bodies(worker, "call") if "view" in c]
        await clients.close()

    assert ends == ["RUN_STARTED", "RUN_FINISHED"] * 10
    assert len(notes) == 3
    # What the process remembers of the cache is used on.
    assert any(span.get("what") == "summary" for span in calls[-1]["view"])
