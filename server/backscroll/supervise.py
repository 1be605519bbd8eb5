"""Several worker processes on one listening socket: start, replace, and end them together."""

from __future__ import annotations

import ctypes
import logging
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import FrameType

logger = logging.getLogger(__name__)

POLL_S = 0.1
RESTART_S = (0.0, 0.5, 1.0, 2.0, 5.0)
STEADY_S = 30.0
LEAVE_S = 5.0
_PR_SET_PDEATHSIG = 1


@dataclass(slots=True)
class _Place:
    """One of the workers: its process, how often it died young, when it is started again."""

    process: subprocess.Popen[bytes]
    started: float
    failures: int = 0
    again_at: float | None = None


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
        self._places: list[_Place] = []
        self._stopping = False

    def run(self) -> int:
        """Run until a signal; returns the exit status, 1 when no worker could start."""
        previous = {
            number: signal.signal(number, self._stop) for number in (signal.SIGINT, signal.SIGTERM)
        }
        read_end, write_end = os.pipe()
        os.set_inheritable(write_end, True)
        try:
            self._places = [_Place(*self._start(write_end)) for _ in range(self._count)]
            if not self._await_ready(read_end):
                return 1
            while not self._stopping:
                for place in self._places:
                    self._replace(place, write_end)
                time.sleep(POLL_S)
            return 0
        finally:
            os.close(write_end)
            os.close(read_end)
            self._end_all()
            for number, handler in previous.items():
                signal.signal(number, handler)

    def _start(self, ready_fd: int) -> tuple[subprocess.Popen[bytes], float]:
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
        return process, time.monotonic()

    def _await_ready(self, read_end: int) -> bool:
        """Return once a worker takes requests; False when none could start."""
        os.set_blocking(read_end, False)
        while not self._stopping:
            try:
                if os.read(read_end, 1):
                    self._on_ready()
                    return True
            except BlockingIOError:
                pass
            if all(place.process.poll() is not None for place in self._places):
                logger.error("no worker could start")
                return False
            time.sleep(POLL_S)
        return True

    def _replace(self, place: _Place, ready_fd: int) -> None:
        """Start another process where one has died, after a pause that grows with each."""
        status = place.process.poll()
        if status is None:
            return
        now = time.monotonic()
        if place.again_at is None:
            is_steady = now - place.started > STEADY_S
            place.failures = 0 if is_steady else place.failures + 1
            pause = RESTART_S[min(place.failures, len(RESTART_S) - 1)]
            place.again_at = now + pause
            logger.warning(
                "worker %s ended with status %s; another starts in %s s",
                place.process.pid,
                status,
                pause,
            )
        if now >= place.again_at:
            place.process, place.started = self._start(ready_fd)
            place.again_at = None

    def _stop(self, number: int, frame: FrameType | None) -> None:
        """Begin to leave; a second signal is passed on, and tells the workers not to drain."""
        if self._stopping:
            self._signal_all(signal.SIGTERM)
        self._stopping = True

    def _signal_all(self, number: signal.Signals) -> None:
        for place in self._places:
            if place.process.poll() is None:
                place.process.send_signal(number)

    def _end_all(self) -> None:
        self._signal_all(signal.SIGTERM)
        deadline = time.monotonic() + self._drain_s + LEAVE_S
        for place in self._places:
            try:
                place.process.wait(max(0.1, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                place.process.kill()
                place.process.wait()


def end_with_parent(parent: int, platform: str = sys.platform) -> None:
    """Have this process end when its parent dies; leave at once if it already has."""
    if platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != parent:
        sys.exit(1)
    if platform != "linux":
        # Elsewhere the system does not tell, so a thread of its own looks.
        threading.Thread(target=_watch, args=(parent,), daemon=True).start()


def _watch(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(1)
    os.kill(os.getpid(), signal.SIGTERM)
