"""How Redis is doing: round trip, memory, persistence."""

from __future__ import annotations

import time
from typing import Any

from backscroll.store.connection import RedisClients, store_errors


async def redis_health(clients: RedisClients) -> dict[str, Any]:
    """Return round trip, memory in use and how data is kept; raises StoreError."""
    with store_errors("say how it is doing"):
        began = time.perf_counter()
        await clients.read.ping()
        ping_ms = round((time.perf_counter() - began) * 1000, 2)
        memory = await clients.read.info("memory")
        persistence = await clients.read.info("persistence")
    kept = "append-only file" if persistence.get("aof_enabled") else "snapshots or none"
    return {"ping_ms": ping_ms, "bytes": memory.get("used_memory", 0), "persistence": kept}
