"""The fixed texts of compaction."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import backscroll
import pytest
from backscroll.compaction.texts import CompactionTexts
from backscroll.kernel.errors import AssemblyError
from backscroll.kernel.texts import placeholders


def test_a_template_with_an_unknown_name_is_refused() -> None:
    """TXT3: a misspelt placeholder is an assembly error that names the text."""
    with pytest.raises(AssemblyError, match="nmae") as caught:
        CompactionTexts(placeholder="[{nmae}]").check()

    assert (caught.value.kind, caught.value.where) == ("invalid_text", "placeholder")


def test_headings_are_three() -> None:
    """A facts block needs a heading for each class."""
    with pytest.raises(AssemblyError, match="expected 3 texts, got 1"):
        CompactionTexts(facts_headings=("Only",)).check()
    CompactionTexts(facts_headings=("一", "二", "三")).check()


def test_fills_by_name() -> None:
    """A text is filled with the values of its placeholders."""
    texts = CompactionTexts()

    assert texts.fill("placeholder", name="read", tokens=12, ref="7") == (
        "[result of read shortened: 12 tokens, #7]"
    )


def test_no_text_changes_from_call_to_call() -> None:
    """TXT4: no placeholder is filled with a time or an age."""
    names = set().union(
        *(placeholders(getattr(CompactionTexts(), f.name)) for f in fields(CompactionTexts))
    )

    assert not names & {"time", "date", "now", "age", "call", "attempt"}


def test_every_text_is_used_and_written_once() -> None:
    """TXT3: every text is used in the room, and stands nowhere else in it."""
    room = Path(backscroll.__file__).parent / "compaction"
    code = "\n".join(p.read_text("utf-8") for p in room.glob("*.py") if p.name != "texts.py")

    for field in fields(CompactionTexts):
        assert f'"{field.name}"' in code or f".{field.name}" in code, field.name
        value = getattr(CompactionTexts(), field.name)
        first = value if isinstance(value, str) else value[0]
        assert first.split("{")[0].strip("[( <") not in code or len(first.split("{")[0]) < 12
