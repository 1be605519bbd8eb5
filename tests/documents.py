"""The code blocks of our documents, each with its place, so that tests can run them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

FENCE = re.compile(r"^```(?P<words>[^\n`]*)\n(?P<code>.*?)^```\s*$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True, slots=True)
class Block:
    """One fenced block: its language, the words behind it, the line of its first code line."""

    language: str
    words: tuple[str, ...]
    line: int
    code: str

    @property
    def file(self) -> str | None:
        """The file that the block is, if a word behind its language names one."""
        return next((word for word in self.words if "." in word), None)


def blocks(path: Path) -> Iterator[Block]:
    """Yield the fenced blocks of a document in order."""
    text = path.read_text(encoding="utf-8")
    for found in FENCE.finditer(text):
        language, *words = found["words"].split() or [""]
        line = text.count("\n", 0, found.start("code")) + 1
        yield Block(language, tuple(words), line, found["code"])


def program(path: Path, language: str = "python") -> str:
    """Join the blocks of one language into a program whose lines keep their numbers.

    Blocks that are files of their own are no part of it.
    """
    lines: list[str] = []
    for block in blocks(path):
        if block.language == language and block.file is None:
            lines += [""] * (block.line - 1 - len(lines))
            lines += block.code.splitlines()
    return "\n".join(lines) + "\n" if lines else ""


def save_files(path: Path, folder: Path) -> None:
    """Write the blocks of a document that are files into a folder."""
    for block in blocks(path):
        if block.file is not None:
            (folder / block.file).write_text(block.code, encoding="utf-8")
