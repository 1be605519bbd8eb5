"""The summariser without a model."""

from __future__ import annotations

import subprocess
import sys

from backscroll.compaction.extractive import SECTIONS, ExtractiveSummariser, extract
from backscroll.compaction.pieces import PieceCounter
from backscroll.compaction.summariser import LineKind, SummaryPart, transcript_head
from backscroll.compaction.texts import CompactionTexts
from hypothesis import given
from hypothesis import strategies as st

Entries = list[tuple[LineKind, str | None, str]]

ENTRIES: Entries = [
    ("user", None, "Goal: rename A. Never touch C!\nWhat is up?"),
    ("assistant", None, "I looked at it. We decided to use Redis."),
    ("call", "write_file", '{"path":"src/a.py","content":"' + "x" * 300 + '"}'),
    ("tool", "write_file", "done\nERROR foo E123\nid = ord_12\n" + "row 1 ok\n" * 9),
    ("user", None, "The branch is now A."),
    ("user", None, "the branch is now B."),
]


def transcript(entries: Entries) -> str:
    """Return entries as a transcript."""
    return "\n".join(
        transcript_head(n, k, name) + text for n, (k, name, text) in enumerate(entries)
    )


def part(notes: str = "", max_tokens: int = 800, *covered: str, material: str = "") -> SummaryPart:
    """Return one pass over the sample, or over other material."""
    return SummaryPart(
        notes, material or transcript(ENTRIES), max_tokens, covered=frozenset(covered)
    )


async def test_writes_lines_under_headings() -> None:
    """Lines stand under the headings of a summary, by rule, oldest first."""
    draft = await ExtractiveSummariser().summarise(part())

    assert draft.text == (
        "## Goal\n- Goal: rename A.\n- What is up?\n"
        "## Constraints and preferences\n- Never touch C!\n"
        "## Decisions and why\n- We decided to use Redis.\n- the branch is now B.\n"
        "## Errors and fixes\n- ERROR foo E123\n"
        f'## Artifacts\n- write_file {{"path":"src/a.py","content":"{"x" * 90}\n'
        "## Key values\n- id = ord_12"
    )
    assert (draft.has_calls, draft.usage) == (False, None)


def test_every_line_is_in_the_material() -> None:
    """SUM14: nothing is written that the material does not say."""
    notes = "## Open\n- finish the move\n## Decisions and why\n- agreed on tea"
    found = extract(part(notes))

    for line in found.splitlines():
        text = line.removeprefix("- ").removeprefix("write_file ")
        assert line.startswith("## ") or text in notes + transcript(ENTRIES), line
    assert "- agreed on tea" in found


def test_keeps_notes_under_their_heading() -> None:
    """Lines of the notes stay in the section they stood in."""
    notes = "## Open\n- never mind the date\n## Odd\n- must go on"

    found = extract(part(notes, material="x"))

    assert found == "## Open\n- never mind the date\n- must go on"


def test_what_facts_say_is_left_out() -> None:
    """Lines that stand in the facts block are not repeated, older values of them neither."""
    found = extract(
        part("- the branch is now C", 800, "the branch is now D.", "wrote src/a.py", "id = ord_12")
    )

    assert "branch" not in found
    assert "src/a.py" not in found
    assert "ord_12" not in found


def test_the_best_lines_are_taken_within_the_limit() -> None:
    """A small limit keeps what scores highest, and of equals the newest."""
    entries: Entries = [("user", None, f"Never do number {n} again.") for n in range(50)]
    entries += [("assistant", None, "Just talk.")]

    found = extract(part(max_tokens=60, material=transcript(entries)))

    assert "number 49" in found and "number 0 " not in found and "talk" not in found
    assert PieceCounter().count(found) <= 60


def test_the_headings_are_those_of_the_prompt() -> None:
    """The prompt of the model summariser names the same sections in the same order."""
    prompt = CompactionTexts().summariser_system
    places = [prompt.index(f"## {section}") for section in SECTIONS]

    assert places == sorted(places)


def test_nothing_gives_nothing() -> None:
    """Without material there is no summary."""
    assert extract(part(material=" ")) == ""


@given(st.text(), st.text(), st.integers(0, 200))
def test_any_text_is_taken(notes: str, material: str, limit: int) -> None:
    """SUM14: whatever the texts, the answer fits the limit and is the same again."""
    asked = part(
        notes, limit, material=transcript([("tool", "f", material), ("user", None, notes)])
    )

    found = extract(asked)

    assert extract(asked) == found
    assert PieceCounter().count(found) <= limit


def test_is_the_same_in_two_processes() -> None:
    """SUM14: equal bytes, whatever the hash seed of the process."""
    code = "from compaction.test_extractive import *; print(extract(part('- a must', 300, 'x')))"
    found = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": "tests"},
            capture_output=True, text=True, timeout=15, check=True,
        ).stdout
        for seed in ("1", "2")
    }  # fmt: skip

    assert len(found) == 1


def test_says_again_what_the_facts_say_when_there_is_nothing_else() -> None:
    """A summary of material that the facts hold whole is not blank."""
    said = "We must never deploy on Fridays."
    material = f"[#1 user] {said}"

    assert extract(part("", 800, said, material=material)).endswith(f"- {said}")
