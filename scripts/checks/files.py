"""The files of the project, as git sees them."""

from __future__ import annotations

import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def tracked() -> list[Path]:
    """Return every file that is, or would be, committed; paths relative to the root."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, check=True).stdout
    names = (name for name in listed.decode().split("\0") if name)
    return sorted({Path(name) for name in names if (ROOT / name).is_file()})


def text(path: Path) -> str | None:
    """Return the text of a file, None when it is not text."""
    try:
        return (ROOT / path).read_text(encoding="utf-8")
    except UnicodeDecodeError:
        return None
