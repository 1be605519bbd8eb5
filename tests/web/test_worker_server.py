"""One worker as a process: its settings, and the server that runs it."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading
from contextlib import suppress
from dataclasses import fields
from typing import Any

import httpx
import pytest
from backscroll.kernel.tool import tool
from backscroll.settings import Settings
from backscroll.web import worker_server as module
from backscroll.web.serving import listen
from backscroll.web.worker_server import WorkerSetup, run_worker
from working import agent_of


@tool
def add(a: int) -> int:
    """Add."""
    return a


def setup(**settings: Any) -> WorkerSetup:
    """Return a setup with some settings."""
    return WorkerSetup(**{"agent": agent_of("x", tools=[add]), "redis_url": "x", **settings})


def test_each_field_is_a_setting_with_its_default() -> None:
    """What the command hands over by name exists on both sides and means the same."""
    for field in fields(WorkerSetup):
        if field.name not in ("agent", "redis_url"):
            assert field.default == Settings.model_fields[field.name].default, field.name


def test_what_becomes_of_the_settings() -> None:
    """Every number reaches the place where it counts."""
    given = setup(
        key_prefix="p",
        max_input_bytes=5000,
        max_messages=7,
        max_frame=70_000,
        sse_max_frame=80_000,
        client_result_chars=2000,
        context_bytes=10,
        keepalive_s=1.5,
        send_timeout_s=2.5,
        idle_s=3.5,
        lease_s=4.5,
        run_seconds=5.5,
        supersede_wait_s=6.5,
        active_runs=8,
        feeds_per_socket=9,
        coalesce_ms=20,
        coalesce_deltas=3,
        show_reasoning=False,
        client_timeline="full",
    )

    options, rules = (
        module._worker_options(given),
        module._agent_rules(given, agent_of("x", tools=[add])),
    )
    limits = module._limits(given)

    times = options.rules.times
    assert (options.key_prefix, options.rules.active_runs) == ("p", 8)
    assert (times.lease_s, times.run_s, options.rules.supersede_wait_s) == (4.5, 5.5, 6.5)
    assert (times.coalesce_s, times.coalesce_deltas) == (0.02, 3)
    assert (rules.name, rules.timeline, rules.show_reasoning) == ("a", "full", False)
    assert (rules.tool_names, rules.result_chars) == ({"add"}, 2000)
    assert (limits.input.input_bytes, limits.input.messages) == (5000, 7)
    assert limits.input.context_bytes == 10
    assert (limits.max_frame, limits.sse_max_frame) == (70_000, 80_000)
    assert (limits.keepalive_s, limits.send_timeout_s, limits.idle_s) == (1.5, 2.5, 3.5)
    assert limits.feeds_per_socket == 9


def test_a_worker_serves_until_a_signal(valkey_url: str, prefix: str) -> None:
    """It is ready when requests are taken, and a signal drains and ends it."""
    seen: list[int] = []

    with listen("127.0.0.1", 0) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/readyz"

        def ask() -> None:
            try:
                seen.append(httpx.get(url, trust_env=False, timeout=10).status_code)
            finally:
                os.kill(os.getpid(), signal.SIGTERM)

        asker = threading.Thread(target=ask)
        run_worker(setup(redis_url=valkey_url, key_prefix=prefix), listener, asker.start)
        asker.join(10)

    assert seen == [200]


def test_a_task_that_heeds_no_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is told from one that ends when it is cancelled, and is not waited for."""
    monkeypatch.setattr(module, "LEAVE_S", 0.05)
    release = asyncio.Event()

    async def deaf() -> None:
        while not release.is_set():
            with suppress(asyncio.CancelledError):
                await release.wait()

    with asyncio.Runner() as runner:
        task = runner.get_loop().create_task(deaf())
        runner.run(asyncio.sleep(0))
        first = runner.run(module._all_ended())
        release.set()
        runner.run(asyncio.wait({task}))
        runner.get_loop().create_task(asyncio.sleep(60))

        assert (first, runner.run(module._all_ended())) == (False, True)


def test_the_faster_loop_is_optional(monkeypatch: Any) -> None:
    """Where it is not installed, Python's own serves."""
    assert module._loop() is not None
    monkeypatch.setitem(sys.modules, "uvloop", None)
    assert module._loop() is None
