"""Every public thing of the server has a sentence, and so has every test."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from pathlib import Path

from files import text

Named = ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


def _overloaded(node: Named) -> bool:
    return any(isinstance(mark, ast.Name) and mark.id == "overload" for mark in node.decorator_list)


def _public(body: Sequence[ast.stmt], prefix: str = "") -> Iterator[tuple[str, Named]]:
    for node in body:
        if not isinstance(node, Named) or node.name.startswith("_") or _overloaded(node):
            continue
        yield prefix + node.name, node
        if isinstance(node, ast.ClassDef):
            yield from _public(node.body, f"{prefix}{node.name}.")


def findings(files: Sequence[Path]) -> list[str]:
    """Return public things without a docstring."""
    found = []
    for path in files:
        is_test = path.parts[0] in ("tests", "e2e") and path.name.startswith("test_")
        if path.suffix != ".py" or not (path.parts[0] in ("server", "scripts") or is_test):
            continue
        tree = ast.parse(text(path) or "")
        if not ast.get_docstring(tree):
            found.append(f"{path}:1: the module has no docstring")
        found += [
            f"{path}:{node.lineno}: {name} has no docstring"
            for name, node in _public(tree.body)
            if not ast.get_docstring(node) and (not is_test or node.name.startswith("test_"))
        ]
    return found
