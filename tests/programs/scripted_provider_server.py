"""Run the scripted provider as a process of its own until SIGTERM."""

from __future__ import annotations

import argparse
import asyncio
import signal
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from scripted_provider import ProviderServer


async def main() -> None:
    """Serve on the given port."""
    options = argparse.ArgumentParser()
    options.add_argument("--port", type=int, required=True)
    server = ProviderServer()
    await server.start(options.parse_args().port)
    stopped = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopped.set)
    await stopped.wait()
    await server.stop()


if __name__ == "__main__":
    asyncio.run(main())
