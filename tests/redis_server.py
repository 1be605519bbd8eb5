"""A real server for tests: one embedded Valkey per session, and a key prefix per test."""

from __future__ import annotations

import secrets
import shutil
import subprocess
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from backscroll.store.connection import RedisClients, connect, socket_url
from backscroll.store.embedded import EmbeddedValkey
from backscroll.store.keys import Keys
from backscroll.store.valkey_process import Answer, ping
from deadlines import wait_until


@contextmanager
def running_server(program: str, *options: str) -> Iterator[str]:
    """Run a Redis or Valkey without files on a socket of its own and give its URL."""
    with tempfile.TemporaryDirectory(prefix="redis-") as folder:
        path = Path(folder) / "socket"
        command = [program, "--port", "0", "--unixsocket", str(path), "--dir", folder]
        process = subprocess.Popen(
            [*command, "--save", "", *options], stdout=subprocess.DEVNULL, cwd=folder
        )
        try:
            wait_until(lambda: ping(path) is Answer.UP, 10, f"{program} answers")
            yield socket_url(str(path))
        finally:
            process.terminate()
            process.wait(timeout=10)


@pytest.fixture(scope="session")
def valkey_url() -> Iterator[str]:
    """Give the URL of an embedded Valkey that all tests of the session share."""
    with tempfile.TemporaryDirectory(prefix="valkey-") as folder:
        server = EmbeddedValkey(folder)
        yield server.start()
        server.stop()


@pytest.fixture(scope="session")
def debian_redis_url() -> Iterator[str]:
    """Give the URL of the system's redis-server; ask `needs("redis")` first."""
    with running_server(shutil.which("redis-server") or "redis-server") as url:
        yield url


@pytest.fixture
def prefix() -> str:
    """Give a key prefix that no other test uses."""
    return f"t{secrets.token_hex(6)}"


@pytest.fixture
def keys(prefix: str) -> Keys:
    """Give the key names under the test's prefix."""
    return Keys(prefix)


@pytest.fixture
async def clients(valkey_url: str) -> AsyncIterator[RedisClients]:
    """Give clients of the session's Valkey."""
    clients = connect(valkey_url)
    yield clients
    await clients.close()
