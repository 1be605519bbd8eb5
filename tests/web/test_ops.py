"""Health, readiness, and the state of the whole system."""

from __future__ import annotations

import pytest
from backscroll import __version__
from cutting_proxy import cutting_proxy
from served import served, until
from working import agent_of, begun, held, working


async def test_a_live_worker_is_healthy_and_ready(valkey_url: str, prefix: str) -> None:
    """No authentication, no cache."""
    async with served(agent_of("x"), valkey_url, prefix) as server:
        health = await server.http.get("/healthz")
        ready = await server.http.get("/readyz")

    assert (health.status_code, health.json()) == (200, {"status": "ok"})
    assert (ready.status_code, ready.json()) == (200, {"status": "ready"})
    assert health.headers["cache-control"] == "no-store"


async def test_a_draining_worker_is_not_ready(valkey_url: str, prefix: str) -> None:
    """Whoever balances load sends nothing more; it lives all the same."""
    async with served(agent_of("x"), valkey_url, prefix) as server:
        await server.worker.registry.drain(0)
        ready = await server.http.get("/readyz")
        health = await server.http.get("/healthz")
        post = await server.http.post("/agui", json={"threadId": "t", "runId": "r", "messages": []})

    assert (ready.status_code, ready.json()["error"]["code"]) == (503, "draining")
    assert ready.json()["error"]["details"]["part"] == "worker"
    assert health.status_code == 200 and post.status_code == 503


async def test_a_worker_that_hears_nothing_is_not_ready(valkey_url: str, prefix: str) -> None:
    """memory-06: readiness shows the outage of the subscription while it lasts."""
    async with cutting_proxy(valkey_url) as proxy:
        async with served(agent_of("x"), proxy.url, prefix) as server:
            proxy.cuts = 1_000_000
            await until(lambda: not server.worker.hub.subscribed, "the subscription is down", 15)
            down = await server.http.get("/readyz")
            proxy.cuts = 0
            await until(lambda: server.worker.hub.subscribed, "the subscription is up again", 15)
            up = await server.http.get("/readyz")

    assert (down.status_code, down.json()["error"]["code"]) == (503, "unavailable")
    assert down.json()["error"]["details"]["part"] == "subscription"
    assert up.status_code == 200


async def test_a_redis_that_does_not_answer(
    valkey_url: str, prefix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The part that fails is named, and the answer does not wait for it."""
    monkeypatch.setattr("backscroll.web.ops.READY_S", 0.0)
    async with served(agent_of("x"), valkey_url, prefix) as server:
        ready = await server.http.get("/readyz")

    assert ready.status_code == 503 and ready.json()["error"]["details"]["part"] == "redis"


async def test_the_state_of_the_system(valkey_url: str, prefix: str) -> None:
    """All workers, Redis, threads by status, the build of the console."""
    async with (
        served(agent_of(held(), "x"), valkey_url, prefix) as server,
        working(agent_of("x"), valkey_url, prefix) as other,
    ):
        await begun(server.worker, "r1", thread="t1")
        await server.run("t2", "r2", "hi")
        async with server.socket("/console/ws"):
            await until(lambda: server.worker.connections == 1, "the socket is open")
            system = await server.get("/console/api/system")

    workers = {w["worker"]: w for w in system["workers"]}
    assert list(workers) == sorted([server.worker.name, other.name])
    assert workers[server.worker.name]["connections"] == 1
    assert workers[server.worker.name]["runs"] == 1
    assert workers[server.worker.name]["version"] == __version__
    assert system["redis"]["subscribed"] is True and system["redis"]["ping_ms"] >= 0
    assert system["threads"] == {"running": 1, "ok": 1} and len(system["build"]) == 12


async def test_who_is_asking(valkey_url: str, prefix: str) -> None:
    """On loopback everyone is the one operator."""
    async with served(agent_of("x"), valkey_url, prefix) as server:
        session = await server.get("/console/api/session")

    assert session == {
        "principal": "local",
        "roles": ["operator"],
        "auth": "none",
        "agents": ["a"],
    }
