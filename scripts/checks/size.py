"""No module passes 600 lines and no function 60; beyond 300 lines we look for two ideas."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from pathlib import Path

from files import text

LAW, AIM, FUNCTION = 600, 300, 60
CODE = {".py", ".js", ".mjs", ".css", ".lua"}


def _lines(files: Sequence[Path]) -> Iterator[tuple[Path, int]]:
    for path in files:
        if path.suffix in CODE:
            yield path, len((text(path) or "").splitlines())


def notes(files: Sequence[Path]) -> list[str]:
    """Return files that are longer than we aim for."""
    return [f"{path}: {lines} lines" for path, lines in _lines(files) if AIM < lines <= LAW]


def findings(files: Sequence[Path]) -> list[str]:
    """Return files and functions that are longer than we allow."""
    found = [
        f"{path}: {lines} lines, allowed {LAW}" for path, lines in _lines(files) if lines > LAW
    ]
    for path in files:
        if path.suffix != ".py" or path.parts[0] != "server":
            continue
        for node in ast.walk(ast.parse(text(path) or "")):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                lines = (node.end_lineno or 0) - node.lineno + 1
                if lines > FUNCTION:
                    found.append(f"{path}:{node.lineno}: {node.name} has {lines} lines")
    return found
