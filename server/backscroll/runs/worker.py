"""One worker: its connections, its hub, its runs, and what it does in the background."""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from backscroll import __version__
from backscroll.agent.agent import Agent
from backscroll.agui.options import AgentRules
from backscroll.kernel.errors import StoreError
from backscroll.providers.discovery import learn_window
from backscroll.runs.hub import Hub
from backscroll.runs.operator import Operator
from backscroll.runs.registry import Registry, RunRules
from backscroll.store.compaction_store import RedisCompactionStore
from backscroll.store.connection import RedisClients, connect
from backscroll.store.history_reader import HistoryReader
from backscroll.store.keys import LOCAL_OWNER, Keys
from backscroll.store.thread_log import ThreadLog
from backscroll.store.threads import ThreadStore
from backscroll.store.workers import WorkerRegistry

logger = logging.getLogger(__name__)

BEAT_S = 5.0
SUBSCRIBE_S = 5.0
SWEEP_S = 2.0


@dataclass(frozen=True, slots=True)
class WorkerOptions:
    """What a worker needs to know beside the agent it serves."""

    redis_url: str
    key_prefix: str = "bs"
    rules: RunRules = field(default_factory=RunRules)
    thread_ttl_s: float = 0.0


class Worker:
    """Everything one process needs to take requests, run them and deliver them."""

    def __init__(
        self,
        name: str,
        agent: Agent,
        rules: AgentRules,
        clients: RedisClients,
        options: WorkerOptions,
    ) -> None:
        keys = Keys(options.key_prefix)
        self.name, self.agent, self.agent_rules = name, agent, rules
        self.rules = options.rules
        self.started_ms = round(time.time() * 1000)
        self.clients, self.keys = clients, keys
        self.log = ThreadLog(clients, keys, name, options.thread_ttl_s)
        self.hub = Hub(clients, keys, self.log)
        self.threads = ThreadStore(self.log)
        self.history = HistoryReader(clients, keys)
        self.workers = WorkerRegistry(clients, keys)
        self.compaction = RedisCompactionStore(clients, keys, LOCAL_OWNER)
        self.operator = Operator(agent, self.log)
        self.registry = Registry(agent, rules, self.log, self.hub, options.rules)
        self.connections = 0
        self.lag_ms = 0.0

    async def run(self) -> None:
        """Do everything that goes on in the background, until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self.hub.run())
            group.create_task(self.registry.run())
            group.create_task(self.operator.run())
            group.create_task(self._beat())
            group.create_task(self._sweep())

    async def _beat(self) -> None:
        """Say that this worker lives, and how late its loop is."""
        while True:
            before = time.monotonic()
            await asyncio.sleep(BEAT_S)
            self.lag_ms = max(0.0, (time.monotonic() - before - BEAT_S) * 1000)
            try:
                await self.workers.beat(self.name, self.about())
            except StoreError as error:
                logger.warning("%s", error)

    async def _sweep(self) -> None:
        """End the runs of workers that were lost, and pauses that nobody answered in time."""
        while True:
            try:
                await self.registry.lost.end_all()
                await self.registry.answers.settle_due()
            except StoreError as error:
                logger.warning("%s", error)
            await asyncio.sleep(SWEEP_S)

    def about(self) -> dict[str, object]:
        """Return what the registry of workers says of this one."""
        return {
            "worker": self.name,
            "version": __version__,
            "started": self.started_ms,
            "connections": self.connections,
            "runs": self.registry.active,
            "lag_ms": round(self.lag_ms, 1),
            "draining": self.registry.draining,
        }


@asynccontextmanager
async def open_worker(
    agent: Agent, rules: AgentRules, options: WorkerOptions
) -> AsyncIterator[Worker]:
    """Open a worker for as long as the block lasts.

    The window of a local model is asked for first. The background work is ended with the block,
    and the agent's connections and threads are let go.
    """
    clients = connect(options.redis_url)
    worker = Worker(f"w_{secrets.token_hex(4)}", agent, rules, clients, options)
    try:
        await worker.log.indexes.rebuild()
        await worker.workers.beat(worker.name, worker.about())
        await learn_window(agent.client.model)
        background = asyncio.ensure_future(worker.run())
        try:
            await worker.hub.wait_subscribed(SUBSCRIBE_S)
            yield worker
        finally:
            background.cancel()
            await asyncio.wait([background])
            try:
                await worker.workers.leave(worker.name)
            except StoreError as error:
                logger.debug("%s", error)
    finally:
        await agent.aclose()
        await clients.close()
