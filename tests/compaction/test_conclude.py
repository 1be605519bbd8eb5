"""The end of planning: options, cache places, warnings, entry, decision."""

from __future__ import annotations

import dataclasses
import hashlib

import pytest
from backscroll.compaction.budget import Asked
from backscroll.compaction.conclude import conclude
from backscroll.compaction.ladder import Climb
from backscroll.compaction.layouts import Choice
from backscroll.compaction.plan import Plan, force, plan, settle
from backscroll.compaction.reading import Reading
from backscroll.compaction.store import EMPTY, CompactionEntry, Marks
from backscroll.compaction.summary_run import SummaryOutcome
from backscroll.compaction.view import Layout, render
from backscroll.kernel.errors import Refusal
from backscroll.kernel.message import Message
from backscroll.kernel.model import Cache, ModelOptions, ModelProfile
from compaction.histories import u
from compaction.planning import finished, given, prose, stages, talk


def asked(**options: object) -> Asked:
    """Return what a request with these options asks for, at a window of 8,000."""
    profile = ModelProfile(context_window=8_000, window_source="configured")
    return Asked(profile, ModelOptions(**options))  # type: ignore[arg-type]  # passed on


def concluded(history: list[Message], layout: Layout, entry: CompactionEntry = EMPTY) -> Plan:
    """Conclude a plan whose ladder ended at this layout."""
    input = given(history, entry=entry)
    reading = Reading(input)
    view = render(reading, layout)
    state = Climb(reading, Choice(layout, "none"), view, layout, view.tokens)
    return conclude(Plan(input, (), input.asked.options, entry, reading=reading), state)


def test_the_output_is_fitted_to_the_window() -> None:
    """BUD2: what the view leaves, and it is on record."""
    planned = plan(given([u(1, prose(5_000))], asked=asked(max_output_tokens=3_000)))
    assert planned.reading is not None and planned.state is not None
    left = 8_000 - planned.state.view.tokens - planned.reading.budget.safety
    assert planned.options.max_output_tokens == left < 3_000
    assert "output_lowered" in planned.facts["warnings"]
    assert plan(given([u(1)], asked=asked(max_output_tokens=900))).options.max_output_tokens == 900


def test_stable_places_are_named_where_a_cache_is_marked() -> None:
    """The summary, and the last message before the watermark; nothing is added by itself."""
    options = asked(cache=Cache("stable", "1h"))
    history = talk(14, 400)
    planned = plan(given(history, asked=options))
    assert planned.options.cache == Cache("stable", "1h", (40,))
    assert planned.facts["stable"] == [40]
    assert plan(given(history)).options.cache is None
    made = finished(given(talk(70, 60), asked=options))
    assert made.options.cache is not None and made.options.cache.at == (0,)


def test_marks_are_stored_where_they_moved() -> None:
    """They are hashed at their own place, so that a later edit leaves them valid."""
    history = talk(14, 400)
    planned = concluded(history, Layout(None, 41, 8))
    assert planned.reading is not None
    assert planned.entry.marks == Marks(41, 8, 41, planned.reading.hashes[41])
    again = concluded(history, Layout(None, 41, 8), planned.entry)
    assert again.entry is planned.entry and not again.changed
    assert concluded(history, Layout()).entry.marks is None


def test_marks_never_go_back() -> None:
    """What a smaller layout does not use stays stored."""
    history = talk(14, 400)
    entry = concluded(history, Layout(None, 41, 8)).entry
    later = concluded(history, Layout(None, 20, 12), entry)
    assert later.entry.marks is not None
    assert (later.entry.marks.micro_n, later.entry.marks.drop_n) == (41, 12)
    assert concluded(history, Layout(), entry).entry == entry


def test_a_view_that_breaks_our_own_rules_is_not_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    """The capped history goes out instead, with `invariant` in the entry."""
    monkeypatch.setattr("backscroll.compaction.conclude.violation", lambda *_: "it was split")
    history = talk(14, 400)
    planned = concluded(history, Layout(None, 41, 8))
    assert planned.view == tuple(history)
    assert planned.decision is not None and planned.decision.reason == "invariant"
    assert planned.decision.warnings[0] == {"reason": "invariant", "why": "it was split"}


def test_pins_above_their_share_are_warned_of() -> None:
    """With the limit."""
    history = talk(3, 3_000)
    pins = frozenset(m.id or "" for m in history)
    assert "pins_over_budget" in plan(given(history, pins=pins)).facts["warnings"]


def test_nothing_done_is_no_decision() -> None:
    """A call that used a cache and needed nothing writes none."""
    assert plan(given(talk(3))).decision is None
    used = plan(given(talk(70, 60), entry=finished(given(talk(70, 60))).entry))
    assert used.decision is None and used.facts["cache"]["result"] == "hit"


def test_a_decision_says_what_was_compared() -> None:
    """`because` has the numbers of the threshold that was passed."""
    micro = plan(given(talk(14, 400)))
    assert micro.decision is not None and micro.reading is not None
    assert micro.decision.because.endswith(f"> 0.7 × {micro.reading.budget.available}")
    dropped = plan(given(talk(70, 60), withheld="no_summariser"))
    assert dropped.decision is not None
    assert "> 0.85 ×" in dropped.decision.because
    assert stages(dropped)[-2:] == [("summary", "skipped"), ("drop", "done")]
    assert (dropped.decision.result, dropped.decision.reason) == ("done", "no_summariser")


def test_the_text_of_the_summary_goes_with_the_decision() -> None:
    """Whoever reads the entry later finds it by its hash."""
    planned = finished(given(talk(70, 60)))
    assert planned.decision is not None and planned.decision.summary is not None
    name = planned.decision.summary["sha256"]
    assert hashlib.sha256(planned.blobs[name]).hexdigest() == name
    assert "a summary of what was said" in planned.blobs[name].decode()


def test_flaws_of_a_summary_are_warned_of() -> None:
    """Clipped, and what was not grounded."""
    planned = plan(given(talk(70, 60)))
    assert planned.job is not None
    outcome = SummaryOutcome("done", core="CORE", cut=planned.job.cut)
    flawed = dataclasses.replace(outcome, clipped=True, ungrounded=("dpl_9",))
    done = settle(planned, flawed)
    assert {"clipped", "ungrounded"} <= set(done.facts["warnings"])
    assert done.warnings[-1].data == {"ids": ["dpl_9"]}


def test_a_limit_that_was_learned_and_a_lowered_output_are_warned_of() -> None:
    """Both numbers are shown; an output the refusal lowered is not raised again."""
    first = plan(given([u(1, "hello")], asked=asked(max_output_tokens=1_900)))
    second = force(first, Refusal("sum", 5_000, 1_900, 6_500))
    assert second.options.max_output_tokens == 6_500 - 5_000 - 256
    learned = next(w for w in second.warnings if w.reason == "limit_learned")
    assert learned.data == {"configured": 8_000, "observed": 6_500}
    assert second.decision is not None
    assert second.decision.because == "refused as sum"
