"""What clients see of compactions."""

from __future__ import annotations

from typing import Any

from agui_stories import SCOPE, CountedIds, encoder, values
from backscroll.agent.events import AgentEvent, IterationStarted, Reported
from backscroll.compaction.decision import CompactionFinished, CompactionStarted
from backscroll.kernel.request import ViewPlanned
from backscroll.kernel.usage import Usage
from backscroll.runs.activity import CompactionCards, compaction_activity, summary_usage

DONE: dict[str, Any] = {
    "attempt": 1,
    "trigger": "ratio",
    "stages": [
        {"stage": "micro", "status": "done", "messages": 9, "tokens": -14386},
        {"stage": "summary", "status": "done", "messages": 170, "tokens": -43350},
    ],
    "before": {"messages": 214, "tokens": 118940},
    "after": {"messages": 37, "tokens": 61204},
    "covers": [1, 170],
    "summary": {"source": "fresh", "sha256": "c0de"},
    "result": "done",
    "ms": 2100,
}
SKIPPED = {**DONE, "stages": [{"stage": "micro", "status": "skipped"}], "result": "skipped"}


def told(report: Any) -> AgentEvent:
    """Return the event in which something is reported."""
    return Reported(**SCOPE, report=report)


def planned(window: int | None = 128_000) -> AgentEvent:
    """Return the report of a view with this window."""
    return told(ViewPlanned((), {"budget": {"window": window}} if window else {}))


def cards(timeline: Any = "brief") -> tuple[CompactionCards, Any]:
    """Return cards and the encoder they write with."""
    by = encoder(timeline=timeline)
    by.start()
    return CompactionCards(by, CountedIds(), has_text=timeline == "full"), by


def test_a_decision_is_shown_in_numbers() -> None:
    """Trigger, stages, messages, tokens, covered, source and time; no text."""
    assert compaction_activity(DONE, 128_000) == {
        "status": "done",
        "trigger": "ratio",
        "stages": ["micro", "summary"],
        "messages": {"before": 214, "after": 37},
        "tokens": {"before": 118940, "after": 61204, "window": 128_000, "source": "estimate"},
        "covered": 170,
        "summary": "fresh",
        "ms": 2100,
    }


def test_what_did_nothing_is_not_shown() -> None:
    """A decision that was skipped, or whose stages all were, is no card."""
    nothing = {**DONE, "stages": [], "result": "done"}

    assert compaction_activity(SKIPPED, None) is None
    assert compaction_activity(nothing, None) is None


def test_a_fallback_names_its_reason() -> None:
    """Drop without a summary, and why; the window is absent where nobody knows it."""
    stages = [{"stage": "summary", "status": "failed"}, {"stage": "drop", "status": "done"}]
    fallback = {**DONE, "stages": stages, "reason": "summariser_failed", "summary": {}}

    shown = compaction_activity(fallback, None, "text")

    assert shown is not None
    assert (shown["stages"], shown["reason"], shown["text"]) == (
        ["drop"],
        "summariser_failed",
        "text",
    )
    assert "summary" not in shown and "window" not in shown["tokens"]


def test_a_card_runs_and_then_is_done() -> None:
    """First `running`, then whole under the same id, with the window of the view that follows."""
    by, _ = cards()

    running = values(by.take(told(CompactionStarted("ratio"))))
    between = by.take(told(CompactionFinished(DONE)))
    done = values(by.take(planned()))

    assert [e["messageId"] for e in running + done] == ["cmp_1", "cmp_1"]
    assert running[0]["content"] == {"status": "running", "trigger": "ratio"}
    assert between == []
    assert done[0]["activityType"] == "backscroll.compaction"
    assert done[0]["content"]["status"] == "done"
    assert done[0]["content"]["tokens"]["window"] == 128_000


def test_an_announced_card_always_ends() -> None:
    """What began as running and came to nothing is shown as failed."""
    by, _ = cards()
    by.take(told(CompactionStarted("ratio")))
    by.take(told(CompactionFinished({**SKIPPED, "reason": "summariser_failed"})))

    (ended,) = values(by.take(IterationStarted(**SCOPE, index=1, remaining=1)))

    assert ended["content"]["status"] == "failed"
    assert ended["content"]["reason"] == "summariser_failed"


def test_two_decisions_are_two_cards() -> None:
    """A decision without a summary call has one statement, with an id of its own."""
    by, _ = cards()
    micro = {**DONE, "stages": DONE["stages"][:1]}
    by.take(told(CompactionFinished(micro)))
    first = values(by.take(planned()))
    by.take(told(CompactionFinished(micro)))
    second = values(by.take(planned(None)))

    assert [e["messageId"] for e in first + second] == ["cmp_1", "cmp_2"]
    assert second[0]["content"]["tokens"]["window"] == 128_000


def test_the_text_is_for_the_full_timeline_alone() -> None:
    """At `full` the summary is in the card, below it never; at `off` there is no card."""
    shown = {}
    for level in ("off", "brief", "full"):
        by, _ = cards(level)
        by.take(told(CompactionFinished(DONE)), "The story so far.")
        shown[level] = values(by.take(planned()))

    assert shown["off"] == []
    assert "text" not in shown["brief"][0]["content"]
    assert shown["full"][0]["content"]["text"] == "The story so far."


def test_the_summary_counts_in_the_usage_of_the_run() -> None:
    """What the summariser used is part of what the run used."""
    by, encoder = cards()
    made = {"source": "fresh", "provider": "p", "model": "m", "usage": {"input_tokens": 7}}

    by.take(told(CompactionFinished({**DONE, "summary": made})))

    assert encoder.usage == [{"provider": "p", "model": "m", "input_tokens": 7}]
    assert summary_usage({"summary": made}) == ("p", "m", Usage(7))
    assert summary_usage({"summary": {"source": "cache"}}) is None
    failed = {
        "summary": {"source": "cache"},
        "spent": {"provider": "p", "usage": {"output_tokens": 3}},
    }
    assert summary_usage(failed) == ("p", "", Usage(output_tokens=3))
    assert summary_usage({}) is None
