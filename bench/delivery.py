"""What one event costs from the demo model through Redis to one WebSocket client.

Two servers run one after the other on this machine: ours, with the embedded Valkey, and a raw
uvicorn WebSocket that sends prebuilt frames of the same size. Both figures come from the same run,
so their ratio means something where the machine's speed does not. CPU is that of the server process
and of Valkey; the client's is not counted. Compression is off.

    python bench/delivery.py [--words 20000] [--runs 3] [--json FILE]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from urllib.request import urlopen

import psutil
import websockets

HERE = Path(__file__).resolve().parent
START_S = 20.0
RUN_S = 120.0


@dataclass(frozen=True)
class Measured:
    """One run: how many events of which size, how long it took, what it cost."""

    events: int
    bytes_per_event: float
    seconds: float
    server_cpu_us: float
    valkey_cpu_us: float = 0.0

    @property
    def per_second(self) -> float:
        """Events per second of wall time."""
        return self.events / self.seconds


def main() -> None:
    """Run both sides, print a table, and write the figures as JSON if asked."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--words", type=int, default=20_000)
    options.add_argument("--runs", type=int, default=3)
    options.add_argument("--json", type=Path)
    asked = options.parse_args()
    ours = asyncio.run(measure_ours(asked.words, asked.runs, coalesce=16))
    single = asyncio.run(measure_ours(asked.words // 4, asked.runs, coalesce=1))
    raw = asyncio.run(measure_raw(ours, asked.runs))
    report = figures(asked.words, ours, single, raw)
    show(report)
    if asked.json:
        asked.json.write_text(json.dumps(report, indent=1) + "\n")


def figures(
    words: int, ours: list[Measured], single: list[Measured], raw: list[Measured]
) -> dict[str, object]:
    """Return medians and ratios."""

    def median(runs: list[Measured], name: str) -> float:
        return statistics.median(float(getattr(run, name)) for run in runs)

    cost = median(ours, "server_cpu_us") + median(ours, "valkey_cpu_us")
    alone = median(single, "server_cpu_us") + median(single, "valkey_cpu_us")
    base = median(raw, "server_cpu_us")
    return {
        "words": words,
        "events": ours[0].events,
        "words_per_event": round(words / ours[0].events, 2),
        "bytes_per_event": round(ours[0].bytes_per_event, 1),
        "events_per_second": round(median(ours, "per_second")),
        "words_per_second": round(words / median(ours, "seconds")),
        "server_cpu_us_per_event": round(median(ours, "server_cpu_us"), 1),
        "valkey_cpu_us_per_event": round(median(ours, "valkey_cpu_us"), 1),
        "uncoalesced_events_per_second": round(median(single, "per_second")),
        "uncoalesced_cpu_us_per_event": round(alone, 1),
        "raw_events_per_second": round(median(raw, "per_second")),
        "raw_cpu_us_per_event": round(base, 1),
        "ratio_cpu_per_event": round(cost / base, 1),
        "ratio_cpu_per_event_uncoalesced": round(alone / base, 1),
        "ratio_cpu_per_word": round(cost * ours[0].events / words / base, 2),
        "runs": [asdict(run) for run in (*ours, *single, *raw)],
    }


def show(report: dict[str, object]) -> None:
    """Print the figures but the single runs."""
    for name, value in report.items():
        if name != "runs":
            sys.stdout.write(f"{name:36} {value}\n")


async def measure_ours(words: int, runs: int, coalesce: int) -> list[Measured]:
    """Measure runs of the bench agent on one worker; the first one warms up and is left out."""
    env = {
        "BENCH_WORDS": str(words),
        "BENCH_RUNS": str(runs + 1),
        "BACKSCROLL_COALESCE_DELTAS": str(coalesce),
        "PYTHONPATH": str(HERE),
    }
    with tempfile.TemporaryDirectory() as data:
        command = [str(Path(sys.executable).with_name("backscroll")), "serve"]
        command += ["delivery_agent:agent", "--data-dir", data, "--port"]
        with server(command, env) as (port, process):
            valkey = next(c for c in process.children() if "valkey" in c.name())
            found = [await run_ours(port, n, process, valkey) for n in range(runs + 1)]
    return found[1:]


async def run_ours(
    port: int, number: int, server: psutil.Process, valkey: psutil.Process
) -> Measured:
    """Measure one run over a bare socket, from the request to the terminal event."""
    request = {
        "threadId": f"bench-{number}",
        "runId": f"run-{number}",
        "messages": [{"id": "u1", "role": "user", "content": "go"}],
        "tools": [],
        "context": [],
        "protocolVersion": "1.0",
    }
    before, stored = cpu_us(server), cpu_us(valkey)
    began = time.perf_counter()
    events = size = 0
    async with (
        asyncio.timeout(RUN_S),
        websockets.connect(f"ws://127.0.0.1:{port}/agui", compression=None) as socket_,
    ):
        await socket_.send(json.dumps(request))
        async for frame in socket_:
            events += 1
            size += len(frame)
            if '"type":"RUN_FINISHED"' in frame[:40]:
                break
            if '"type":"RUN_ERROR"' in frame[:40]:
                raise SystemExit(f"the run failed: {frame!r}")
    seconds = time.perf_counter() - began
    return Measured(
        events,
        size / events,
        seconds,
        (cpu_us(server) - before) / events,
        (cpu_us(valkey) - stored) / events,
    )


async def measure_raw(ours: list[Measured], runs: int) -> list[Measured]:
    """Measure as many frames of the same size from the yardstick."""
    count, size = max(ours[0].events, 20_000), round(ours[0].bytes_per_event)
    found: list[Measured] = []
    with server([sys.executable, str(HERE / "raw_socket.py")], {}) as (port, process):
        for _ in range(runs + 1):
            before, began = cpu_us(process), time.perf_counter()
            got = 0
            async with (
                asyncio.timeout(RUN_S),
                websockets.connect(f"ws://127.0.0.1:{port}/", compression=None) as socket_,
            ):
                await socket_.send(f"{count} {size}")
                async for _frame in socket_:
                    got += 1
            seconds = time.perf_counter() - began
            found.append(Measured(got, size, seconds, (cpu_us(process) - before) / got))
    return found[1:]


def cpu_us(process: psutil.Process) -> float:
    """Return the CPU time a process has used, in microseconds."""
    times = process.cpu_times()
    return float(times.user + times.system) * 1e6


@contextmanager
def server(command: list[str], env: dict[str, str]) -> Iterator[tuple[int, psutil.Process]]:
    """Run a server on a free port, whose number is put behind the command."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    process = subprocess.Popen(
        [*command, str(port)], env={**os.environ, **env}, stdout=subprocess.DEVNULL
    )
    try:
        wait_for(port, process)
        yield port, psutil.Process(process.pid)
    finally:
        process.terminate()
        process.wait(timeout=20)


def wait_for(port: int, process: subprocess.Popen[bytes]) -> None:
    """Return when the server says that it is ready."""
    deadline = time.monotonic() + START_S
    while time.monotonic() < deadline and process.poll() is None:
        try:
            with urlopen(f"http://127.0.0.1:{port}/readyz", timeout=2):
                return
        except OSError:
            time.sleep(0.05)
    raise SystemExit("the server did not come up")


if __name__ == "__main__":
    main()
