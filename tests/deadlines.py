"""Waiting for a condition, with a deadline that a slow machine can stretch."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

SCALE = float(os.environ.get("BACKSCROLL_TEST_SCALE", "1"))


def scaled(seconds: float) -> float:
    """Return a deadline stretched by BACKSCROLL_TEST_SCALE."""
    return seconds * SCALE


def wait_until(condition: Callable[[], bool], within_s: float, what: str) -> None:
    """Return as soon as the condition holds; fail with a sentence when the deadline passes."""
    deadline = time.monotonic() + scaled(within_s)
    pause = threading.Event()
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError(f"expected within {scaled(within_s):g} s: {what}")
        pause.wait(0.02)


def stretch_limits(items: Iterable[pytest.Item], folder: Path) -> None:
    """Stretch what the tests of a folder may take in all, as every deadline in them is."""
    for item in items:
        if SCALE == 1 or not item.path.is_relative_to(folder):
            continue
        mark = item.get_closest_marker("timeout")
        seconds = float(mark.args[0] if mark else item.config.getini("timeout"))
        item.add_marker(pytest.mark.timeout(scaled(seconds)), append=False)


def growth(small: Callable[[], object], large: Callable[[], object], tries: int = 3) -> float:
    """Return how many times the CPU of one piece of work another takes, at best of some tries.

    A ratio of two measurements in one run: other load on the machine does not count.
    """

    def cost(work: Callable[[], object]) -> float:
        began = time.process_time()
        work()
        return time.process_time() - began

    return min(cost(large) / max(cost(small), 1e-4) for _ in range(tries))
