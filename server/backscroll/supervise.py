"""Several worker processes on one listening socket: start, replace, and end them together."""

from __future__ import annotations

import ctypes
import logging
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from types import FrameType

logger = logging.getLogger(__name__)

POLL_S = 0.1
RESTART_S = (0.0, 0.5, 1.0, 2.0, 5.0)
STEADY_S = 30.0
LEAVE_S = 5.0
_PR_SET_PDEATHSIG = 1


class Workers:
    """A fixed number of worker processes; a dead one is replaced, all end with this process."""

    def __init__(
        self,
        count: int,
        listener: socket.socket,
        environment: Mapping[str, str],
        on_ready: Callable[[], None],
        drain_s: float,
    ) -> None:
        self._count, self._listener = count, listener
        self._environment = {**os.environ, **environment}
        self._on_ready, self._drain_s = on_ready, drain_s
        self._running: dict[int, tuple[subprocess.Popen[bytes], float]] = {}
        self._failures = [0] * count
        self._stopping = False

    def run(self) -> int:
        """Run until a signal; returns the exit status."""
        previous = {
            number: signal.signal(number, self._stop) for number in (signal.SIGINT, signal.SIGTERM)
        }
        read_end, write_end = os.pipe()
        os.set_inheritable(write_end, True)
        try:
            for place in range(self._count):
                self._start(place, write_end)
            self._await_ready(read_end)
            while not self._stopping:
                self._replace_dead(write_end)
                time.sleep(POLL_S)
            return 0
        finally:
            os.close(write_end)
            os.close(read_end)
            self._end_all()
            for number, handler in previous.items():
                signal.signal(number, handler)

    def _start(self, place: int, ready_fd: int) -> None:
        fds: Sequence[int] = (self._listener.fileno(), ready_fd)
        process = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "backscroll",
                "worker",
                f"--listen-fd={self._listener.fileno()}",
                f"--ready-fd={ready_fd}",
                f"--parent={os.getpid()}",
            ],
            env=self._environment,
            pass_fds=fds,
            # A Ctrl-C in the terminal reaches only this process, which then ends them in order.
            start_new_session=True,
        )
        self._running[place] = (process, time.monotonic())

    def _await_ready(self, read_end: int) -> None:
        os.set_blocking(read_end, False)
        while not self._stopping:
            try:
                if os.read(read_end, 1):
                    self._on_ready()
                    return
            except BlockingIOError:
                pass
            if all(process.poll() is not None for process, _ in self._running.values()):
                logger.error("no worker could start")
                self._stopping = True
            time.sleep(POLL_S)

    def _replace_dead(self, ready_fd: int) -> None:
        for place, (process, started) in list(self._running.items()):
            status = process.poll()
            if status is None:
                continue
            alive = time.monotonic() - started
            self._failures[place] = 0 if alive > STEADY_S else self._failures[place] + 1
            pause = RESTART_S[min(self._failures[place], len(RESTART_S) - 1)]
            logger.warning("worker %s ended with status %s; another starts", process.pid, status)
            if alive >= pause:
                self._start(place, ready_fd)

    def _stop(self, number: int, frame: FrameType | None) -> None:
        self._stopping = True

    def _end_all(self) -> None:
        for process, _ in self._running.values():
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
        deadline = time.monotonic() + self._drain_s + LEAVE_S
        for process, _ in self._running.values():
            try:
                process.wait(max(0.1, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def end_with_parent(parent: int) -> None:
    """Have the system end this process when its parent dies; leave at once if it already has."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != parent:
        sys.exit(1)
