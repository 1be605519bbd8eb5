"""Rendering: what stands where in a view, and what is said of each message."""

from __future__ import annotations

import dataclasses
from typing import Any

from backscroll.compaction.canon_forms import sent_digest
from backscroll.compaction.reading import Reading
from backscroll.compaction.recalled import Piece, recall_line
from backscroll.compaction.store import Cache
from backscroll.compaction.summary_text import join_summary
from backscroll.compaction.texts import CompactionTexts
from backscroll.compaction.view import Layout, View, claims, last_reference, render
from backscroll.kernel.message import Message, Role, system, tool_result
from compaction.histories import a, t, u
from compaction.planning import MEANS, given, prose, talk


def cache(reading: Reading, n: int) -> Cache:
    """Return a cache that stands for the first n messages."""
    return Cache(n, reading.hashes[n], join_summary("CORE", "FACTS"))


def shown(view: View) -> list[tuple[Any, ...]]:
    """Return what each item is: its index or its name, and its fate."""
    return [(item.what or item.index, item.fate) for item in view.items]


def test_without_marks_a_view_is_the_history() -> None:
    """PLN6: the same messages, kept."""
    history = talk(3)
    view = render(Reading(given(history)), Layout())
    assert view.messages == tuple(history)
    assert {item.fate for item in view.items} == {"kept"} and not view.summarised + view.dropped
    assert view.tokens == Reading(given(history)).whole


def test_a_summary_stands_behind_the_leading_system_messages() -> None:
    """One message, then what is kept of the prefix, then the rest."""
    history = [system("rules", "s1"), *talk(3), system("more", "s2"), *talk(2, start=5)]
    reading = Reading(given(history))
    view = render(reading, Layout(cache(reading, 14), 14, 14))
    assert shown(view)[:4] == [(0, "kept"), ("summary", "injected"), (13, "kept"), (14, "kept")]
    assert view.items[2].why == "moved, system message"
    assert (view.summarised, view.dropped) == (tuple(range(1, 13)), ())
    assert "messages #1 to #14" in view.items[1].message.text


def test_the_newest_user_message_is_sent_again_behind_the_summary() -> None:
    """PLN7, compaction-12: word for word, though the prefix covers it."""
    history = [u(1, "Goal: rename A to B, never touch C"), *talk(4)[1:3], *talk(4, start=9)[1:3]]
    reading = Reading(given(history))
    view = render(reading, Layout(cache(reading, 3), 3, 3))
    assert shown(view) == [("summary", "injected"), (0, "kept"), (3, "kept"), (4, "kept")]
    assert view.items[1].message is history[0]
    assert view.items[1].why == "moved, newest user message"


def test_what_was_dropped_has_a_digest_with_its_facts() -> None:
    """It names count, range and size, and carries what rules found in the span."""
    history = [u(1, "You must never touch staging."), *talk(4), u(90)]
    reading = Reading(given(history))
    view = render(reading, Layout(None, 0, 5))
    assert shown(view)[0] == ("digest", "injected")
    text = view.items[0].message.text
    assert "5 earlier messages (#1 to #5, about" in text
    assert "must never touch staging" in text
    assert (view.summarised, view.dropped) == ((), (0, 1, 2, 3, 4))


def test_behind_a_summary_only_the_rest_is_dropped() -> None:
    """Summary first, then the digest of what neither holds."""
    reading = Reading(given(talk(5)))
    view = render(reading, Layout(cache(reading, 4), 4, 8))
    assert shown(view)[:3] == [("summary", "injected"), ("digest", "injected"), (8, "kept")]
    assert (view.summarised, view.dropped) == ((0, 1, 2, 3), (4, 5, 6, 7))
    assert "4 earlier messages (#5 to #8" in view.items[1].message.text
    assert view.count("summarised") == 4 and view.count("kept") == 12


def test_a_span_in_which_all_is_kept_needs_no_digest() -> None:
    """Nothing is left out, so nothing is said."""
    history = [u(1), system("rules", "s1"), u(2)]
    view = render(Reading(given(history)), Layout(None, 0, 2).moved())
    assert shown(view)[0] == ("digest", "injected")
    only = render(Reading(given([system("rules", "s1"), u(2)])), Layout(None, 0, 1))
    assert shown(only) == [(0, "kept"), (1, "kept")]


def test_before_the_mark_results_are_placeholders() -> None:
    """Their tokens are those of what is sent; before stays what it was."""
    history = talk(6, 400)
    reading = Reading(given(history))
    view = render(reading, Layout(None, 8, 0))
    placeholders = [item.index for item in view.items if item.fate == "placeholder"]
    assert placeholders == [2, 6]
    assert view.tokens < reading.whole
    assert view.items[2].after < view.items[2].before / 3


def test_every_message_has_one_claim_and_the_tokens_add_up() -> None:
    """PLN8: sent ones first, in order, with the digest of what was sent."""
    history = talk(6, 400)
    reading = Reading(given(history))
    view = render(reading, Layout(cache(reading, 4), 8, 4))
    found = claims(view, reading)
    assert sorted(c.index for c in found if c.index is not None) == list(range(24))
    assert sum(c.tokens[1] for c in found if c.tokens) == view.tokens
    sent = [c.digest for c in found if c.digest is not None]
    assert sent == [sent_digest(message) for message in view.messages]
    assert {c.by for c in found} == {"compaction"}
    assert found[0].what == "summary" and found[0].message_id is None
    assert found[-1].fate == "summarised" and found[-1].message_id == history[3].id


def test_references_pass_over_what_repair_made_up() -> None:
    """`#n` counts what is stored."""
    made_up = tool_result("c1", "read", "none")
    history = [u(1), a(2, None, "c1"), made_up.replace(id=None), u(3), a(4)]
    reading = Reading(given(history))
    assert last_reference(reading, 3) == 2
    assert last_reference(reading, 4) == 3
    assert last_reference(reading, 0) is None


def test_a_dropped_span_without_references_has_a_digest_too() -> None:
    """Only made-up results: nothing to name, and no error."""
    history = [Message(Role.TOOL, prose(9), None, tool_call_id="x"), u(1), a(2), t(3, "y"), u(4)]
    view = render(Reading(given(history)), Layout(None, 0, 1))
    assert "(#- to #-" in view.items[0].message.text


def test_looked_up_text_stands_behind_the_group_that_asked() -> None:
    """RCL3: where recall is on, and not before the mark."""
    line = recall_line("#1", 1, 1, [Piece("m10", 0, 30)], CompactionTexts())
    asking = [a(90, None, "r1"), tool_result("r1", "recall", line, id="m91"), u(92)]
    history = [*talk(1), *asking]
    means = dataclasses.replace(MEANS, recall=True)
    reading = Reading(given(history, means=means))
    view = render(reading, Layout())
    assert shown(view)[5:] == [(5, "kept"), ("recall", "injected"), (6, "kept")]
    assert shown(render(reading, Layout(None, 6, 0)))[5:] == [(5, "kept"), (6, "kept")]
    assert shown(render(Reading(given(history)), Layout()))[5:] == [(5, "kept"), (6, "kept")]


def test_a_look_up_of_what_is_gone_adds_nothing() -> None:
    """RCL4: the line alone is sent."""
    line = recall_line("#1", 1, 1, [Piece("gone", 0, 30)], CompactionTexts())
    history = [a(90, None, "r1"), tool_result("r1", "recall", line, id="m91"), u(92)]
    means = dataclasses.replace(MEANS, recall=True)
    assert len(render(Reading(given(history, means=means)), Layout()).items) == 3
