"""One worker as a process: its settings as plain values, and the server that runs it."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Callable
from dataclasses import dataclass

from backscroll.agent.agent import Agent
from backscroll.agent.loader import Source, opened
from backscroll.agui.checks import InputLimits
from backscroll.agui.options import AgentRules, Timeline
from backscroll.runs.registry import RunRules
from backscroll.runs.runner import RunTimes
from backscroll.runs.worker import Worker, WorkerOptions, open_worker
from backscroll.web.app import build_app
from backscroll.web.origins import OriginRules
from backscroll.web.services import WebLimits
from backscroll.web.serving import ServingOptions, make_server

logger = logging.getLogger(__name__)

LEAVE_S = 2.0
"""How long tasks may take to end when the worker does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerSetup:
    """What a worker is told; each field but `agent` is the setting of that name."""

    agent: Source
    redis_url: str
    key_prefix: str = "bs"
    log_level: str = "info"
    allowed_origins: tuple[str, ...] = ()
    allowed_hosts: tuple[str, ...] = ()
    compression: bool = False
    max_input_bytes: int = 8 * 1024 * 1024
    max_messages: int = 10_000
    max_frame: int = 1_000_000
    sse_max_frame: int = 8_000_000
    client_result_chars: int = 200_000
    context_bytes: int = 65_536
    keepalive_s: float = 20.0
    send_timeout_s: float = 30.0
    idle_s: float = 300.0
    drain_s: float = 10.0
    lease_s: float = 15.0
    run_seconds: float = 600.0
    supersede_wait_s: float = 5.0
    thread_ttl_s: float = 0.0
    active_runs: int = 200
    feeds_per_socket: int = 64
    coalesce_ms: float = 15.0
    coalesce_deltas: int = 16
    show_reasoning: bool = True
    client_timeline: Timeline = "brief"


def run_worker(setup: WorkerSetup, listener: socket.socket, on_ready: Callable[[], None]) -> None:
    """Serve on a listening socket until a signal; `on_ready` is called once requests are taken.

    What keeps the agent from being opened is raised as it is.
    """
    runner = asyncio.Runner(loop_factory=_loop())
    try:
        runner.run(_serve(setup, listener, on_ready))
    finally:
        if runner.run(_all_ended()):
            runner.close()
        else:
            # Closing the loop would wait for it for ever; the process takes it along.
            logger.warning("a task does not heed its end, so it is left behind")


async def _all_ended() -> bool:
    """Cancel what still runs; False when some of it, such as a tool, does not heed that."""
    rest = asyncio.all_tasks() - {asyncio.current_task()}
    for task in rest:
        task.cancel()
    return not rest or not (await asyncio.wait(rest, timeout=LEAVE_S))[1]


async def _serve(setup: WorkerSetup, listener: socket.socket, on_ready: Callable[[], None]) -> None:
    """Open the agent, which may bring servers and files of its own, and serve a worker with it."""
    workers: list[Worker] = []

    def ready(worker: Worker) -> None:
        workers.append(worker)
        on_ready()

    async def drain() -> None:
        for worker in workers:
            await worker.registry.drain(setup.drain_s)

    async with opened(setup.agent) as agent:
        rules, options = _agent_rules(setup, agent), _worker_options(setup)
        app = build_app(
            lambda: open_worker(agent, rules, options),
            _limits(setup),
            OriginRules(frozenset(setup.allowed_hosts), frozenset(setup.allowed_origins)),
            ready,
        )
        await make_server(app, _serving_options(setup), drain).serve(sockets=[listener])


def _loop() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """Return how to make the faster loop, where it is installed."""
    try:
        import uvloop
    except ImportError:
        return None
    return uvloop.new_event_loop


def _serving_options(setup: WorkerSetup) -> ServingOptions:
    return ServingOptions(
        setup.max_input_bytes,
        setup.keepalive_s,
        setup.compression,
        setup.log_level,
    )


def _worker_options(setup: WorkerSetup) -> WorkerOptions:
    times = RunTimes(
        setup.lease_s, setup.run_seconds, setup.coalesce_ms / 1000, setup.coalesce_deltas
    )
    rules = RunRules(times, setup.active_runs, setup.supersede_wait_s)
    return WorkerOptions(setup.redis_url, setup.key_prefix, rules, setup.thread_ttl_s)


def _agent_rules(setup: WorkerSetup, agent: Agent) -> AgentRules:
    return AgentRules(
        name=agent.name,
        tool_names=frozenset(agent.client.tools.names()),
        timeline=setup.client_timeline,
        show_reasoning=setup.show_reasoning,
        result_chars=setup.client_result_chars,
    )


def _limits(setup: WorkerSetup) -> WebLimits:
    return WebLimits(
        InputLimits(
            input_bytes=setup.max_input_bytes,
            messages=setup.max_messages,
            context_bytes=setup.context_bytes,
        ),
        setup.max_frame,
        setup.sse_max_frame,
        setup.keepalive_s,
        setup.send_timeout_s,
        setup.idle_s,
        setup.feeds_per_socket,
    )
