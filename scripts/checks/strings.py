"""Strings that must not be committed: places of one machine, registries, notes to self."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from files import text

# Each pattern is written so that it does not match itself.
FORBIDDEN = {
    r"(?<![\w.])/(?:work|farm)[/](?!\*)": "a path of one machine",
    r"\.\.[/]shared\b": "a path outside the project",
    r"(?:pypi|pythonhosted)[.]org|registry[.]npmjs|deb[.]debian[.]org": "a package registry",
    r"\b(?:TO[D]O|FIX[M]E|XX[X])\b": "a note to self",
}
LOCKS = {"uv.lock", "package-lock.json", "poetry.lock", "yarn.lock"}


def findings(files: Sequence[Path]) -> list[str]:
    """Return each forbidden string with its place."""
    found = [f"{path}: lock files name registries" for path in files if path.name in LOCKS]
    for path in files:
        for number, line in enumerate((text(path) or "").splitlines(), start=1):
            for pattern, what in FORBIDDEN.items():
                if re.search(pattern, line):
                    found.append(f"{path}:{number}: {what}: {line.strip()[:80]}")
            if "kernel" in path.parts and path.parts[0] == "server" and "Chat" + "Memory" in line:
                found.append(f"{path}:{number}: the kernel knows no memory")
    return found
