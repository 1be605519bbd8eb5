"""The plan of a call: properties over random histories."""

from __future__ import annotations

import dataclasses
import os
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

from backscroll.compaction.budget import Asked
from backscroll.compaction.canon_forms import canon_sent
from backscroll.compaction.plan import Plan, PlanInput, force, plan, settle
from backscroll.compaction.reading import Reading
from backscroll.compaction.store import EMPTY
from backscroll.compaction.summary_run import skipped
from backscroll.compaction.view import Layout
from backscroll.conversation.repair import repair
from backscroll.kernel.errors import Refusal
from backscroll.kernel.message import Message, Role, system
from compaction.histories import a, histories, rounds, t, u
from compaction.planning import finished, given, prose, stages, talk
from hypothesis import example, settings
from hypothesis import given as drawn
from hypothesis import strategies as st
from strict_wires import MODELS, is_accepted

PINNED = frozenset({"m1"})
SHORT = 300
WINDOWS = st.sampled_from([1_000, 2_000, 4_000, 8_000, 32_000, 128_000])


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
    """PLN1, GRP1: whole groups, valid roles, and the check of either wire passes."""
    planned = no_bug(finished(input))
    assert are_paired(planned.view)
    for wire in MODELS:
        assert is_accepted(wire, planned.view) or not is_accepted(wire, input.history), wire


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
@example(given(talk(90, 60), 2_000, withheld="no_summariser"))
def test_a_view_fits_whenever_what_must_be_kept_fits(input: PlanInput) -> None:
    """PLN5: else the warning says that it cannot."""
    planned = no_bug(finished(input))
    assert planned.reading is not None and planned.state is not None
    reading, room = planned.reading, planned.reading.budget.room
    fits = planned.state.view.tokens <= room
    assert fits is ("cannot_fit" not in planned.facts["warnings"])
    beside = sum(item.after for item in planned.state.view.items if item.index is None)
    kept = sum(reading.estimate(reading.history[index]) for index in reading.kept)
    assert fits or kept + beside > room


def test_below_the_thresholds_the_history_is_sent_as_it_is() -> None:
    """PLN6: capped, nothing stored, nothing asked, nothing decided."""
    history = [*talk(4), *rounds(1, prose(6_000), start=90), u(99)]
    planned = plan(given(history, 32_000))
    assert not planned.changed and planned.job is None and planned.decision is None
    assert planned.view[:16] == tuple(history[:16])
    assert planned.claims[-2].fate == "truncated"


@settings(max_examples=60, deadline=None)
@drawn(inputs())
@example(given([u(1, prose(5_000)), a(2, "Fine."), u(3, prose(300))], 2_000, pins=PINNED))
def test_the_newest_user_message_is_there_word_for_word(input: PlanInput) -> None:
    """PLN7: wherever the window holds it, and never before the summary."""
    planned = no_bug(finished(input))
    users = [m for m in input.history if m.role is Role.USER]
    sent = [canon_sent(m) for m in planned.view]
    if not users or trimmed(planned) and canon_sent(users[-1]) not in sent:
        assert not users or is_cut_for_want_of_room(planned, users[-1])
        return
    at = sent.index(canon_sent(users[-1]))
    summaries = [n for n, m in enumerate(planned.view) if m.origin == "filter:compaction"]
    assert all(at > n for n in summaries)


def is_cut_for_want_of_room(planned: Plan, question: Message) -> bool:
    """Say whether a question would not fit whole though all else that may be cut is cut."""
    assert planned.reading is not None and planned.state is not None
    others = [item for item in planned.state.view.items if item.message.id != question.id]
    least = sum(
        min(item.after, SHORT)
        if item.index is not None and is_cuttable(item.message)
        else item.after
        for item in others
    )
    return least + planned.reading.estimate(question) > planned.reading.budget.room


def is_cuttable(message: Message) -> bool:
    """Say whether the text of a message may be cut before that of the newest question."""
    return message.role is not Role.SYSTEM and message.blocks is None


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
