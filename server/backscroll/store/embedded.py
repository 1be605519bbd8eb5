"""Our own Valkey in the data directory: several processes share it, one of them owns it.

Two servers on one directory would both write its append-only file, so a lock decides who starts
one. Who does not get the lock uses the owner's server. The server goes when its owner goes.
"""

from __future__ import annotations

import hashlib
import os
import stat
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import Literal

from backscroll.kernel.errors import StoreError
from backscroll.store.connection import socket_url
from backscroll.store.valkey_process import (
    LOG_NAME,
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

START_WITHIN_S = 30.0
ORPHAN_LEAVES_S = 0.5
SOCKET_PATH_BYTES = 100
LOG_TAIL_LINES = 8


class EmbeddedValkey:
    """The Valkey of a data directory.

    Call `start` from the main thread, before the event loop and before any other thread: the
    server's life hangs on the thread that started it. After a lost connection call it again.
    """

    def __init__(
        self,
        data_dir: str | Path,
        *,
        fsync: Literal["everysec", "always"] = "everysec",
        start_within_s: float = START_WITHIN_S,
        dies_with_us: bool = sys.platform == "linux",
    ) -> None:
        self.data = Path(data_dir).absolute()
        self._fsync, self._within_s = fsync, start_within_s
        self._dies_with_us = dies_with_us
        self._lock: int | None = None
        self._pid: int | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._watcher: Watcher | None = None

    @property
    def is_owner(self) -> bool:
        """Say whether the server ends with this object's `stop`."""
        return self._lock is not None

    def start(self) -> str:
        """Return the URL of a server that answers, starting it if nobody has.

        Raises StoreError when the data directory cannot be used or the server does not come up.
        """
        binary()
        self._make_directory()
        deadline = time.monotonic() + self._within_s
        while time.monotonic() < deadline:
            if self._take_lock():
                return socket_url(str(self._serve()))
            noted = self._noted_socket()
            if noted is not None and ping(noted) is Answer.UP:
                return socket_url(str(noted))
            time.sleep(0.02)
        raise StoreError(
            f"another process owns the data directory {str(self.data)!r}, "
            f"but its server did not answer within {self._within_s:g} s"
        )

    def stop(self) -> None:
        """End the server, if it is ours, and let another process own the directory."""
        if self._pid is not None:
            end(self._pid, self._is_gone)
            remove_socket_folder(self.data)
        self._leave_server()
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def _make_directory(self) -> None:
        try:
            self.data.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise self._unusable(error) from error

    def _take_lock(self) -> bool:
        import fcntl  # not on Windows, where there is no binary either

        if self._lock is not None:
            return True
        try:
            lock = os.open(self.data / "lock", os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as error:
            raise self._unusable(error) from error
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(lock)
            return False
        except OSError as error:
            os.close(lock)
            raise self._unusable(error) from error
        self._lock = lock
        return True

    def _serve(self) -> Path:
        """Bring up the server as the owner of the lock."""
        try:
            path = socket_path(self.data)
            if self._still_serves(path):
                return path
            self._note_socket(path)
            if not self._adopt(path):
                self._launch(path)
        except BaseException:
            self.stop()
            raise
        return path

    def _still_serves(self, path: Path) -> bool:
        """Say whether our server is well; one that is not is ended, so that another may begin."""
        if self._pid is None:
            return False
        wait_for(lambda: self._is_gone() or ping(path) is Answer.UP, self._within_s)
        if not self._is_gone() and ping(path) is Answer.UP:
            return True
        end(self._pid, self._is_gone)
        self._leave_server()
        return False

    def _adopt(self, path: Path) -> bool:
        """Take over the server of an owner that was killed, unless it is on its way out."""
        if ping(path) is Answer.NOBODY:
            return False
        pid = pid_at(path)
        if wait_for(lambda: ping(path) is Answer.NOBODY, ORPHAN_LEAVES_S):
            # It closes its socket when its data is safe; only then may another one begin.
            wait_for(lambda: pid is None or not is_alive(pid), self._within_s)
            return False
        pid = pid or pid_at(path)
        if pid is None:
            raise StoreError(f"a server listens at {str(path)!r} but does not answer")
        self._pid, self._watcher = pid, Watcher(pid)
        return True

    def _launch(self, path: Path) -> None:
        log = self.data / LOG_NAME
        try:
            path.unlink(missing_ok=True)
            before = log.stat().st_size if log.exists() else 0
            server = command(self.data, path, self._fsync)
            process = spawn(server, log, dies_with_us=self._dies_with_us)
        except OSError as error:
            raise self._unusable(error) from error
        self._process, self._pid = process, process.pid
        if not self._dies_with_us:
            self._watcher = Watcher(process.pid)
        # A server that loads a large file listens at once and serves later.
        deadline = time.monotonic() + self._within_s
        while (answer := ping(path)) is not Answer.UP:
            if process.poll() is not None or time.monotonic() > deadline:
                told = _tail(log, before)
                raise StoreError(f"the Valkey in {str(self.data)!r} did not start:\n{told}")
            if answer is Answer.BUSY:
                deadline = time.monotonic() + self._within_s
            time.sleep(0.01)

    def _leave_server(self) -> None:
        """Forget a server that is gone."""
        if self._watcher is not None:
            self._watcher.stop()
        self._watcher = self._process = self._pid = None

    def _is_gone(self) -> bool:
        if self._process is not None:
            return self._process.poll() is not None
        return self._pid is None or not is_alive(self._pid)

    def _note_socket(self, path: Path) -> None:
        assert self._lock is not None
        os.ftruncate(self._lock, 0)
        os.pwrite(self._lock, os.fsencode(path), 0)

    def _noted_socket(self) -> Path | None:
        noted = (self.data / "lock").read_bytes()
        return Path(os.fsdecode(noted)) if noted else None

    def _unusable(self, error: OSError) -> StoreError:
        return StoreError(
            f"the data directory {str(self.data)!r} cannot be used: "
            f"{error.strerror or error}; choose another one, or make it writable"
        )


def socket_path(data: Path) -> Path:
    """Return where the server of a data directory listens; a path of a socket must be short."""
    path = data / "valkey.sock"
    if len(os.fsencode(path)) <= SOCKET_PATH_BYTES:
        return path
    folder = _socket_folder(data)
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        found = folder.lstat()
    except OSError as error:
        raise StoreError(f"a place for a socket cannot be made: {error}") from error
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o077:
        raise StoreError(f"{str(folder)!r} must be a directory that only you can use")
    return folder / "valkey.sock"


def remove_socket_folder(data: Path) -> None:
    """Remove the directory that `socket_path` made for a long path, if it is empty."""
    with suppress(OSError):
        _socket_folder(data).rmdir()


def _socket_folder(data: Path) -> Path:
    name = hashlib.sha256(os.fsencode(data)).hexdigest()[:16]
    return Path(tempfile.gettempdir()) / f"backscroll-{os.getuid()}-{name}"


def _tail(log: Path, start: int) -> str:
    """Return the last lines a server wrote since it was started."""
    with log.open("rb") as file:
        file.seek(start)
        lines = file.read().decode("utf-8", "replace").splitlines()
    return "\n".join(lines[-LOG_TAIL_LINES:])
