"""The kernel knows nothing of what is built on it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOMS = Path(__file__).parents[2] / "server" / "backscroll"

PROBE = """
import pkgutil, sys, importlib
import backscroll.kernel as kernel
for found in pkgutil.iter_modules(kernel.__path__):
    importlib.import_module(f"backscroll.kernel.{found.name}")
rooms = "agent filters providers compaction store web conversation runs agui".split()
bad = [m for m in sys.modules if m.split(".")[:2] in [["backscroll", r] for r in rooms]]
bad += [m for m in ("redis", "httpx", "starlette", "ag_ui") if m in sys.modules]
print(bad)
"""


def test_importing_the_kernel_loads_no_other_room() -> None:
    """LAY1: a fresh interpreter that imports all of the kernel has loaded nothing above it."""
    done = subprocess.run(
        [sys.executable, "-c", PROBE], capture_output=True, text=True, check=True, timeout=20
    )

    assert done.stdout.strip() == "[]"


def test_the_kernel_does_not_speak_of_memory() -> None:
    """LAY2: the word ChatMemory occurs in no file of the kernel."""
    for path in (ROOMS / "kernel").glob("*.py"):
        assert "ChatMemory" not in path.read_text(), path.name


def test_rooms_hold_only_a_docstring() -> None:
    """LAY3: the __init__ of a room has nothing but its sentence."""
    for path in ROOMS.glob("*/__init__.py"):
        lines = [line for line in path.read_text().splitlines() if line.strip()]
        assert len(lines) == 1 and lines[0].startswith('"""'), path
