"""Real processes for tests: started on free ports, waited for, ended by their own pid."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Self
from uuid import uuid4

import httpx
import pytest
from deadlines import scaled, wait_until

ROOT = Path(__file__).resolve().parent.parent
PROGRAMS = Path(__file__).resolve().parent / "programs"


def free_port() -> int:
    """Return a TCP port of the loopback that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def child_env(own: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of a child: this process's with its own, module paths joined."""
    paths = [own.get("PYTHONPATH"), os.environ.get("PYTHONPATH")]
    joined = os.pathsep.join(filter(None, paths))
    return {**os.environ, **own, **({"PYTHONPATH": joined} if joined else {})}


class HttpProcess:
    """A program that serves HTTP on a port of its own; use it as a context manager."""

    ready_path = "/readyz"
    ready_within_s = 15.0
    stop_within_s = 12.0

    def __init__(
        self, command: Sequence[str], port: int, *, env: Mapping[str, str], cwd: Path | None = None
    ) -> None:
        """Keep what to start; nothing runs before `start`."""
        self.command, self.port = list(command), port
        self.env, self.cwd = dict(env), cwd
        self.url, self.ws_url = f"http://127.0.0.1:{port}", f"ws://127.0.0.1:{port}"
        self._log = Path(tempfile.gettempdir()) / f"process-{uuid4().hex}.log"
        self._printed = ""
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        """The process id of the running process."""
        assert self._process is not None, "the process has not been started"
        return self._process.pid

    def start(self) -> Self:
        """Start the process and return when it says that it is ready."""
        assert self._process is None, "the process runs already"
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                self.command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=child_env(self.env),
                cwd=self.cwd,
                start_new_session=True,
            )
        try:
            self.wait_ready()
        except BaseException:
            self.stop()
            raise
        return self

    def wait_ready(self) -> None:
        """Return when the process answers; fail with its output when it dies or is too slow."""
        with httpx.Client(trust_env=False, timeout=scaled(2)) as client:

            def answers() -> bool:
                assert self.exit_status() is None, f"the process ended:\n{self.output()}"
                try:
                    return client.get(self.url + self.ready_path).status_code == 200
                except httpx.TransportError:
                    return False

            try:
                wait_until(answers, self.ready_within_s, f"{self.url}{self.ready_path} answers")
            except AssertionError as error:
                raise AssertionError(f"{error}\n{self.command}\n{self.output()}") from None

    def output(self, last: int = 8000) -> str:
        """Return the last characters of what the process printed."""
        if self._log.exists():
            self._printed = self._log.read_text(encoding="utf-8", errors="replace")
        return self._printed[-last:]

    def exit_status(self) -> int | None:
        """Return the exit status, None while the process runs."""
        return None if self._process is None else self._process.poll()

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to this one process."""
        os.kill(self.pid, number)

    def wait(self, within_s: float | None = None) -> int:
        """Return the exit status of a process that was told to end."""
        assert self._process is not None, "the process has not been started"
        return self._process.wait(timeout=scaled(within_s or self.stop_within_s))

    def kill(self) -> None:
        """End the process at once, as a crash would."""
        if self._process is not None:
            self._process.kill()
            self._forget()

    def stop(self) -> None:
        """Ask the process to end; kill it when it does not within the deadline."""
        if self._process is None:
            return
        self._process.terminate()
        try:
            self._process.wait(timeout=scaled(self.stop_within_s))
        except subprocess.TimeoutExpired:
            self._process.kill()
        self._forget()

    def _forget(self) -> None:
        """Take leave of an ended process; what it printed stays readable."""
        assert self._process is not None
        self._process.wait(timeout=scaled(10))
        self._process = None
        self.output()
        self._log.unlink(missing_ok=True)

    def __enter__(self) -> Self:
        """Start, unless it runs already."""
        return self if self._process is not None else self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Stop; after a failure show what the process had printed."""
        self.stop()
        if error is not None and self.output().strip():
            error.add_note(f"--- {self.command[0]} on port {self.port} ---\n{self.output()}")


class ServerProcess(HttpProcess):
    """`backscroll serve` as an operator starts it."""

    def __init__(
        self,
        agent: str | None = None,
        *,
        data_dir: Path | None = None,
        redis_url: str | None = None,
        workers: int = 1,
        port: int | None = None,
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
    ) -> None:
        """Serve `module:attribute`, or the demo agent, from a data directory or a Redis."""
        port = port or free_port()
        command = [str(Path(sys.executable).with_name("backscroll")), "serve"]
        command += [agent] if agent else []
        command += ["--host", "127.0.0.1", "--port", str(port), "--workers", str(workers)]
        command += ["--data-dir", str(data_dir)] if data_dir else []
        command += ["--redis-url", redis_url] if redis_url else []
        super().__init__(command, port, env=env or {}, cwd=cwd)


class LlamaProcess(HttpProcess):
    """A real llama.cpp server with SmolLM2; ask `needs("model")` first."""

    ready_path = "/health"
    ready_within_s = 60.0

    def __init__(self, *, n_ctx: int = 2048, n_parallel: int = 1, port: int | None = None) -> None:
        """Serve the model with a context window of `n_ctx` tokens per parallel request."""
        port = port or free_port()
        program = str(PROGRAMS / "llama_server.py")
        command = [sys.executable, program, "--port", str(port)]
        command += ["--n-ctx", str(n_ctx), "--n-parallel", str(n_parallel)]
        super().__init__(command, port, env={})


@pytest.fixture
def two_workers(
    valkey_url: str, request: pytest.FixtureRequest
) -> Iterator[tuple[ServerProcess, ServerProcess]]:
    """Give two server processes on two ports that share one Redis.

    Parametrise indirectly with an agent (`module:attribute`) to serve another than the demo.
    """
    agent = getattr(request, "param", None)
    env = {"BACKSCROLL_KEY_PREFIX": f"test-{uuid4().hex[:12]}"}
    with ExitStack() as stack:
        first, second = (
            stack.enter_context(ServerProcess(agent, redis_url=valkey_url, env=env))
            for _ in range(2)
        )
        yield first, second
