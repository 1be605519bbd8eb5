"""What is reported of a plan: numbers for the record, and the decision."""

from __future__ import annotations

from backscroll.compaction.facts import FactsBlock
from backscroll.compaction.plan import Plan, plan, settle
from backscroll.compaction.reading import Reading
from backscroll.compaction.report import (
    Made,
    budget_dict,
    stable_indexes,
    summary_facts,
    text_hash,
)
from backscroll.compaction.store import Cache, CompactionEntry
from backscroll.compaction.summary_run import Exchange, SummaryOutcome
from backscroll.compaction.view import Layout, render
from backscroll.conversation.repair import repair
from backscroll.kernel.usage import Usage
from compaction.histories import a, rounds, u
from compaction.planning import finished, given, prose, talk

OUTCOME = SummaryOutcome(
    "done", core="CORE", cut=4, parts=2, done=2, kind="model", model="m", provider="p",
    usage=Usage(9, 2), ms=5, exchanges=(Exchange("asked", "answered"),),
)  # fmt: skip


def decision_of(planned: Plan) -> dict[str, object]:
    """Return the decision of a plan as JSON values."""
    assert planned.decision is not None
    return planned.decision.to_dict()


def test_the_budget_has_the_fields_of_the_record() -> None:
    """All numbers a call was planned with."""
    reading = Reading(given(talk(1), 10_000))
    found = budget_dict(reading)
    assert (found["window"], found["source"], found["configured"]) == (10_000, "configured", 10_000)
    assert found["available"] == reading.budget.available
    assert found["trigger"] == reading.limits.trigger and found["micro"] == reading.limits.micro
    assert set(found["overhead"]) == {"system", "tools", "response_format", "notes"}


def test_the_facts_of_a_plan_name_counter_ratio_and_view() -> None:
    """Estimate and calibration side by side."""
    planned = plan(given(talk(3), ratio=1.2))
    assert planned.facts["estimate"] == {
        "counter": "pieces",
        "ratio": 1.2,
        "view": planned.state.view.tokens if planned.state else 0,
    }
    assert planned.facts["cache"] == {"result": "none"}


def test_stable_places_are_the_summary_and_the_last_before_the_mark() -> None:
    """Indexes in the view."""
    history = talk(10, 300)
    reading = Reading(given(history))
    cache = Cache(8, reading.hashes[8], "CORE")
    assert stable_indexes(render(reading, Layout(cache, 16, 8))) == [0, 8]
    assert stable_indexes(render(reading, Layout())) == []


def test_a_summary_that_was_made_is_told_in_full() -> None:
    """Kind, model, usage, parts, facts; its prompts and answers are a blob."""
    facts = FactsBlock("- x", kept={"standing": 1}, left_out={"other": 2})
    told, blobs = summary_facts(Made(OUTCOME, False, False, facts, None))
    assert (told["source"], told["kind"], told["model"], told["parts"]) == (
        "fresh",
        "model",
        "m",
        2,
    )
    assert told["usage"] == {"input_tokens": 9, "output_tokens": 2}
    assert told["facts"] == {"kept": {"standing": 1}, "left_out": {"other": 2}}
    assert blobs[told["exchanges"]] == b'[["asked","answered"]]'
    assert "clipped" not in told and "previous" not in told


def test_where_a_summary_came_from_has_a_word() -> None:
    """Fresh, merged with the one before, or partial."""
    words = [
        summary_facts(Made(OUTCOME, merged, partial, FactsBlock(), "aa"))[0]["source"]
        for merged, partial in ((False, False), (True, False), (True, True))
    ]
    assert words == ["fresh", "merged", "partial"]


def test_a_decision_names_range_cut_and_sizes() -> None:
    """Covers and cut are references; sizes are with all that stands beside."""
    planned = finished(given(talk(70, 60)))
    found = decision_of(planned)
    layout = planned.state.view.layout  # type: ignore[union-attr]  # a finished plan has one
    assert found["covers"] == [1, layout.prefix_n]
    assert found["ids"] == ["m10", planned.given.history[layout.prefix_n - 1].id]
    assert found["cut"]["position"] == layout.prefix_n  # type: ignore[index]
    assert found["before"]["messages"] == 280  # type: ignore[index]
    assert found["after"]["messages"] == len(planned.view)  # type: ignore[index]
    assert found["summary"]["source"] == "fresh"  # type: ignore[index]


def test_a_cache_that_was_used_is_called_so() -> None:
    """With the hash of its text, and what it was made by."""
    history = [*talk(2, 60), *talk(14, 400, start=9)]
    made = {"kind": "model", "model": "m", "at": 5}
    cache = Cache(8, Reading(given(history)).hashes[8], "CORE", made)
    planned = plan(given(history, entry=CompactionEntry(cache)))
    assert decision_of(planned)["summary"] == {
        "sha256": text_hash("CORE"),
        "chars": 4,
        "source": "cache",
        "kind": "model",
        "model": "m",
    }


def test_a_fallback_is_never_worded_like_a_summary() -> None:
    """compaction-18: drop with its reason, and no summary at all."""
    planned = plan(given(talk(70, 60)))
    failed = SummaryOutcome("failed", "summariser_failed", "it is blank")
    found = decision_of(settle(planned, failed))
    assert [stage["stage"] for stage in found["stages"]] == ["summary", "drop"]  # type: ignore[attr-defined, index]
    assert found["reason"] == "summariser_failed" and "summary" not in found
    assert found["result"] == "done"


def test_rejected_cuts_are_told_with_their_reasons() -> None:
    """What was considered, and why not."""
    found = decision_of(plan(given([u(1, prose(6_000)), *rounds(1, prose(200))])))
    assert found["result"] in ("done", "skipped")
    assert found["reason"] == "nothing_to_summarise"
    assert "rejected" in found["cut"] and "position" not in found["cut"]  # type: ignore[operator]


def test_places_of_cuts_are_references() -> None:
    """What repair made up has none, and is not counted."""
    begun = repair([u(0), a(1, None, "gone"), u(2, prose(6_000))], "No result.")[0]
    planned = plan(given([*begun, *rounds(1, prose(200), start=3)]))
    assert planned.reading is not None and planned.reading.refs[:4] == (1, 2, None, 3)
    rejected = decision_of(planned)["cut"]["rejected"]  # type: ignore[index]
    assert [one["position"] for one in rejected] == [3]
