"""Code blocks of documents keep their place, so that a failure points at the printed line."""

from __future__ import annotations

from pathlib import Path

import pytest
from documents import blocks, program, save_files

DOCUMENT = """# Title

```python
first = 1
```

Text with `code`.

```sh
make serve
```

```python example
second = first + 1
```
"""


@pytest.fixture
def document(tmp_path: Path) -> Path:
    """Give a document with three blocks."""
    path = tmp_path / "page.md"
    path.write_text(DOCUMENT, encoding="utf-8")
    return path


def test_blocks_in_order(document: Path) -> None:
    """Each block has its language, the words behind it and the line of its code."""
    found = [(block.language, block.words, block.line) for block in blocks(document)]

    assert found == [("python", (), 4), ("sh", (), 10), ("python", ("example",), 14)]


def test_program_keeps_line_numbers(document: Path) -> None:
    """The joined program has each line where the document has it."""
    lines = program(document).splitlines()

    assert lines[3] == "first = 1" and lines[13] == "second = first + 1"
    assert [line for line in lines if line] == ["first = 1", "second = first + 1"]


def test_no_program_in_another_language(document: Path) -> None:
    """A document without blocks of a language has no program in it."""
    assert program(document, "js") == ""


def test_files_beside_the_program(document: Path, tmp_path: Path) -> None:
    """A block with the name of a file is saved under it, and is no part of the program."""
    code = "```python clock.py\nthird = 3\n```\n"
    document.write_text(DOCUMENT + code, encoding="utf-8")

    save_files(document, tmp_path)

    assert (tmp_path / "clock.py").read_text(encoding="utf-8") == "third = 3\n"
    assert "third" not in program(document)
