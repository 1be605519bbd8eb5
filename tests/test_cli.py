"""The command `backscroll`, as it is typed; what its processes do is in test_serve.py."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import click
import httpx
import pytest
from backscroll import __version__, cli
from backscroll.settings import Settings
from backscroll.web.serving import listen
from click.testing import CliRunner, Result
from deadlines import wait_until
from working import agent_of, run, working


@pytest.fixture(autouse=True)
def clean(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take away what the environment of the tests says."""
    for name in Settings.model_fields:
        monkeypatch.delenv(f"BACKSCROLL_{name.upper()}", raising=False)


def typed(*words: str) -> Result:
    """Run the command with these words."""
    return CliRunner().invoke(cli.main, list(words))


def refused(*words: str) -> str:
    """Return the one sentence that a command is refused with."""
    result = typed(*words)
    assert result.exit_code == 1, result.output
    assert result.output.startswith("Error: ") and result.output.count("\n") == 1
    return result.output


def free_port() -> int:
    """Return a port nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def test_says_what_it_can_do() -> None:
    """The hidden command is for `serve` alone."""
    shown = typed("--help").output

    assert "serve" in shown and "worker" not in shown
    assert __version__ in typed("--version").output
    assert "--data-dir" in typed("serve", "--help").output


@pytest.mark.parametrize(
    "url", ["redis://localhost:1", "nonsense://x", "redis://:secret@localhost:1"]
)
def test_a_redis_that_is_not_there(url: str) -> None:
    """The option and the variable are named, and no password is shown."""
    said = refused("serve", "--redis-url", url, "--port", "0")

    assert "--redis-url" in said and "BACKSCROLL_REDIS_URL" in said and "secret" not in said


def test_a_port_that_is_taken() -> None:
    """The remedy is named."""
    with listen("127.0.0.1", 0) as taken:
        port = str(taken.getsockname()[1])

        assert "--port" in refused("serve", "--port", port)


def test_an_address_that_cannot_be_had() -> None:
    """The system's own reason is told."""
    with pytest.raises(click.ClickException, match=r"port 0 on 203\.0\.113\.1: ."):
        cli._listen(Settings(host="203.0.113.1", port=0))


def test_other_hosts_are_refused() -> None:
    """Nothing asks for a password yet."""
    for host in ("0.0.0.0", "example.com", "::"):
        assert host in refused("serve", "--host", host)


def test_a_data_directory_that_cannot_be_one(tmp_path: Path) -> None:
    """A file is none."""
    (tmp_path / "data").write_text("")

    assert "data" in refused("serve", "--data-dir", str(tmp_path / "data"), "--port", "0")


def test_an_agent_that_cannot_be_found() -> None:
    """Its name is in the sentence."""
    assert "nowhere" in refused("serve", "nowhere:agent")


def test_a_setting_that_makes_no_sense() -> None:
    """Option and variable are named, with what was given."""
    said = refused("serve", "--workers", "0")

    assert "--workers" in said and "BACKSCROLL_WORKERS" in said and "0" in said


@contextmanager
def interrupted_when(ready: Callable[[], bool]) -> Iterator[list[bool]]:
    """Send this process a signal once something is so; the signal is what ends the command."""
    seen: list[bool] = []

    def ask() -> None:
        try:
            wait_until(ready, 20, "the server is ready")
            seen.append(True)
        finally:
            os.kill(os.getpid(), signal.SIGINT)

    asker = threading.Thread(target=ask)
    asker.start()
    yield seen
    asker.join(30)


def answers(port: int) -> bool:
    """Say whether a server is ready."""
    try:
        url = f"http://127.0.0.1:{port}/readyz"
        return httpx.get(url, trust_env=False, timeout=5).status_code == 200
    except httpx.TransportError:
        return False


@pytest.mark.parametrize("workers", ["1", "2"])
def test_serving_until_a_signal(
    valkey_url: str, prefix: str, monkeypatch: pytest.MonkeyPatch, workers: str
) -> None:
    """It says where everything is, and ends with status 0."""
    monkeypatch.setenv("BACKSCROLL_KEY_PREFIX", prefix)
    monkeypatch.setenv("BACKSCROLL_REDIS_URL", valkey_url)
    port = free_port()
    with interrupted_when(lambda: answers(port)) as seen:
        result = typed("serve", "--port", str(port), "--workers", workers)

    assert seen == [True] and result.exit_code == 0, result.output
    if workers == "1":
        # Of several the first may answer before the command has told of it.
        assert f"http://127.0.0.1:{port}/console/" in result.output
        assert f"ws://127.0.0.1:{port}/agui" in result.output


def test_the_embedded_server_goes_with_the_command(tmp_path: Path) -> None:
    """Without a Redis it starts its own in the data directory, and takes it along."""
    port = free_port()
    with interrupted_when(lambda: answers(port)) as seen:
        result = typed("serve", "--port", str(port), "--data-dir", str(tmp_path / "a b"))

    assert seen == [True] and result.exit_code == 0, result.output
    assert (tmp_path / "a b" / "lock").exists() and not list(tmp_path.rglob("*.sock"))


def test_one_worker_of_several(
    valkey_url: str, prefix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It serves on the socket it inherits, and says when it is ready."""
    monkeypatch.setenv("BACKSCROLL_KEY_PREFIX", prefix)
    monkeypatch.setenv("BACKSCROLL_REDIS_URL", valkey_url)
    monkeypatch.setattr(cli, "end_with_parent", lambda parent: None)
    read_end, write_end = os.pipe()
    with listen("127.0.0.1", 0) as listener:
        fds = [f"--listen-fd={os.dup(listener.fileno())}", f"--ready-fd={write_end}"]
        with interrupted_when(lambda: os.read(read_end, 1) == b".") as seen:
            result = typed("worker", *fds, "--parent=1")
    for end in (read_end, write_end):
        os.close(end)

    assert seen == [True] and result.exit_code == 0, result.output


def test_a_thread_is_verified(
    valkey_url: str, prefix: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """By its key, or by its id; one that differs makes the status 1."""

    async def talk() -> None:
        async with working(agent_of("hello"), valkey_url, prefix) as worker:
            await run(worker, "a b", "r", "hi")

    asyncio.run(talk())
    monkeypatch.setenv("BACKSCROLL_KEY_PREFIX", prefix)
    for name in ("a b", "a%20b"):
        result = typed("verify", name, "--redis-url", valkey_url)
        assert result.exit_code == 0 and "1 requests" in result.output, result.output
    said = [
        refused("verify", "nope", "--redis-url", valkey_url),
        refused("verify", "nope", "--redis-url", "redis://localhost:1"),
        refused("verify", "nope", "--data-dir", str(tmp_path / "none")),
    ]

    assert "no thread nope" in said[0] and "--redis-url" in said[1] and "--data-dir" in said[2]


def test_what_workers_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """The settings of several workers go through the environment and come out the same."""
    settings = Settings(
        allowed_origins=("https://a", 'https://"b"'),
        data_dir=Path("/tmp/a b"),
        compression=True,
        lease_s=2.5,
    )
    for name, value in cli._environment(settings, redis_url="unix:///x%20y", port=7).items():
        monkeypatch.setenv(name, value)

    assert cli._settings({}) == settings.model_copy(
        update={"redis_url": "unix:///x%20y", "port": 7}
    )


def test_an_address_with_colons_is_put_in_brackets(capsys: pytest.CaptureFixture[str]) -> None:
    """So that it can be clicked."""
    cli._announcer("::1", 8000, 2)()

    assert "http://[::1]:8000/console/" in capsys.readouterr().out


def test_nobody_waits_for_a_worker_any_more() -> None:
    """A worker that is started again later has nobody to tell."""
    read_end, write_end = os.pipe()
    cli._tell(write_end)
    assert os.read(read_end, 1) == b"."
    os.close(read_end)
    os.close(write_end)

    cli._tell(write_end)
