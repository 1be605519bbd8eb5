"""Decisions as values and as JSON."""

from __future__ import annotations

import json

from backscroll.compaction.decision import Amount, Decision, Stage

SMALL = Decision("ratio", "9 > 0.7 × 10", (), Amount(5, 9), Amount(5, 9))


def test_what_does_not_apply_is_left_out() -> None:
    """A small decision is small."""
    assert SMALL.to_dict() == {
        "attempt": 1,
        "trigger": "ratio",
        "because": "9 > 0.7 × 10",
        "stages": [],
        "before": {"messages": 5, "tokens": 9},
        "after": {"messages": 5, "tokens": 9},
        "result": "done",
        "ms": 0,
    }


def test_everything_there_is_stands_in_it() -> None:
    """Range, cut, summary, cache, store, health, overflow, warnings, reason."""
    whole = SMALL.replace(
        covers=(1, 170),
        ids=("a", None),
        cut={"position": 170},
        summary={"source": "fresh"},
        cache={"result": "hit"},
        store={"swap": "stored"},
        health={"failures": 0},
        overflow={"class": "sum"},
        warnings=({"reason": "clipped"},),
        reason="clipped",
    )
    found = whole.to_dict()
    assert found["covers"] == [1, 170] and found["ids"] == ["a", None]
    assert found["warnings"] == [{"reason": "clipped"}] and found["reason"] == "clipped"
    assert json.loads(json.dumps(found)) == found


def test_a_stage_tells_what_it_changed_only_if_it_was_done() -> None:
    """Growth keeps its sign; a skipped stage has its reason."""
    done = Stage("summary", "done", "why", 3, 40, 1900)
    assert done.to_dict() == {
        "stage": "summary", "status": "done", "why": "why", "messages": 3, "tokens": 40, "ms": 1900,
    }  # fmt: skip
    assert Stage("drop", "skipped").to_dict() == {"stage": "drop", "status": "skipped"}
