"""Third-party imports that the import contracts cannot express: who may import what at all."""

from __future__ import annotations

import ast
import sys
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path

from files import ROOT, text

KERNEL = {"pydantic", "pydantic_core", "jsonschema", "referencing"}
# Import name -> name of the distribution, where they differ.
DISTRIBUTIONS = {"ag_ui": "ag-ui-protocol", "pydantic_core": "pydantic", "rs_bpe": "rs-bpe"}


def _declared() -> set[str]:
    """Return the distributions that pyproject.toml declares for running."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    lines = [*project["dependencies"], *extras["mcp"], *extras["tokens"]]
    return {line.split(">")[0].split("[")[0].strip() for line in lines}


def _imported(tree: ast.AST) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name.split(".")[0]) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.lineno, node.module.split(".")[0]


def findings(files: Sequence[Path]) -> list[str]:
    """Return imports of packages that are not declared, or not allowed in the kernel."""
    declared = _declared()
    own = {"backscroll", *sys.stdlib_module_names}
    found = []
    for path in files:
        if path.suffix != ".py" or path.parts[0] != "server":
            continue
        in_kernel = "kernel" in path.parts
        for line, name in _imported(ast.parse(text(path) or "")):
            distribution = DISTRIBUTIONS.get(name, name.replace("_", "-"))
            if name in own:
                continue
            if in_kernel and name not in KERNEL:
                found.append(f"{path}:{line}: the kernel may not import {name}")
            elif distribution not in declared:
                found.append(f"{path}:{line}: {name} is not declared in pyproject.toml")
    return found
