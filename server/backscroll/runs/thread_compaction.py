"""The compaction of a thread outside of its runs: on the thread's stores, noted in its log."""

from __future__ import annotations

import json
from typing import Any

from backscroll.agent.agent import Agent
from backscroll.compaction.decision import CompactionFinished
from backscroll.compaction.filter import Compaction
from backscroll.kernel.canon import canonical_json
from backscroll.kernel.request import ChatRequest
from backscroll.runs.answering import read_record
from backscroll.runs.notes import operator_entry
from backscroll.runs.recorder import decision_line, summaries_with, with_positions
from backscroll.store.chat_memory import RedisChatMemory
from backscroll.store.compaction_choices import RedisCompactionChoices
from backscroll.store.compaction_store import RedisCompactionStore, RedisModelFacts
from backscroll.store.history_reader import HistoryReader
from backscroll.store.keys import ThreadKey
from backscroll.store.pauses import ThreadPauses
from backscroll.store.thread_log import ThreadLog
from backscroll.store.threads import ThreadStore


class ThreadCompaction:
    """What one agent's compaction does to any thread while no run does it."""

    def __init__(self, agent: Agent, log: ThreadLog) -> None:
        self.agent, self._log = agent, log
        self._threads = ThreadStore(log)
        self._reader = HistoryReader(log.clients, log.keys)
        self._pauses = ThreadPauses(log)

    def choices(self, thread: ThreadKey) -> RedisCompactionChoices:
        """Return pins and settings of the thread's owner."""
        return RedisCompactionChoices(self._log.clients, self._log.keys, thread.owner)

    def bound(self, thread: ThreadKey) -> Compaction | None:
        """Return the agent's compaction on the thread's stores, if it has one."""
        if self.agent.compaction is None:
            return None
        clients, keys = self._log.clients, self._log.keys
        choices = self.choices(thread)
        bound = self.agent.compaction.bind(
            RedisCompactionStore(clients, keys, thread.owner),
            RedisModelFacts(clients, keys),
            choices,
            choices,
        )
        return bound.over(RedisChatMemory(self._log, thread.owner))

    async def request(self, thread: ThreadKey) -> ChatRequest:
        """Return the request that the thread's next call would make."""
        memory = RedisChatMemory(self._log, thread.owner)
        return await self.agent.replace(memory=memory).next_request(thread.thread_id)

    async def pending(self, thread: ThreadKey) -> frozenset[str]:
        """Return the ids of the calls that a paused turn of the thread waits for.

        Raises RequestRefused where they cannot be read.
        """
        pause = (await read_record(self._pauses, thread)).pause
        return frozenset(item.id for item in pause.items) if pause is not None else frozenset()

    async def positioned(self, thread: ThreadKey) -> list[tuple[int, Any]]:
        """Return the live history with its positions."""
        live = (await self._reader.read(thread)).live
        return [(stored.position, stored.message) for stored in live]

    async def note(self, thread: ThreadKey, done: CompactionFinished) -> int:
        """Write the entry of what was done; returns its number."""
        number = await self._log.allot_compaction(thread)
        decision = with_positions(done.decision, await self.positioned(thread))
        body = {"compaction": number, **decision}
        line = decision_line(decision) if "before" in decision else decision["because"]
        entry = operator_entry("compaction", decision["result"], body, "", str(number), line)
        record = await self._threads.record(thread)
        known = json.loads(record.extra.get("summaries", "{}")) if record is not None else {}
        meta = {"summaries": canonical_json(summaries_with(known, decision, number))}
        await self._log.append(thread, [entry], fence=0, blobs=done.blobs, meta=meta)
        return number
