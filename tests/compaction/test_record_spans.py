"""What operators see of a record: spans over both lists, and the budget's parts."""

from __future__ import annotations

from typing import Any

from backscroll.compaction.record_spans import spans_for_api


def record(view: list[Any], left_out: list[Any] | None = None, **more: Any) -> dict[str, Any]:
    """Return a record with these spans."""
    sent = sum(span.get("to", 1) - span.get("from", 1) + 1 for span in view)
    tokens = sum(span["tokens"][1] for span in view)
    return {
        "attempt": 1,
        "history": {"messages": 214, "tokens": 900},
        "view": view,
        "left_out": left_out or [],
        "sent": {
            "messages": sent,
            "tokens": tokens,
            "sha256": "77aa",
            "parts": {"messages": [tokens, sent], "tools": [50, 2]},
        },
        **more,
    }


def span(fate: str, first: int, last: int, before: int = 10, after: int = 10) -> dict[str, Any]:
    """Return a span of the history."""
    return {"fate": fate, "from": first, "to": last, "tokens": [before, after]}


SYSTEM = {"fate": "injected", "what": "system", "role": "system", "tokens": [0, 7], "by": "agent"}
SUMMARY = {"fate": "injected", "what": "summary", "tokens": [0, 60], "compaction": 3}
BUDGET = {
    "window": 1000, "source": "catalogue", "configured": 1000, "output": 250, "hard": 750,
    "safety": 256, "available": 400, "trigger": 340, "micro": 280,
    "overhead": {"system": 7, "tools": 50, "response_format": 9, "notes": 0},
}  # fmt: skip


def test_kept_and_injected_spans_have_their_places() -> None:
    """Positions count from 1 on both sides; injected ones have no history."""
    found = spans_for_api(record([SYSTEM, span("kept", 1, 3), {**SYSTEM, "what": "note"}]))
    assert [(s.get("history"), s["sent"]) for s in found["spans"]] == [
        (None, [1, 1]),
        ([1, 3], [2, 4]),
        (None, [5, 5]),
    ]
    assert found["spans"][0]["by"] == "agent"


def test_what_a_summary_stands_for_shares_its_sent_position() -> None:
    """Its tokens count once; a kept message inside stays at its place in the history."""
    left = [span("summarised", 1, 11, 100, 0), span("summarised", 13, 170, 800, 0)]
    view = [SYSTEM, SUMMARY, span("kept", 12, 12), span("kept", 171, 172)]
    spans = spans_for_api(record(view, left))["spans"]
    shown = [(s["fate"], s.get("history"), s["sent"], s["tokens_after"]) for s in spans]
    assert shown == [
        ("injected", None, [1, 1], 7),
        ("summarised", [1, 11], [2, 2], 60),
        ("kept", [12, 12], [3, 3], 10),
        ("summarised", [13, 170], [2, 2], 0),
        ("kept", [171, 172], [4, 5], 10),
    ]
    assert spans[1]["compaction"] == 3


def test_dropped_spans_have_no_sent_position() -> None:
    """They stand at their place in the history, with the reason."""
    dropped = {**span("dropped", 1, 4, 90, 0), "why": "oldest part"}
    digest = {**SUMMARY, "what": "digest"}
    spans = spans_for_api(record([digest, span("kept", 5, 5)], [dropped]))["spans"]
    assert [s["fate"] for s in spans] == ["injected", "dropped", "kept"]
    assert "sent" not in spans[1]
    assert spans[1]["reason"] == "oldest part"


def test_an_injected_result_stands_after_its_call() -> None:
    """What has no history stands after what was sent before it."""
    result = {**SYSTEM, "what": "result_missing", "role": "tool"}
    view = [span("kept", 1, 2), result, span("kept", 3, 3)]
    spans = spans_for_api(record(view))["spans"]
    assert [s["sent"] for s in spans] == [[1, 2], [3, 3], [4, 4]]


def test_summarised_messages_without_their_summary_are_shown() -> None:
    """A filter further in may have removed it; nothing is hidden."""
    left = [span("summarised", 1, 2, 20, 0)]
    spans = spans_for_api(record([span("kept", 3, 3)], left))["spans"]
    assert [(s["fate"], s.get("sent")) for s in spans] == [("summarised", None), ("kept", [1, 1])]


def test_the_parts_add_up_to_the_total() -> None:
    """REC5: sent.tokens is the sum of the strip; the history is on the same scale."""
    found = spans_for_api(record([span("kept", 1, 2, 30, 30)], budget=BUDGET))
    parts = {part["part"]: part["tokens"] for part in found["budget"]["parts"]}
    assert parts == {"tools": 50, "response_format": 9, "messages": 30}
    assert found["sent"]["tokens"] == 89
    assert found["history"]["tokens"] == 900 + 59


def test_triggers_are_on_the_scale_of_the_whole_request() -> None:
    """Overhead plus the ratio of what the messages may use."""
    budget = spans_for_api(record([span("kept", 1, 1)], budget=BUDGET))["budget"]
    assert (budget["window"], budget["window_source"]) == (1000, "catalogue")
    assert (budget["reserved"], budget["hard"]) == (250, 750)
    assert budget["triggers"] == [
        {"stage": "micro", "ratio": 0.7, "tokens": 346},
        {"stage": "summary", "ratio": 0.85, "tokens": 406},
    ]


def test_without_a_plan_there_is_no_budget_but_the_parts() -> None:
    """Compaction was off; warnings are shown where there are any."""
    found = spans_for_api(record([span("kept", 1, 1)], warnings=["unclaimed"]))
    assert set(found["budget"]) == {"source", "parts"}
    assert found["warnings"] == ["unclaimed"]


def test_a_repaired_span_and_a_role_are_shown() -> None:
    """The flag and the role stand on the span."""
    moved = {**span("kept", 2, 2), "repaired": "result_moved"}
    spans = spans_for_api(record([SYSTEM, span("kept", 1, 1), moved]))["spans"]
    assert spans[0]["role"] == "system"
    assert spans[2]["repaired"] == "result_moved"
