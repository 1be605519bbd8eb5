"""Health, readiness, and the state of the whole system."""

from __future__ import annotations

import asyncio

from starlette.requests import Request
from starlette.responses import Response

from backscroll.agui.refusal import RequestRefused
from backscroll.kernel.errors import StoreError
from backscroll.store.health import redis_health
from backscroll.web.answers import json_answer, services_of

READY_S = 2.0
HEADS = 200


async def healthz(request: Request) -> Response:
    """Answer while the process lives."""
    return json_answer({"status": "ok"})


async def readyz(request: Request) -> Response:
    """Answer 200 while this worker can serve; else 503 naming what is not well."""
    worker = services_of(request).worker
    if worker.registry.draining:
        raise RequestRefused("draining", "This worker is draining.", {"part": "worker"})
    if not worker.hub.subscribed:
        message = "The Redis subscription is down."
        raise RequestRefused("unavailable", message, {"part": "subscription"})
    try:
        async with asyncio.timeout(READY_S):
            await worker.clients.ping()
    except (StoreError, TimeoutError) as error:
        raise RequestRefused("unavailable", "Redis does not answer.", {"part": "redis"}) from error
    return json_answer({"status": "ready"})


async def system(request: Request) -> Response:
    """Return workers, Redis, threads by status, and the build of the console."""
    services = services_of(request)
    worker = services.worker
    here = worker.about()
    others = [info.info for info in await worker.workers.workers() if info.worker != worker.name]
    records = await worker.threads.heads(limit=HEADS)
    threads: dict[str, int] = {}
    for record in records:
        threads[record.status] = threads.get(record.status, 0) + 1
    redis = {**await redis_health(worker.clients), "subscribed": worker.hub.subscribed}
    answer = {
        "workers": sorted([here, *others], key=lambda one: str(one["worker"])),
        "redis": redis,
        "threads": threads,
        "build": request.app.state.console.hash,
    }
    return json_answer(answer)


async def session(request: Request) -> Response:
    """Return who is asking; on loopback everyone is the one operator."""
    services = services_of(request)
    return json_answer(
        {
            "principal": services.owner,
            "roles": ["operator"],
            "auth": "none",
            "agents": [services.worker.agent_rules.name],
        }
    )
