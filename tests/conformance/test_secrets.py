"""Secrets stay secret: in the log of the process, in events, in the console, in exports."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator

import httpx
import pytest
import redis
import websockets
from deadlines import scaled, wait_until
from processes import PROGRAMS, ServerProcess
from scripted_provider import ScriptedProvider
from served import read_run, request

PROVIDER_KEY, CALLER_KEY, STORE_PASSWORD = "KEY-PROV-789", "KEY-CALL-456", "KEY-STORE-123"
SECRETS = (PROVIDER_KEY, CALLER_KEY, STORE_PASSWORD)
CALLER = {"Authorization": f"Bearer {CALLER_KEY}", "Cookie": f"session={CALLER_KEY}"}
THREAD = "/console/api/threads/t"
PAGES = (
    "/healthz",
    "/readyz",
    "/agui/capabilities",
    "/console/api/session",
    "/console/api/system",
    "/console/api/threads",
    THREAD,
    f"{THREAD}/runs",
    f"{THREAD}/messages?fields=full",
    f"{THREAD}/entries?fields=full",
    f"{THREAD}/rows",
    f"{THREAD}/calls",
    f"{THREAD}/calls/latest",
    f"{THREAD}/calls/latest/request",
    f"{THREAD}/compactions",
    f"{THREAD}/export",
    "/console/threads/t/timeline",
)


@pytest.fixture
def guarded(valkey_url: str, prefix: str) -> Iterator[str]:
    """Give the URL of the session's Valkey under a user with a password."""
    client = redis.from_url(valkey_url)
    client.execute_command(
        "ACL", "SETUSER", prefix, "on", f">{STORE_PASSWORD}", "~*", "&*", "+@all"
    )
    yield valkey_url.replace("unix://", f"unix://{prefix}:{STORE_PASSWORD}@")
    client.execute_command("ACL", "DELUSER", prefix)
    client.close()


def test_no_secret_is_told(
    guarded: str, valkey_url: str, prefix: str, provider: ScriptedProvider
) -> None:
    """security-05: a provider that echoes the key, callers with keys, a store with a password."""
    provider.configure(api_key="another", strict=False)
    env = {
        "PYTHONPATH": str(PROGRAMS),
        "OPENAI_API_KEY": PROVIDER_KEY,
        "OPENAI_BASE_URL": provider.base_url,
        "BACKSCROLL_KEY_PREFIX": prefix,
        "BACKSCROLL_LOG_LEVEL": "debug",
    }
    seen = []
    with ServerProcess("served_agent:agent", redis_url=guarded, env=env) as server:
        asyncio.run(_ask(server, seen))
        with httpx.Client(base_url=server.url, headers=CALLER, trust_env=False) as client:
            for page in PAGES:
                answer = client.get(page, timeout=scaled(10))
                assert answer.status_code == 200, (page, answer.text)
                seen += [answer.text, str(answer.headers)]
            client.get("/console/api/threads/unknown", timeout=scaled(10))
        with redis.from_url(valkey_url) as admin:
            admin.execute_command("ACL", "SETUSER", prefix, "resetpass", ">changed")
            admin.execute_command("CLIENT", "KILL", "USER", prefix)
            told = lambda: "invalid username-password" in server.output()  # noqa: E731
            wait_until(told, 15, "the server tells that the store refuses it")
        printed = server.output(10_000_000)

    assert "Incorrect API key provided: ***" in "".join(seen)
    assert "DEBUG" in printed.upper() and len(printed) > 1_000
    for secret in SECRETS:
        lines = [line for text in (*seen, printed) for line in text.splitlines()]
        assert [line for line in lines if secret in line] == []


async def _ask(server: ServerProcess, seen: list[str]) -> None:
    """Run once over a socket and once over HTTP, both refused by the provider."""
    async with websockets.connect(f"{server.ws_url}/agui", additional_headers=CALLER) as socket:
        await socket.send(json.dumps(request("t", "r1", "hello")))
        events = await read_run(socket)
    assert events[-1]["type"] == "RUN_ERROR", events[-1]
    async with httpx.AsyncClient(base_url=server.url, headers=CALLER, trust_env=False) as client:
        answer = await client.post("/agui", json=request("t", "r2", "hi"), timeout=scaled(10))
    seen += [json.dumps(events), answer.text]
