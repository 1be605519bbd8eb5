"""One worker: what it opens, what it does in the background, how it leaves."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from backscroll import __version__
from backscroll.agent.agent import Agent
from backscroll.agui.options import AgentRules
from backscroll.kernel.errors import StoreError
from backscroll.providers.openai import OpenAIModel
from backscroll.runs import worker as module
from backscroll.runs.worker import WorkerOptions, open_worker
from cutting_proxy import cutting_proxy
from deadlines import scaled
from scripted_provider import ScriptedProvider
from working import agent_of, begun, held, working


async def test_a_worker_says_that_it_lives(valkey_url: str, prefix: str) -> None:
    """It is in the list of workers as long as it is open, and gone afterwards."""
    async with working(agent_of("x"), valkey_url, prefix) as one:
        async with working(agent_of("x"), valkey_url, prefix) as two:
            both = {info.worker for info in await one.workers.workers()}
        alone = {info.worker for info in await one.workers.workers()}

        assert both == {one.name, two.name} and alone == {one.name}
        assert one.hub.subscribed


async def test_a_worker_asks_for_the_window_of_its_model(
    valkey_url: str, prefix: str, provider: ScriptedProvider
) -> None:
    """Before it takes requests, the window that a local server states is known, with its source."""
    provider.configure(routes={"/props": (200, {"default_generation_settings": {"n_ctx": 2048}})})
    model = OpenAIModel(
        "m", base_url=provider.base_url, provider="llama.cpp", trust_env=False, api_key="k"
    )

    async with working(Agent(name="a", model=model), valkey_url, prefix) as worker:
        profile = worker.agent.client.model.profile

    assert (profile.context_window, profile.window_source) == (2048, "/props")


async def test_what_a_worker_says_of_itself(valkey_url: str, prefix: str) -> None:
    """Version, start, runs, connections, whether it drains."""
    async with working(agent_of(held()), valkey_url, prefix) as worker:
        await begun(worker)
        about = worker.about()
        await worker.registry.drain(0)
        draining = worker.about()

    assert (about["worker"], about["version"], about["runs"]) == (worker.name, __version__, 1)
    assert about["connections"] == 0 and about["draining"] is False
    assert draining["draining"] is True and draining["runs"] == 0


async def test_the_beat_goes_on(
    valkey_url: str, prefix: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """What it says is said again, with how late its loop is; a store that is away is survived."""
    monkeypatch.setattr(module, "BEAT_S", 0.02)
    monkeypatch.setattr(module, "SWEEP_S", 0.02)
    async with (
        working(agent_of("x"), valkey_url, prefix) as near,
        cutting_proxy(valkey_url) as proxy,
        working(agent_of("x"), proxy.url, prefix) as worker,
    ):
        proxy.cuts = 20
        worker.connections = 7
        async with asyncio.timeout(scaled(15)):
            while (await _said_of(worker.name, near)).get("connections") != 7:
                pass
            while "Redis could not" not in caplog.text:
                await _said_of(worker.name, near)

        assert worker.lag_ms >= 0


async def test_a_worker_leaves_though_the_store_is_away(valkey_url: str, prefix: str) -> None:
    """Saying goodbye is a courtesy; the list drops it after a minute."""
    async with cutting_proxy(valkey_url) as proxy:
        async with working(agent_of("x"), proxy.url, prefix):
            proxy.cuts = 1_000_000


async def test_a_worker_without_a_store_does_not_open(tmp_path: Path) -> None:
    """What cannot be reached is a StoreError at once."""
    options = WorkerOptions(str(tmp_path / "none"))
    with pytest.raises(StoreError):
        async with open_worker(agent_of("x"), AgentRules("a"), options):
            pass


async def _said_of(name: str, by: module.Worker) -> dict[str, object]:
    found = await by.workers.workers()
    return next((dict(info.info) for info in found if info.worker == name), {})
