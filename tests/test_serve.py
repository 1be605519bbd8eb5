"""`backscroll serve` as a process: it keeps what it was told, ends cleanly, says what is wrong."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import httpx
import psutil
import pytest
from deadlines import wait_until
from processes import PROGRAMS, ServerProcess, child_env, free_port
from served import request


@pytest.fixture
def data_dir(tmp_path: Path) -> Iterator[Path]:
    """Give a data directory with a blank, quotes and other scripts in its name."""
    yield tmp_path / 'the "data" of 王小明\'s'


def say(server: ServerProcess, thread: str, text: str) -> str:
    """Say something in a thread and return the events that came back."""
    message = {"id": f"m-{uuid4().hex}", "role": "user", "content": text}
    body = {"threadId": thread, "runId": uuid4().hex, "messages": [message], "tools": []}
    more = {"context": [], "state": {}, "forwardedProps": {}, "protocolVersion": "1.0"}
    url = f"{server.url}/agui"
    return httpx.post(url, json={**body, **more}, trust_env=False, timeout=20).text


def message_count(server: ServerProcess, thread: str) -> int:
    """Return how many messages the thread holds."""
    url = f"{server.url}/console/api/threads/{thread}"
    count: int = httpx.get(url, trust_env=False, timeout=10).json()["messages"]
    return count


def family(server: ServerProcess) -> list[psutil.Process]:
    """Return the server's process and all that it started."""
    process = psutil.Process(server.pid)
    return [process, *process.children(recursive=True)]


def gone(processes: list[psutil.Process]) -> bool:
    """Whether none of the processes runs any more."""
    return not [p for p in processes if p.is_running() and p.status() != psutil.STATUS_ZOMBIE]


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["ctrl-c", "term"])
def test_stop_and_start_again(data_dir: Path, workers: int, number: signal.Signals) -> None:
    """A stop ends every process with status 0; the conversation is there after a restart."""
    with ServerProcess(data_dir=data_dir, workers=workers) as server:
        assert "RUN_FINISHED" in say(server, "t1", "hello")
        started = family(server)
        server.signal(number)
        assert server.wait() == 0, server.output()
        wait_until(lambda: gone(started), 5, "nothing is left running")

    with ServerProcess(data_dir=data_dir, workers=workers) as server:
        assert message_count(server, "t1") == 2
        assert "RUN_FINISHED" in say(server, "t1", "and again")
        assert message_count(server, "t1") == 4


@pytest.mark.parametrize("workers", [1, 2])
def test_killed_and_started_again(data_dir: Path, workers: int) -> None:
    """After a kill the rest goes away by itself, and nothing that was acknowledged is lost."""
    server = ServerProcess(data_dir=data_dir, workers=workers).start()
    assert "RUN_FINISHED" in say(server, "t1", "hello")
    started = family(server)
    server.kill()
    wait_until(lambda: gone(started), 10, "nothing is left running")

    with server:
        assert message_count(server, "t1") == 2


def test_two_servers_share_a_directory(data_dir: Path) -> None:
    """A second server on the same directory serves the same conversations."""
    with ServerProcess(data_dir=data_dir) as first, ServerProcess(data_dir=data_dir) as second:
        assert "RUN_FINISHED" in say(first, "t1", "hello")

        assert message_count(second, "t1") == 2


def refused(*words: str, **env: str) -> str:
    """Run `backscroll serve` with arguments it cannot work with and return what it says."""
    command = [str(Path(sys.executable).with_name("backscroll")), "serve", *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=20, env=child_env(env))
    assert done.returncode != 0 and "Traceback" not in done.stderr
    return done.stderr


def test_port_in_use() -> None:
    """A port that is taken is named, with the remedy."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]

        said = refused("--port", str(port))

    assert str(port) in said and "in use" in said and "--port" in said


def test_data_directory_is_a_file(tmp_path: Path) -> None:
    """A data directory that cannot be one is named."""
    (tmp_path / "data").write_text("", encoding="utf-8")

    assert str(tmp_path / "data") in refused("--port", "0", "--data-dir", str(tmp_path / "data"))


@pytest.mark.parametrize("name", ["nowhere", "served_agent:nothing", "served_agent:add"])
def test_agent_that_is_none(name: str, tmp_path: Path) -> None:
    """An agent that cannot be imported, or is none, is named with what was found instead."""
    said = refused(name, "--data-dir", str(tmp_path), PYTHONPATH=str(PROGRAMS), OPENAI_API_KEY="k")

    assert name.split(":")[0] in said and name.rpartition(":")[2] in said


def test_model_without_a_key(tmp_path: Path) -> None:
    """A model that needs a key says which variable holds it, before anything is served."""
    env = {"PYTHONPATH": str(PROGRAMS), "OPENAI_API_KEY": "", "OPENAI_BASE_URL": ""}

    said = refused("served_agent", "--port", "0", "--data-dir", str(tmp_path), **env)

    assert "OPENAI_API_KEY" in said


DEAF = """
import asyncio
from contextlib import suppress
from backscroll import Agent, tool

@tool
async def deaf() -> str:
    "Never end."
    while True:
        with suppress(asyncio.CancelledError):
            await asyncio.Event().wait()

agent = Agent(name="a", model="demo", tools=[deaf])
"""


def test_a_tool_that_never_ends(tmp_path: Path) -> None:
    """A stop signal ends the process although a tool heeds no cancellation."""
    (tmp_path / "deaf_agent.py").write_text(DEAF, encoding="utf-8")
    body = request("t", "r", "use deaf {}")
    env = {"BACKSCROLL_DRAIN_S": "0.5"}
    server = ServerProcess("deaf_agent", data_dir=tmp_path / "data", cwd=tmp_path, env=env)
    with server, httpx.Client(trust_env=False) as client:
        with client.stream("POST", f"{server.url}/agui", json=body, timeout=20) as answer:
            for line in answer.iter_lines():
                if "TOOL_CALL_END" in line:
                    break
        server.signal(signal.SIGTERM)

        assert server.wait(15) == 0
        assert "does not heed its end" in server.output()


AWAY = """
from contextlib import asynccontextmanager
from backscroll import Agent, mcp_tools

@asynccontextmanager
async def agent():
    async with mcp_tools({where}) as tools:
        yield Agent(name="a", model="demo", tools=tools)
"""


@pytest.mark.parametrize("workers", ["1", "2"])
@pytest.mark.parametrize("where", ["url={url!r}", "command=['/nowhere/clock']"])
def test_mcp_server_that_is_away(tmp_path: Path, where: str, workers: str) -> None:
    """One sentence of each worker names the server and why it cannot be reached."""
    address = f"http://127.0.0.1:{free_port()}/mcp"
    source = AWAY.format(where=where.format(url=address))
    (tmp_path / "away.py").write_text(source, encoding="utf-8")
    options = ("--port", "0", "--data-dir", str(tmp_path / "data"), "--workers", workers)

    said = refused("away", *options, PYTHONPATH=f"{tmp_path}:{os.environ.get('PYTHONPATH', '')}")

    lines = [line for line in said.splitlines() if line.startswith("Error: ")]
    name = address if "url" in where else "/nowhere/clock"
    assert len(lines) == int(workers)
    assert all(f"the MCP server {name} cannot be reached: " in line for line in lines)
    assert len(said.splitlines()) == (1 if workers == "1" else 3)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "example.com"])
def test_only_loopback(host: str, tmp_path: Path) -> None:
    """As long as nothing asks for a password, nobody else can reach the server."""
    said = refused("--host", host, "--port", "0", "--data-dir", str(tmp_path))

    assert host in said and "loopback" in said


def test_bad_setting_names_its_variable(tmp_path: Path) -> None:
    """A setting that cannot be is named as option and as variable."""
    said = refused("--data-dir", str(tmp_path), BACKSCROLL_WORKERS="0")

    assert "BACKSCROLL_WORKERS" in said
