"""Backscroll: an AG-UI backend for chat agents whose every conversation is a log in Redis."""

from __future__ import annotations

from importlib import import_module
from typing import Any

__version__ = "0.1.0"

# Public name -> module. Loaded on first use, because importing any room runs this file first.
_HOMES: dict[str, str] = {
    "Agent": "backscroll.agent.agent",
    "Compaction": "backscroll.compaction.filter",
    "Filter": "backscroll.kernel.filter",
    "Message": "backscroll.kernel.message",
    "tool": "backscroll.kernel.tool",
}

__all__ = ["__version__", *sorted(_HOMES)]


def __getattr__(name: str) -> Any:  # Any: a public name may be any object
    """Import a public name from its room when it is first asked for."""
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'backscroll' has no attribute {name!r}")
    return getattr(import_module(home), name)


def __dir__() -> list[str]:
    """List the public names, loaded or not."""
    return sorted(__all__)
