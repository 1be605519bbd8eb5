"""Which summary a call uses."""

from __future__ import annotations

import dataclasses

from backscroll.compaction.layouts import (
    Choice,
    choose_layout,
    is_valid,
    valid_caches,
    valid_marks,
)
from backscroll.compaction.reading import Reading
from backscroll.compaction.store import EMPTY, Cache, CompactionEntry, Marks
from backscroll.compaction.summary_text import join_summary
from backscroll.kernel.message import Message, system
from compaction.histories import u
from compaction.planning import given, talk

LONG = talk(24, 400)


def cache(history: list[Message], n: int, text: str = "CORE") -> Cache:
    """Return a cache that stands for the first n messages of a history."""
    hashes = Reading(given(history)).hashes
    return Cache(n, hashes[n], join_summary(text, "FACTS"))


def choose(history: list[Message], entry: CompactionEntry, window: int = 8_000) -> Choice:
    """Return the layout for a history under a window."""
    reading = Reading(given(history, window))
    return choose_layout(reading, entry, reading.limits.trigger)


def test_without_a_summary_the_history_itself_is_used() -> None:
    """There was none to hit or to miss."""
    choice = choose(LONG, EMPTY)
    assert (choice.layout.cache, choice.result, choice.uncompacted) == (None, "none", False)
    assert choice.to_dict() == {"result": "none"}


def test_a_summary_is_used_while_its_prefix_is_there() -> None:
    """STO6: hit after the prefix, also when the history grew or lost its end."""
    entry = CompactionEntry(cache(LONG, 80))
    for history in (LONG, LONG[:90], [*LONG, u(999)]):
        choice = choose(history, entry)
        assert (choice.layout.cache, choice.result) == (entry.cache, "hit")
    assert choose(LONG, entry).to_dict()["prefix_n"] == 80


def test_an_edit_inside_the_prefix_is_a_miss() -> None:
    """STO6: an older summary before the edit serves, else none."""
    edited = [*LONG[:50], u(999, "edited"), *LONG[51:]]
    ring = (cache(LONG, 40, "OLD"),)
    found = choose(edited, CompactionEntry(cache(LONG, 80), ring=ring))
    assert (found.layout.cache, found.result, found.why) == (ring[0], "hit", "an older summary")
    none = choose(edited, CompactionEntry(cache(LONG, 80)))
    assert (none.layout.cache, none.result) == (None, "miss")
    assert "first 80 messages" in none.why
    lost = choose(edited, CompactionEntry(None, ring=(cache(LONG, 80),)))
    assert lost.result == "none"


def test_of_two_branches_each_finds_its_own_summary() -> None:
    """STO7: switching between them costs no call once both are kept."""
    other = [*LONG[:20], u(999, "another way"), *LONG[21:]]
    here, there = cache(LONG, 80, "HERE"), cache(other, 80, "THERE")
    entry = CompactionEntry(here, ring=(there,))
    assert choose(LONG, entry).layout.cache == here
    assert choose(other, entry).layout.cache == there


def test_a_larger_window_brings_the_whole_history_back() -> None:
    """PLN11: without a call, and it is said; an older summary comes back in between."""
    entry = CompactionEntry(cache(LONG, 80), ring=(cache(LONG, 40, "OLD"),))
    whole = choose(LONG, entry, 100_000)
    assert (whole.layout.cache, whole.uncompacted) == (None, True)
    middle = choose(LONG, entry, 16_000)
    assert (middle.layout.cache, middle.uncompacted) == (entry.ring[0], True)
    assert choose(LONG, entry, 8_000).layout.cache == entry.cache


def test_marks_come_into_use_with_the_summary_that_covers_most() -> None:
    """They never lie before its prefix."""
    reading = Reading(given(LONG))
    marks = Marks(90, 84, 90, reading.hashes[90])
    choice = choose(LONG, CompactionEntry(cache(LONG, 80), marks=marks))
    assert (choice.layout.micro_n, choice.layout.drop_n) == (90, 84)
    older = Marks(60, 0, 60, reading.hashes[60])
    choice = choose(LONG, CompactionEntry(cache(LONG, 80), marks=older))
    assert (choice.layout.micro_n, choice.layout.drop_n) == (80, 80)
    alone = choose(LONG, CompactionEntry(marks=older))
    assert (alone.layout.micro_n, alone.layout.drop_n) == (60, 0)


def test_marks_beyond_the_summary_stay_even_where_all_would_fit() -> None:
    """PLN4: the same view is not shortened again a little later."""
    reading = Reading(given(LONG))
    marks = Marks(90, 0, 90, reading.hashes[90])
    entry = CompactionEntry(cache(LONG, 88), marks=marks)
    assert choose(LONG, entry).layout.micro_n == 90
    assert choose(LONG, entry.replace(marks=None)).layout.micro_n == 88


def test_marks_of_another_history_are_not_used() -> None:
    """Valid while the chain at their place matches."""
    reading = Reading(given(LONG))
    good = Marks(60, 0, 60, reading.hashes[60])
    assert valid_marks(reading, good) == good
    assert valid_marks(reading, dataclasses.replace(good, at_hash="x")) is None
    assert valid_marks(reading, dataclasses.replace(good, at_n=999)) is None
    assert valid_marks(reading, None) is None


def test_a_cache_must_end_at_a_safe_place() -> None:
    """The hash alone is not enough: the cut is judged again."""
    reading = Reading(given(LONG))
    inside = Cache(82, reading.hashes[82], "x")
    assert not is_valid(reading, inside)
    assert not is_valid(reading, Cache(999, "x", "x"))
    assert is_valid(reading, Cache(80, reading.hashes[80], "x"))


def test_what_was_made_ahead_of_need_is_not_a_candidate() -> None:
    """STO10: the view before the trigger is unchanged by it."""
    ready = dataclasses.replace(cache(LONG, 88), made={"ready": True})
    entry = CompactionEntry(cache(LONG, 80), ring=(ready,))
    assert valid_caches(Reading(given(LONG)), entry) == [entry.cache]
    assert choose(LONG, entry).layout.cache == entry.cache


def test_kept_messages_of_the_prefix_count() -> None:
    """A summary with much that is sent again beside it is no easy fit."""
    history = [system("rule " * 3_000, "s0"), *LONG]
    choice = choose(history, CompactionEntry(cache(history, 81)), 12_000)
    assert choice.layout.cache is not None


def test_a_low_goal_does_not_bring_the_whole_history_back() -> None:
    """OVF2: after a refusal what fits easily is what fits the goal."""
    reading = Reading(given(LONG, 100_000))
    entry = CompactionEntry(cache(LONG, 80))
    assert choose_layout(reading, entry, 9_000).layout.cache == entry.cache
