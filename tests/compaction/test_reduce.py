"""Shorten, drop, trim: smaller views without a summary."""

from __future__ import annotations

import pytest
from backscroll.compaction.reading import Reading
from backscroll.compaction.reduce import (
    changed_indexes,
    contributors,
    drop,
    force_micro,
    move_micro,
    trim,
)
from backscroll.compaction.store import Cache
from backscroll.compaction.view import Layout, View, render
from backscroll.kernel.content import TextPart
from backscroll.kernel.message import Message, Role, system, user
from compaction.histories import PNG, SIGNED, a, rounds, t, u
from compaction.planning import given, prose, talk


def start(history: list[Message], window: int = 8_000) -> tuple[Reading, View]:
    """Return a reading and its plain view."""
    reading = Reading(given(history, window))
    return reading, render(reading, Layout())


def test_the_watermark_moves_when_that_pays() -> None:
    """MIC1: all but the newest four tool groups."""
    reading, view = start(talk(14, 400))
    moved = move_micro(reading, view)
    assert moved.layout.micro_n == 41
    assert moved.count("placeholder") == 10
    assert move_micro(reading, moved) is moved


def test_it_stays_where_hardly_anything_is_gained() -> None:
    """MIC5: a move costs the provider's cache."""
    reading, view = start([*talk(5, 5), *talk(4, 300, start=9)])
    assert move_micro(reading, view) is view


def test_forced_it_shortens_all_but_the_newest_group() -> None:
    """OVF2: one tool group, bodies of at most 1,000 tokens, older files as stubs."""
    image = user((TextPart("see"), PNG), "m1")
    reading, view = start([image, *rounds(6, prose(2_000), start=5), u(90)], 32_000)
    harder, small = force_micro(reading, view)
    assert small.count("placeholder") == 6
    assert "image/png left out" in small.items[0].message.text
    last = small.items[-2]
    assert (last.fate, last.after) == ("truncated", harder.estimate(last.message))
    assert last.after < 1_050


def test_dropping_ends_at_the_goal_with_whole_groups() -> None:
    """Oldest first; the digest is counted too."""
    reading, view = start(talk(20, 300))
    dropped = drop(reading, view, 3_000)
    assert 2_000 < dropped.tokens <= 3_000
    assert reading.is_cut(dropped.layout.drop_n) and dropped.items[0].what == "digest"


def test_what_is_kept_is_never_dropped() -> None:
    """GRP6: the system message and the last group stay, however low the goal."""
    history = [u(1), system("rules", "s1"), *talk(6, 300)]
    reading, view = start(history)
    dropped = drop(reading, view, 1)
    assert [item.index for item in dropped.items if item.index is not None] == [1, 22, 25]
    assert drop(reading, dropped, 1) is dropped


def test_a_digest_that_grows_makes_more_go() -> None:
    """Facts of what is dropped take room of their own."""
    history = [u(n, f"You must always keep rule {n} of {n}: " + prose(30)) for n in range(1, 200)]
    reading, view = start(history)
    dropped = drop(reading, view, 3_000)
    assert dropped.tokens <= 3_000 and dropped.items[0].after > 300


def test_dropping_goes_on_behind_a_summary() -> None:
    """What the summary stands for is gone already."""
    history = talk(20, 300)
    reading = Reading(given(history))
    view = render(reading, Layout(Cache(20, reading.hashes[20], "CORE"), 20, 20))
    dropped = drop(reading, view, 3_000)
    assert dropped.layout.drop_n > 20
    assert dropped.items[0].what == "summary"
    assert dropped.count("summarised") == 20


def test_trimming_begins_with_the_results() -> None:
    """Step 4: smaller caps and fewer whole tool groups, until the view fits."""
    history = [u(1), *rounds(6, prose(900)), u(90, "and now?")]
    reading, view = start(history, 16_000)
    _, small = trim(reading, view, 2_500)
    assert small.tokens <= 2_500
    assert small.items[-1].message is history[-1]


@pytest.mark.parametrize("role", ["user", "assistant"])
def test_then_the_largest_message_is_cut(role: str) -> None:
    """Head and tail stay, with a marker that names size and reference."""
    text = "BEGIN " + prose(3_000) + " END"
    big = u(1, text) if role == "user" else a(1, text)
    history = [big, a(2, "fine"), u(3, "and now?")]
    reading, view = start(history, 16_000)
    _, small = trim(reading, view, 1_000)
    item = small.items[0]
    assert small.tokens <= 1_000
    assert item.fate == "truncated" and "#1; the middle is left out" in item.message.text
    assert item.message.text.startswith("BEGIN") and item.message.text.endswith("END")
    assert small.items[2].message is history[2]


def test_the_newest_user_message_is_cut_last_of_all() -> None:
    """Only where nothing else is left; its files stay."""
    newest = user((TextPart(prose(4_000)), PNG), "m3")
    reading, view = start([u(1, prose(2_000)), a(2, "fine"), newest], 16_000)
    _, enough = trim(reading, view, 5_700)
    assert enough.items[2].message is newest
    _, small = trim(reading, view, 3_000)
    assert small.items[2].fate == "truncated"
    content = small.items[2].message.content
    assert isinstance(content, tuple) and content[1] == PNG


def test_messages_with_blocks_are_not_cut() -> None:
    """GRP7: byte for byte, whatever the room."""
    signed = a(1, prose(2_000)).replace(blocks=SIGNED)
    reading, view = start([signed, u(2)], 16_000)
    _, small = trim(reading, view, 500)
    assert small.items[0].message is signed and small.tokens > 500


def test_the_largest_contributors_are_named() -> None:
    """Five of them, with reference, role and tokens; ours by what they are."""
    history = [u(1, prose(900)), a(2, "x"), *[u(n, prose(n)) for n in range(3, 9)]]
    reading = Reading(given(history, 16_000))
    view = render(reading, Layout(Cache(2, "h", prose(400)), 2, 2))
    found = contributors(reading, view)
    assert len(found) == 5
    assert (found[0].ref, found[0].role) == (None, "summary")
    assert found[0].tokens > found[1].tokens


def test_changed_messages_are_those_sent_otherwise_or_not_at_all() -> None:
    """What a stage touched."""
    reading, view = start(talk(6, 400))
    assert list(changed_indexes(view, view)) == []
    assert list(changed_indexes(view, render(reading, Layout(None, 8, 0)))) == [2, 6]
    assert list(changed_indexes(view, render(reading, Layout(None, 0, 2)))) == [0, 1]


def test_a_result_without_text_is_left_alone() -> None:
    """Nothing to cut is no error."""
    silent = Message(Role.TOOL, None, "m2", tool_call_id="c1")
    reading, view = start([a(1, None, "c1"), silent, u(3, prose(2_000)), t(4, "c9", "x")], 16_000)
    _, small = trim(reading, view, 400)
    assert small.items[1].message == silent
