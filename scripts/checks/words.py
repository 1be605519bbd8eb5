"""One thing, one name: identifiers and JSON members use the words of the design."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from files import text

# What must not be said -> the word to say. Compared in lower case without underscores.
INSTEAD = {
    "sessionid": "thread",
    "chatid": "thread",
    "roomid": "thread",
    "sequencenumber": "seq",
    "seqno": "seq",
    "seqnum": "seq",
    "eventno": "seq",
    "msgid": "message_id",
    "stepno": "iteration",
    "stepnumber": "iteration",
    "fencetoken": "fence",
    "fencingtoken": "fence",
    "leasetoken": "fence",
    "lastseen": "cursor",
    "lasteventseq": "cursor",
    "callrecipe": "call_record",
    "nodeid": "worker",
}
MODULES = {"utils", "util", "helpers", "helper", "common", "base", "manager", "misc"}


def _python_words(source: str) -> Iterator[tuple[int, str]]:
    for node in ast.walk(ast.parse(source)):
        line = getattr(node, "lineno", 0)
        if isinstance(node, ast.Name):
            yield line, node.id
        elif isinstance(node, ast.Attribute):
            yield line, node.attr
        elif isinstance(node, ast.arg):
            yield line, node.arg
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield line, node.name
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield line, node.value


def _script_words(source: str) -> Iterator[tuple[int, str]]:
    for number, line in enumerate(source.splitlines(), start=1):
        for word in re.findall(r"[A-Za-z_][A-Za-z0-9_]+", line):
            yield number, word


def findings(files: Sequence[Path]) -> list[str]:
    """Return identifiers that give a known thing a second name, and modules without a noun."""
    found = [
        f"{path}: a module is named by its noun, not {path.stem!r}"
        for path in files
        if path.suffix in {".py", ".js"} and path.stem in MODULES
    ]
    for path in files:
        if path.parts[0] not in ("server", "console"):
            continue
        source = text(path) or ""
        if path.suffix == ".py":
            words = _python_words(source)
        elif path.suffix in {".js", ".lua"}:
            words = _script_words(source)
        else:
            continue
        for line, word in words:
            instead = INSTEAD.get(word.replace("_", "").lower())
            if instead:
                found.append(f"{path}:{line}: say {instead!r}, not {word!r}")
    return found
