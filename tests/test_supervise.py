"""Several worker processes on one listening socket."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import psutil
import pytest
from backscroll import supervise as module
from backscroll.supervise import Workers
from backscroll.web.serving import listen
from deadlines import wait_until


@contextmanager
def beside(work: Callable[[], None]) -> Iterator[None]:
    """Do something in a thread while this one, which signals reach, supervises."""
    failed: list[BaseException] = []

    def doing() -> None:
        try:
            work()
        except BaseException as error:
            failed.append(error)
        finally:
            os.kill(os.getpid(), signal.SIGTERM)

    thread = threading.Thread(target=doing)
    thread.start()
    yield
    thread.join(30)
    if failed:
        raise failed[0]


def environment(valkey_url: str, prefix: str, **more: str) -> dict[str, str]:
    """Return the settings of workers as variables."""
    names = {"redis_url": valkey_url, "key_prefix": prefix, "agent": "demo", "drain_s": "1", **more}
    return {f"BACKSCROLL_{name.upper()}": value for name, value in names.items()}


def names_of(port: int) -> set[str]:
    """Return the workers that the system knows."""
    url = f"http://127.0.0.1:{port}/console/api/system"
    try:
        answer = httpx.get(url, trust_env=False, timeout=5).json()
    except httpx.TransportError:
        return set()
    return {worker["worker"] for worker in answer["workers"]}


def children() -> list[psutil.Process]:
    """Return the worker processes of this process."""
    found = [p for p in psutil.Process().children() if p.status() != psutil.STATUS_ZOMBIE]
    return [p for p in found if "worker" in p.cmdline()]


def test_workers_serve_are_replaced_and_end_together(valkey_url: str, prefix: str) -> None:
    """All take requests on the one socket; a killed one is replaced; a signal ends all."""
    ready: list[int] = []
    seen: list[Any] = []
    with listen("127.0.0.1", 0) as listener:
        port = listener.getsockname()[1]

        def use() -> None:
            wait_until(lambda: len(names_of(port)) == 2, 20, "both workers are there")
            seen.extend(children())
            seen[0].kill()
            killed = seen[0].pid
            wait_until(
                lambda: len([p for p in children() if p.pid != killed]) == 2, 20, "it is replaced"
            )
            # The killed one is known for a minute after its last sign of life.
            wait_until(lambda: len(names_of(port)) == 3, 20, "the new one is there")
            seen.extend(children())

        variables = environment(valkey_url, prefix)
        workers = Workers(2, listener, variables, lambda: ready.append(1), 1)
        with beside(use):
            status = workers.run()

    assert (status, ready) == (0, [1])
    assert not [p for p in seen if p.is_running() and p.status() != psutil.STATUS_ZOMBIE]


def test_no_worker_can_start(caplog: pytest.LogCaptureFixture) -> None:
    """The status says so, and nobody was told that it is ready."""
    with listen("127.0.0.1", 0) as listener:
        variables = {"BACKSCROLL_AGENT": "nowhere:agent", "BACKSCROLL_REDIS_URL": "redis://x"}
        status = Workers(1, listener, variables, lambda: pytest.fail("not ready"), 0).run()

    assert status == 1 and "no worker could start" in caplog.text


class FakeProcess:
    """A process that has ended, or has not, as a test says."""

    pid = 7

    def __init__(self, status: int | None) -> None:
        self.status, self.signals, self.killed = status, [], False  # type: ignore[var-annotated]

    def poll(self) -> int | None:
        """Return how it ended."""
        return self.status

    def send_signal(self, number: signal.Signals) -> None:
        """Keep a signal."""
        self.signals.append(number)

    def wait(self, timeout: float | None = None) -> int:
        """End only by a kill."""
        if self.status is None and not self.killed:
            raise subprocess.TimeoutExpired("x", timeout or 0)
        return 0

    def kill(self) -> None:
        """End."""
        self.killed = True


def workers_with(*places: module._Place) -> Workers:
    """Return workers at these places, which start nothing by themselves."""
    workers = Workers(len(places), socket.socket(), {}, lambda: None, -5.0)
    workers._listener.close()
    workers._places = list(places)
    return workers


def place(status: int | None, started: float) -> module._Place:
    """Return the place of a process."""
    process: Any = FakeProcess(status)
    return module._Place(process, started)


def test_a_worker_that_keeps_dying_is_started_ever_later(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Half a second, one, two, five; one that had run for long starts at once."""
    now = [1000.0]
    monkeypatch.setattr(module.time, "monotonic", lambda: now[0])
    one = place(1, 999.0)
    workers = workers_with(one)
    started: list[float] = []

    def start(ready_fd: int) -> Any:
        started.append(now[0])
        return FakeProcess(1), now[0]

    monkeypatch.setattr(workers, "_start", start)
    while len(started) < 5:
        workers._replace(one, 0)
        now[0] += 0.1
    pauses = [b - a for a, b in zip([1000.0, *started], started, strict=False)]
    one.started -= 60
    workers._replace(one, 0)

    wanted = (0.5, 1.0, 2.0, 5.0, 5.0)
    assert all(w <= p < w + 0.2 for w, p in zip(wanted, pauses, strict=True)), pauses
    assert one.failures == 0
    assert len(caplog.records) == 6


def test_a_living_worker_is_let_be(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is started beside it."""
    one = place(None, 0)
    workers = workers_with(one)
    monkeypatch.setattr(workers, "_start", lambda fd: pytest.fail("started"))

    workers._replace(one, 0)

    assert one.again_at is None


def test_a_second_signal_is_passed_on() -> None:
    """Whoever insists does not wait for the drain of the workers."""
    one, two = place(None, 0), place(0, 0)
    workers = workers_with(one, two)

    workers._stop(signal.SIGINT, None)
    workers._stop(signal.SIGINT, None)

    processes: list[Any] = [one.process, two.process]
    assert [p.signals for p in processes] == [[signal.SIGTERM], []]


def test_a_worker_that_does_not_end_is_killed() -> None:
    """After the time for draining and leaving."""
    one = place(None, 0)
    workers_with(one)._end_all()

    process: Any = one.process
    assert process.killed and process.signals == [signal.SIGTERM]


CHILD = """
import os, sys, time
from backscroll.supervise import end_with_parent
end_with_parent(int(sys.argv[1]) or os.getppid(), sys.argv[2])
print(os.getpid(), flush=True)
time.sleep(60)
"""

PARENT = """
import subprocess, sys
subprocess.Popen([sys.executable, "-c", sys.argv[1], "0", sys.argv[2]]).wait()
"""


@pytest.mark.parametrize("platform", [sys.platform, "darwin"])
def test_a_worker_ends_with_its_parent(platform: str) -> None:
    """Also when the parent is killed, and on systems that do not tell of it."""
    command = [sys.executable, "-c", PARENT, CHILD, platform]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        child = psutil.Process(int(parent.stdout.readline()))
        parent.kill()
        wait_until(
            lambda: not child.is_running() or child.status() == psutil.STATUS_ZOMBIE,
            10,
            "the child is gone",
        )


@pytest.mark.parametrize("platform", ["linux", "darwin"])
def test_a_worker_without_its_parent_leaves_at_once(platform: str) -> None:
    """The parent may have died before the system was asked to tell."""
    if platform == "linux" and sys.platform != "linux":
        pytest.skip("there is no such call here")
    command = [sys.executable, "-c", CHILD, "1", platform]

    left = subprocess.run(command, capture_output=True, timeout=30)

    assert (left.returncode, left.stdout) == (1, b"")


def test_the_watch_ends_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """As soon as the parent is another one."""
    ended: list[tuple[int, int]] = []
    parents = [7, 7, 1]
    monkeypatch.setattr(module.time, "sleep", lambda _: None)
    monkeypatch.setattr(module.os, "getppid", lambda: parents.pop(0))
    monkeypatch.setattr(module.os, "kill", lambda *args: ended.append(args))

    module._watch(7)

    assert ended == [(os.getpid(), signal.SIGTERM)] and parents == []


@pytest.mark.parametrize("platform", ["linux", "darwin"])
def test_a_worker_of_its_parent_goes_on(monkeypatch: pytest.MonkeyPatch, platform: str) -> None:
    """Either the system will tell, or the watch is on."""
    asked: list[Any] = []

    class System:
        def __init__(self, *_: Any, **__: Any) -> None:
            self.prctl = lambda *args: asked.append(args)

    class Thread:
        def __init__(self, *, target: Any, args: Any, daemon: bool) -> None:
            self.start = lambda: asked.append((target, args, daemon))

    monkeypatch.setattr(module.ctypes, "CDLL", System)
    monkeypatch.setattr(module.threading, "Thread", Thread)
    module.end_with_parent(os.getppid(), platform)

    told = (1, signal.SIGTERM) if platform == "linux" else (module._watch, (os.getppid(),), True)
    assert asked == [told]
