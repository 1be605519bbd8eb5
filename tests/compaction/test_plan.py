"""The plan of a call: properties over random histories, and the ladder as a whole."""

from __future__ import annotations

import dataclasses
import os
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

from backscroll.compaction.budget import Asked
from backscroll.compaction.canon_forms import canon_sent
from backscroll.compaction.entry_codec import entry_to_dict
from backscroll.compaction.plan import Plan, PlanInput, force, plan, settle
from backscroll.compaction.reading import Reading
from backscroll.compaction.settings import Settings
from backscroll.compaction.store import EMPTY, CompactionEntry
from backscroll.compaction.summary_run import SummaryOutcome, skipped
from backscroll.compaction.view import Layout
from backscroll.conversation.repair import repair
from backscroll.kernel.errors import Refusal
from backscroll.kernel.message import Message, Role, system, user
from backscroll.kernel.model import ModelProfile, ModelRequest
from backscroll.providers.openai import OpenAIModel
from compaction.histories import a, histories, rounds, t, u
from compaction.planning import finished, given, prose, stages, talk
from hypothesis import example, settings
from hypothesis import given as drawn
from hypothesis import strategies as st
from provider_rules import Refused, Rules, check_openai

WINDOWS = st.sampled_from([1_000, 2_000, 4_000, 8_000, 32_000, 128_000])
WIRE = OpenAIModel(
    "m",
    base_url="http://127.0.0.1:1/v1",
    profile=ModelProfile(parts={"user": ("image/*",)}),
)


@st.composite
def inputs(draw: st.DrawFn) -> PlanInput:
    """Draw the input of a plan: repaired, of any size, with pins, under any window."""
    history = list(repair(draw(histories()), "No result.")[0])
    for at in range(len(history)):
        if draw(st.integers(0, 9)) == 0 and isinstance(history[at].content, str):
            text = prose(draw(st.sampled_from([700, 5_000, 60_000])))
            history[at] = history[at].replace(content=text)
    ids = [message.id for message in history if message.id is not None]
    pins = draw(st.sets(st.sampled_from(ids), max_size=2)) if ids else set()
    withheld = draw(st.sampled_from([None, None, "no_summariser"]))
    ratio = draw(st.sampled_from([0.7, 1.0, 1.3, 2.0]))
    return given(history, draw(WINDOWS), pins=frozenset(pins), withheld=withheld, ratio=ratio)


def no_bug(planned: Plan) -> Plan:
    """Return the plan; fail where our own check failed or our own code raised."""
    broken = [warning for warning in planned.warnings if warning.reason == "invariant"]
    assert not broken, broken
    return planned


def is_accepted(messages: Sequence[Message]) -> bool:
    """Say whether a strict server takes the list."""
    try:
        check_openai(WIRE.encode(ModelRequest(tuple(messages)), False), Rules())
    except Refused:
        return False
    return True


def are_paired(messages: Sequence[Message]) -> bool:
    """Say whether every result follows its call and every call has its results."""
    open_calls: list[str] = []
    for message in messages:
        if message.role is Role.TOOL:
            if message.tool_call_id not in open_calls:
                return False
            open_calls.remove(message.tool_call_id)
        elif open_calls:
            return False
        open_calls += [call.id for call in message.tool_calls]
    return not open_calls


@settings(max_examples=60, deadline=None)
@drawn(inputs())
def test_no_view_splits_a_pair_and_a_strict_server_takes_it(input: PlanInput) -> None:
    """PLN1, GRP1: whole groups, valid roles, and the wire's own check passes."""
    planned = no_bug(finished(input))
    assert are_paired(planned.view)
    if is_accepted(input.history):
        assert is_accepted(planned.view)


@settings(max_examples=60, deadline=None)
@drawn(inputs())
def test_planning_again_on_what_was_stored_changes_nothing(input: PlanInput) -> None:
    """PLN2: the same view, the same entry, and no summary wanted."""
    first = no_bug(finished(input))
    again = no_bug(plan(dataclasses.replace(input, entry=first.entry)))
    assert again.job is None
    assert again.view == first.view
    assert again.entry == first.entry


@settings(max_examples=25, deadline=None)
@drawn(histories(max_rounds=25), st.sampled_from([1_500, 3_000, 8_000]))
def test_marks_never_go_back_while_a_history_grows(drawn: list[Message], window: int) -> None:
    """PLN4: and each view begins with the one before, unless a mark moved."""
    history = list(repair(drawn, "No result.")[0])
    ends = [group.start for group in Reading(given(history, window)).groups][1:]
    entry, before = EMPTY, plan(given([], window))
    for end in [*ends, len(history)]:
        now = no_bug(finished(given(history[:end], window, entry)))
        entry = now.entry
        was, layout = layout_of(before), layout_of(now)
        assert layout.prefix_n >= was.prefix_n
        assert max(layout.micro_n, layout.prefix_n) >= max(was.micro_n, was.prefix_n)
        assert layout.start >= was.start
        if layout == was and is_comparable(before, now):
            assert [canon_sent(m) for m in now.view[: len(before.view)]] == [
                canon_sent(m) for m in before.view
            ]
        before = now


def layout_of(planned: Plan) -> Layout:
    """Return the layout of a view, with the marks that are kept."""
    assert planned.state is not None
    return planned.state.marked


def is_comparable(before: Plan, now: Plan) -> bool:
    """Say whether nothing but growth may change the view: no trimming, no other newest question.

    What is kept before a mark, such as the newest user message, may give way to something later.
    """
    assert before.reading is not None and now.reading is not None
    mark = max(layout_of(before).start, layout_of(before).micro_n)
    kept = [{at for at in plan.reading.kept if at < mark} for plan in (before, now) if plan.reading]
    return kept[0] == kept[1] and not trimmed(before) and not trimmed(now)


def trimmed(planned: Plan) -> bool:
    """Say whether the view was cut to the hard limit, which is decided anew each time."""
    return any(stage == "trim" for stage, _ in stages(planned))


@settings(max_examples=60, deadline=None)
@drawn(inputs())
def test_a_view_fits_whenever_what_must_be_kept_fits(input: PlanInput) -> None:
    """PLN5: else the warning says that it cannot."""
    planned = no_bug(finished(input))
    assert planned.reading is not None and planned.state is not None
    fits = planned.state.view.tokens <= planned.reading.budget.room
    assert fits or "cannot_fit" in planned.facts["warnings"]


def test_below_the_thresholds_the_history_is_sent_as_it_is() -> None:
    """PLN6: capped, nothing stored, nothing asked, nothing decided."""
    history = [*talk(4), *rounds(1, prose(6_000), start=90), u(99)]
    planned = plan(given(history, 32_000))
    assert not planned.changed and planned.job is None and planned.decision is None
    assert planned.view[:16] == tuple(history[:16])
    assert planned.claims[-2].fate == "truncated"


@settings(max_examples=60, deadline=None)
@drawn(inputs())
def test_the_newest_user_message_is_there_word_for_word(input: PlanInput) -> None:
    """PLN7: wherever the window holds it, and never before the summary."""
    planned = no_bug(finished(input))
    users = [m for m in input.history if m.role is Role.USER]
    if not users or trimmed(planned):
        return
    at = [canon_sent(m) for m in planned.view].index(canon_sent(users[-1]))
    summaries = [n for n, m in enumerate(planned.view) if m.origin == "filter:compaction"]
    assert all(at > n for n in summaries)


@settings(max_examples=60, deadline=None)
@drawn(inputs())
def test_every_message_has_one_fate_and_the_tokens_add_up(input: PlanInput) -> None:
    """PLN8: claims cover the history once."""
    planned = no_bug(finished(input))
    indexes = [claim.index for claim in planned.claims if claim.index is not None]
    assert sorted(indexes) == list(range(len(input.history)))
    tokens = sum(claim.tokens[1] for claim in planned.claims if claim.tokens)
    assert tokens == planned.facts["estimate"]["view"]


@settings(max_examples=60, deadline=None)
@drawn(histories(), WINDOWS)
@example([], 1_000)
@example([system("only", "s1")], 1_000)
@example([t(1, "orphan"), a(2, None, "c1", "c1"), a(3, "x")], 1_000)
def test_no_list_of_messages_makes_planning_raise(history: list[Message], window: int) -> None:
    """PLN9: repaired or not, with or without a refusal behind it."""
    for planned in (no_bug(finished(given(history, window))), plan(given(history, None))):
        for refusal in (Refusal("overflow"), Refusal("heal"), Refusal("overflow_bytes")):
            forced = force(planned, refusal)
            if forced.job is not None:
                forced = settle(forced, skipped("no_summariser"))
            no_bug_but_healing(forced, refusal)


def no_bug_but_healing(planned: Plan, refusal: Refusal) -> None:
    """Fail where our own code raised; healing reports itself as ours."""
    whys = [w.data["why"] for w in planned.warnings if w.reason == "invariant"]
    assert all(refusal.cls == "heal" and "malformed" in why for why in whys)


def test_our_own_failure_sends_the_history_and_says_so() -> None:
    """PLN9: a bug of ours costs the compaction, never the run."""
    broken: Any = (object(),)
    planned = plan(PlanInput(broken, Asked(), given([]).means))
    assert planned.view == broken
    assert planned.decision is not None and planned.decision.reason == "invariant"
    assert planned.warnings[0].reason == "invariant"
    assert force(planned, Refusal("overflow")).reaction is None
    assert planned.prompt == 0


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


SCRIPT = """
import hashlib, json, sys
sys.path.insert(0, "tests")
from compaction.planning import finished, given, talk
from compaction.histories import u
from backscroll.compaction.canon_forms import canon_sent
from backscroll.compaction.entry_codec import entry_to_dict
planned = finished(given([u(1, "You must never use port 8080."), *talk(70, 60)]))
claims = [repr(claim) for claim in planned.claims]
parts = [[canon_sent(m) for m in planned.view], claims, entry_to_dict(planned.entry)]
print(hashlib.sha256(json.dumps(parts).encode()).hexdigest())
"""


def test_two_processes_give_equal_bytes() -> None:
    """PLN3: view, claims and entry, whatever the hash seed."""
    digests = {
        subprocess.run(
            [sys.executable, "-c", SCRIPT],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
            timeout=60,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(digests) == 1


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
