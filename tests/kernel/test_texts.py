"""Fixed texts can be replaced, and a wrong placeholder is found at once."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import fields, replace
from pathlib import Path

import pytest
from backscroll.kernel.errors import AssemblyError
from backscroll.kernel.texts import Texts, check_texts, placeholders

SOURCE = Path(__file__).parents[2] / "server" / "backscroll"
TELLING = 16
"""How many characters of a text are enough to know it by."""


def trees() -> Iterator[tuple[str, ast.AST]]:
    """Give the syntax of every module but that of the texts themselves."""
    for path in SOURCE.rglob("*.py"):
        if path != SOURCE / "kernel" / "texts.py":
            yield str(path), ast.parse(path.read_text(encoding="utf-8"))


def is_texts(node: ast.AST) -> bool:
    """Whether an expression is a Texts by its name: `texts`, `request.texts`, `Texts()`."""
    if isinstance(node, ast.Call):
        return isinstance(node.func, ast.Name) and node.func.id == "Texts"
    name = node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")
    return name.lstrip("_") == "texts"


def test_every_text_is_used() -> None:
    """TXT1: each key is read from a Texts somewhere."""
    used = {
        node.attr
        for _, tree in trees()
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and is_texts(node.value)
    }

    assert {item.name for item in fields(Texts)} - used == set()


def test_no_text_is_written_anywhere_else() -> None:
    """TXT1: no literal of the code holds a telling piece of one."""
    pieces = {
        piece.strip(): item.name
        for item in fields(Texts)
        for piece in re.split(r"\{\w+\}|\n", item.default)  # type: ignore[arg-type]
        if len(piece.strip()) >= TELLING
    }
    copies = [
        (path, node.lineno, name)
        for path, tree in trees()
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
        for piece, name in pieces.items()
        if piece in node.value
    ]

    assert copies == []
    assert len(set(pieces.values())) > len(fields(Texts)) - 6


def test_the_defaults_are_fine() -> None:
    """Every default text passes its own check."""
    check_texts(Texts(), Texts())


@pytest.mark.parametrize("text", ["{nmae} failed", "broken {", 7])
def test_a_wrong_placeholder_is_refused(text: object) -> None:
    """TXT2: a template with an unknown placeholder names the text and the placeholder."""
    with pytest.raises(AssemblyError, match="tool_error") as caught:
        check_texts(replace(Texts(), tool_error=text), Texts())  # type: ignore[arg-type]
    assert caught.value.kind == "invalid_text"


def test_fewer_placeholders_are_fine() -> None:
    """A text may leave a placeholder out."""
    check_texts(replace(Texts(), tool_error="it failed"), Texts())


def test_placeholders_of_several_texts_unite() -> None:
    """A tuple of texts has the placeholders of all."""
    assert placeholders(("{a}", "{b} {a}", "none")) == {"a", "b"}
