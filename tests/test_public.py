"""The public names lead to what they say, and nothing is loaded before it is asked for."""

from __future__ import annotations

import subprocess
import sys

import backscroll
import pytest


def test_every_public_name_is_there() -> None:
    """Each name of `__all__` can be imported and is what its module calls it."""
    for name in backscroll.__all__:
        found = getattr(backscroll, name)
        assert getattr(found, "__name__", name) == name
    assert dir(backscroll) == sorted(backscroll.__all__)


def test_an_unknown_name_says_so() -> None:
    """A misspelt name is an AttributeError like any other."""
    with pytest.raises(AttributeError, match="Agnet"):
        _ = backscroll.Agnet


def test_importing_the_package_loads_no_room() -> None:
    """The names are loaded on first use."""
    code = "import sys, backscroll; print([m for m in sys.modules if m.startswith('backscroll.')])"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=20
    )
    assert done.stdout.strip() == "[]"
