"""Entries become rows, each in exactly one, the same here and in the console."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from backscroll.runs.fold import Fold
from hypothesis import given
from hypothesis import strategies as st

FIXTURES = sorted((Path(__file__).parents[1] / "data" / "fold").glob("*.json"))


@pytest.mark.parametrize("path", FIXTURES, ids=lambda path: path.stem)
def test_folds_the_shared_files_as_the_console_does(path: Path) -> None:
    """E11: each fixture file gives exactly the rows it states."""
    data = json.loads(path.read_text())

    fold = Fold(data.get("floor", 0))
    fold.extend(data["entries"])

    assert [row.to_dict() for row in fold.rows] == data["rows"]


def test_there_are_fixtures() -> None:
    """The shared files are found."""
    assert len(FIXTURES) >= 8


TYPES = [
    ("event", name)
    for name in (
        "RUN_STARTED RUN_FINISHED RUN_ERROR STEP_STARTED STEP_FINISHED TEXT_MESSAGE_START"
        " TEXT_MESSAGE_CONTENT TEXT_MESSAGE_END TOOL_CALL_START TOOL_CALL_ARGS TOOL_CALL_END"
        " TOOL_CALL_RESULT REASONING_START REASONING_END ACTIVITY_SNAPSHOT SURPRISE"
    ).split()
] + [("call", "started"), ("call", "finished"), ("note", "repair"), ("odd", "odd")]


@given(
    st.lists(
        st.tuples(st.sampled_from(TYPES), st.sampled_from("ab"), st.sampled_from(["r1", "r2"])),
        max_size=40,
    )
)
def test_every_entry_is_in_exactly_one_row(items: list[tuple[tuple[str, str], str, str]]) -> None:
    """E15: whatever the order, no entry is lost and none is counted twice."""
    entries: list[dict[str, Any]] = [
        {"seq": n, "time": n, "kind": kind, "type": type_, "ref": ref, "run": run, "bytes": 1}
        for n, ((kind, type_), ref, run) in enumerate(items, 1)
    ]

    fold = Fold()
    fold.extend(entries)

    assert sum(row.entries for row in fold.rows) == len(entries)
    assert sum(row.bytes for row in fold.rows) == len(entries)
