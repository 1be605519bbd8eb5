"""The ladder as a whole: what plans do about particular conversations."""

from __future__ import annotations

from backscroll.compaction.budget import Asked
from backscroll.compaction.entry_codec import entry_to_dict
from backscroll.compaction.plan import Plan, plan, settle
from backscroll.compaction.reading import Reading
from backscroll.compaction.settings import Settings
from backscroll.compaction.store import EMPTY, Cache, CompactionEntry
from backscroll.compaction.summary_run import SummaryOutcome, skipped
from backscroll.kernel.message import Message, Role, user
from backscroll.kernel.model import ModelProfile
from backscroll.kernel.tool import ToolSpec
from compaction.histories import rounds, u
from compaction.planning import finished, given, prose, stages, talk


def no_bug(planned: Plan) -> Plan:
    """Return the plan; fail where our own check failed or our own code raised."""
    assert not [warning for warning in planned.warnings if warning.reason == "invariant"]
    return planned


def test_what_was_asked_for_is_in_every_view_of_a_long_turn() -> None:
    """GRP4, compaction-12: 200 tool rounds, cut inside the turn."""
    goal = u(1, "Goal: rename module A to B, never touch C")
    history, entry = [goal], EMPTY
    summaries = 0
    for n in range(200):
        history += rounds(1, prose(120), start=n + 10)
        planned = no_bug(finished(given(history, 6_000, entry), f"S{n}"))
        entry = planned.entry
        summaries += planned.made is not None
        assert any(m.content == goal.content for m in planned.view)
    assert summaries >= 2
    assert planned.state is not None and planned.state.view.layout.prefix_n > 1


def test_system_texts_and_tools_count_before_anything_is_too_large() -> None:
    """BUD1: 1,500 and 5,000 tokens beside a history of 4,500 are too much for 10,000."""
    tools = [ToolSpec(f"tool{n}", prose(115), {}) for n in range(40)]
    asked = Asked(ModelProfile(10_000, "configured"), system=(prose(1_500),), tools=tools)
    history = talk(12, 300)
    alone = plan(given(history, 10_000))
    planned = no_bug(finished(given(history, asked=asked)))
    assert alone.reading is not None and planned.reading is not None and planned.state is not None
    beside = planned.reading.budget.overhead.total
    assert planned.state.seen + beside >= 9_500 and alone.decision is None
    assert planned.decision is not None and planned.prompt <= planned.reading.budget.hard
    assert planned.state.view.tokens + beside == planned.prompt


def test_the_watermark_moves_in_batches() -> None:
    """MIC5: over 200 turns never back, and at most once for the tokens that a move must bring."""
    history, entry, marks = list[Message](), EMPTY, [0]
    for turn in range(1, 201):
        history += talk(1, 300, start=turn)
        planned = no_bug(finished(given(history, 16_000, entry)))
        assert planned.state is not None and planned.reading is not None
        entry, layout = planned.entry, planned.state.marked
        marks.append(max(layout.micro_n, layout.prefix_n))
    moves = len(set(marks)) - 1
    assert marks == sorted(marks) and moves >= 5
    assert moves <= planned.reading.whole / planned.reading.limits.micro_min_gain


def test_repeated_compaction_leaves_one_summary() -> None:
    """SUM2, compaction-15: directly before what follows it, and its size stays bounded."""
    history, entry, sizes, notes = list[Message](), EMPTY, list[int](), list[str]()
    for turn in range(1, 300, 5):
        history += talk(5, 60, start=turn)
        planned = plan(given(history, 6_000, entry))
        if planned.job is not None:
            notes.append(planned.job.notes)
            core = f"## Goal\n- part {len(notes)} of what was said"
            planned = settle(planned, SummaryOutcome("done", core=core, cut=planned.job.cut))
        entry = planned.entry
        made = [m for m in planned.view if m.origin == "filter:compaction"]
        assert len(made) <= 1 and (not made or planned.view[0] is made[0])
        sizes += [planned.reading.estimate(m) for m in made] if planned.reading else []
    assert len(notes) >= 4
    assert all(f"part {n}" in text for n, text in enumerate(notes[1:4], 1))
    assert max(sizes) <= planned.reading.limits.block_max + 200  # type: ignore[union-attr]


def test_a_small_window_and_back_loses_nothing() -> None:
    """PLN11, compaction-16: the first small request fits; the large model has it all again."""
    history = talk(120, 400)
    small = no_bug(finished(given(history, 16_000)))
    assert small.made is not None and small.prompt <= 16_000
    large = plan(given(history, 200_000, small.entry))
    assert large.view == tuple(history)
    assert "uncompacted" in large.facts["warnings"]


def test_what_arrives_meanwhile_comes_after_everything_else() -> None:
    """PLN12: nothing made by us follows it."""
    history = talk(70, 60)
    first = finished(given(history))
    later = [*history, u(999, "stop that")]
    planned = plan(given(later, entry=first.entry))
    assert planned.view[-1].content == "stop that"
    assert planned.view[:-1] == first.view


def test_an_edit_inside_the_prefix_costs_one_new_summary() -> None:
    """STO6: never an error, and the old summary stays in the ring."""
    history = talk(70, 60)
    entry = finished(given(history)).entry
    edited = [*history[:8], u(999, "another question"), *history[9:]]
    planned = plan(given(edited, entry=entry))
    assert planned.job is not None and planned.job.notes == ""
    again = finished(given(edited, entry=entry))
    assert again.entry.ring == (entry.cache,)
    assert again.facts["cache"]["result"] == "hit"


def test_a_partial_summary_is_marked_as_such() -> None:
    """SUM4: the cut is where the last good pass ended, with facts of just that span."""
    planned = plan(given([u(1, "You must never stop."), *talk(70, 60)], summariser_window=2_400))
    assert planned.job is not None
    end = min(planned.job.safe_ends)
    outcome = SummaryOutcome("done", "summariser_failed", "blank", "CORE", end, 5, 2)
    done = settle(planned, outcome)
    assert done.entry.cache is not None and done.entry.cache.prefix_n == end
    assert done.decision is not None and done.decision.summary is not None
    assert done.decision.summary["source"] == "partial"
    assert done.decision.reason == "summariser_failed"


def test_core_and_facts_stay_within_their_share() -> None:
    """A long core leaves less to the facts."""
    rules = [u(n, f"You must always keep rule {n}, and never rule {n + 1}.") for n in range(900)]
    planned = plan(given(rules, 16_000))
    assert planned.job is not None and planned.reading is not None
    core = prose(1_500)
    outcome = SummaryOutcome("done", core=core, cut=planned.job.cut)
    done = settle(planned, outcome)
    assert done.entry.cache is not None
    size = planned.given.means.sizes.text(done.entry.cache.summary)
    assert size <= planned.reading.limits.block_max + 20


def test_settling_what_asked_for_nothing_changes_nothing() -> None:
    """A finished plan is finished."""
    planned = plan(given(talk(3)))
    assert settle(planned, skipped("thrashing")) is planned


def test_a_lower_goal_for_one_call_makes_it_smaller() -> None:
    """OVF9: after a silent cut the next call plans with half of the budget."""
    history = talk(15, 150)
    usual, lower = plan(given(history)), plan(given(history, goal_ratio=0.5, withheld="thrashing"))
    assert usual.decision is None
    assert lower.state is not None and lower.reading is not None
    assert lower.state.view.tokens <= 0.5 * lower.reading.budget.available
    assert lower.decision is not None and "0.5 ×" in lower.decision.because


def test_settings_shape_the_view() -> None:
    """The numbers of the constructor are those that count."""
    history = talk(14, 400)
    few = plan(given(history, settings=Settings(keep_tool_groups=1)))
    assert few.state is not None
    assert few.state.view.count("placeholder") == 13


def test_an_entry_of_a_plan_is_plain_values() -> None:
    """STO1: what planning stores can be stored anywhere."""
    entry: CompactionEntry = finished(given(talk(70, 60))).entry
    value = entry_to_dict(entry)
    assert value["cache"]["prefix_n"] > 0 and "marks" in value or value["cache"]


def test_without_a_user_message_the_summary_opens_the_view() -> None:
    """Its role satisfies the wires."""
    history = [message for message in talk(90, 60) if message.role is not Role.USER]
    planned = no_bug(finished(given(history)))
    assert planned.view[0].role is Role.USER
    assert planned.view[0].origin == "filter:compaction"


def test_feedback_of_a_filter_does_not_replace_what_a_person_asked() -> None:
    """The newest message of each is there."""
    feedback = user("Answer again, as JSON.", "f1").replace(origin="filter:validation")
    history = [u(1, "The question."), *talk(70, 60)[1:3], *rounds(90, prose(60)), feedback]
    planned = no_bug(finished(given(history)))
    texts = [m.content for m in planned.view]
    assert "The question." in texts and "Answer again, as JSON." in texts


def test_what_was_refused_is_a_ceiling() -> None:
    """A run does not send again what its model refused; the decision says so."""
    history = talk(14, 150)
    usual = plan(given(history))
    assert usual.state is not None and usual.decision is None
    lower = finished(given(history, ceiling=1_500))
    assert lower.state is not None and lower.state.view.tokens <= 1_500
    assert lower.decision is not None
    assert lower.decision.because.endswith("> 1500, near what this model refused")


def test_a_summary_somebody_asked_for_needs_no_trigger() -> None:
    """OPR5: the no-op rule still holds, and nothing is dropped for it."""
    asked = plan(given(talk(40, 60), 16_000, manual=True))
    assert asked.job is not None and asked.trigger == "manual"
    done = settle(asked, SummaryOutcome("done", core="CORE", cut=asked.job.cut))
    assert stages(done) == [("summary", "done")]
    assert done.decision is not None and done.decision.because == "asked for by an operator"
    nothing = plan(given(talk(2), manual=True))
    assert nothing.job is None and nothing.decision is not None
    assert nothing.decision.reason == "nothing_to_summarise"


def test_a_summary_made_ahead_of_need_is_adopted() -> None:
    """STO10: above the trigger, without a job."""
    history = talk(46, 60)
    hashes = Reading(given(history)).hashes
    ready = Cache(120, hashes[120], "READY", {"ready": True})
    planned = plan(given(history, entry=CompactionEntry(ring=(ready,))))
    assert planned.adopted and planned.job is None
    assert planned.state is not None and planned.state.view.layout.prefix_n == 120
