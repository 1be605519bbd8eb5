"""A history read for one call: where it may be cut, and how each message may go."""

from __future__ import annotations

import dataclasses

from backscroll.compaction.micro import Shape
from backscroll.compaction.reading import Reading
from backscroll.compaction.recalled import Piece, recall_line
from backscroll.compaction.texts import CompactionTexts
from backscroll.compaction.tokens import Sizes
from backscroll.kernel.content import TextPart
from backscroll.kernel.message import Message, Role, system, tool_result, user
from compaction.histories import PNG, SIGNED, a, rounds, t, u
from compaction.planning import MEANS, given, prose, talk

LONG = prose(3_000)


def read(history: list[Message], **changes: object) -> Reading:
    """Return a reading of a history."""
    return Reading(given(history, **changes))  # type: ignore[arg-type]  # passed on


def test_the_sizes_follow_from_the_budget() -> None:
    """Budget, limits, hashes and references are those of the request."""
    reading = read(talk(2), window=10_000, learned=5_000, ratio=1.2)
    assert (reading.budget.window, reading.budget.ratio) == (5_000, 1.2)
    assert reading.limits.trigger == int(0.85 * reading.budget.available)
    assert (len(reading.hashes), reading.refs) == (9, (1, 2, 3, 4, 5, 6, 7, 8))
    assert reading.group_of(2).start == 1


def test_messages_go_capped_and_before_the_mark_shortened() -> None:
    """MIC3: the same message has a place behind and a place before the watermark."""
    reading = read([*rounds(1, LONG), *rounds(5, "ok", start=2), u(90)])
    assert reading.shape(1, before_mark=False).fate == "truncated"
    assert reading.shape(1, before_mark=True).fate == "placeholder"
    assert reading.shape(0, before_mark=True) == Shape(reading.history[0])


def test_what_cannot_be_shortened_is_still_capped() -> None:
    """A message with blocks keeps its bytes, and so does the newest user message."""
    signed = a(1, "I think", "c1").replace(blocks=SIGNED)
    reading = read([signed, t(2, "c1", LONG), u(3, LONG)])
    assert reading.shape(0, before_mark=True).message is signed
    assert reading.shape(2, before_mark=True).message is reading.history[2]


def test_a_pinned_group_is_sent_as_it_is() -> None:
    """GRP6, MIC6: neither capped nor shortened."""
    history = [u(1), a(2, None, "c1"), t(3, "c1", LONG), *rounds(5, start=10), u(90)]
    reading = read(history, window=32_000, pins=frozenset({"m3"}))
    assert [reading.shape(i, True).message for i in (1, 2)] == history[1:3]
    assert not reading.pins_over_budget


def test_pins_above_their_share_are_capped_oldest_first() -> None:
    """The newest stay whole, within the limit."""
    history = [*rounds(1, LONG), *rounds(1, LONG, start=5), *rounds(3, "ok", start=10), u(90)]
    reading = read(history, window=16_000, pins=frozenset({"m3", "m11"}))
    assert reading.pins_over_budget
    assert reading.shape(1, True).fate == "truncated"
    assert reading.shape(3, True).fate == "kept"


def test_older_files_go_as_stubs_where_that_is_wanted() -> None:
    """OVF7: not those of the newest user message, and no text is touched."""
    old, new = user((TextPart("old"), PNG), "m1"), user((TextPart("new"), PNG), "m2")
    reading = read([old, u(3), a(4), new])
    lighter = reading.with_limits(reading.limits, stub_media=True)
    assert reading.shape(0, False).fate == "kept"
    stubbed = lighter.shape(0, False)
    assert stubbed.fate == "placeholder" and "image/png left out" in stubbed.message.text
    assert lighter.shape(3, False).message is new
    assert lighter.shape(1, False).fate == "kept"


def test_no_message_is_too_small_for_what_was_set() -> None:
    """A cap may be set very low, and a file may be said to take very little."""
    reading = read([*rounds(1, prose(90)), u(9)])
    low = reading.with_limits(reading.limits.replace(tool_cap=40))
    assert (reading.shape(1, False).fate, low.shape(1, False).fate) == ("kept", "truncated")
    means = dataclasses.replace(MEANS, sizes=Sizes(media_tokens={"image/*": 50}))
    small = read([user((TextPart("old"), PNG), "m1"), u(2)], means=means)
    lighter = small.with_limits(small.limits, stub_media=True)
    assert lighter.shape(0, False).fate == "placeholder"


def test_files_of_tools_are_no_older_files() -> None:
    """Only what a user sent is stubbed this way."""
    shown = Message(Role.ASSISTANT, (TextPart("see"), PNG), "m1")
    reading = read([shown, u(2)])
    lighter = reading.with_limits(reading.limits, stub_media=True)
    assert lighter.shape(0, False).message is shown


def test_other_sizes_change_the_caps() -> None:
    """A harder cap gives a shorter message; the first reading stays as it was."""
    reading = read([*rounds(1, LONG), u(9)])
    before = reading.shape(1, False).message
    harder = reading.with_limits(reading.limits.replace(tool_cap=130))
    assert reading.estimate(harder.shape(1, False).message) < reading.estimate(before)
    assert reading.shape(1, False).message is before


def test_an_edit_stands_in_place_of_every_other_shape() -> None:
    """Trimming decides last."""
    reading = read([u(1), u(2)])
    edit = Shape(u(1, "cut"), "truncated", "why")
    assert reading.with_edits({0: edit}).shape(0, True) is edit
    assert reading.shape(0, True).message is reading.history[0]


def test_a_cut_is_the_start_of_a_whole_group() -> None:
    """Not inside, not behind the last group, not at the end."""
    reading = read(talk(2))
    assert [i for i in range(9) if reading.is_cut(i)] == [1, 3, 4, 5, 7]
    assert not read([]).is_cut(0)


def test_there_is_no_cut_behind_an_open_group() -> None:
    """GRP5: what waits for a result is never summarised."""
    history = [u(1), a(2, None, "c1"), u(3), a(4), u(5)]
    reading = read(history, pending=frozenset({"c1"}))
    assert [i for i in range(5) if reading.is_cut(i)] == [1]


def test_an_orphaned_result_does_not_begin_the_rest() -> None:
    """A view never begins with a result whose call is gone."""
    reading = read([u(1), t(2, "gone"), u(3), a(4), u(5)])
    assert not reading.is_cut(1) and reading.is_cut(2)


def test_leading_system_messages_are_those_before_everything() -> None:
    """Later ones are kept where they stand."""
    assert read([system("a"), system("b"), u(1), system("c")]).leading == 2
    assert read([system("a")]).leading == 1


def test_a_stored_summary_is_sent_with_a_user_s_role() -> None:
    """Fate rewritten, wherever it stands."""
    stored = a(1, "a record").replace(origin="filter:compaction")
    shape = read([stored, u(2)]).shape(0, before_mark=True)
    assert (shape.fate, shape.message.role) == ("rewritten", Role.USER)


def test_the_whole_is_what_the_history_would_take() -> None:
    """Estimated once."""
    history = talk(2)
    reading = read(history)
    assert reading.whole == sum(map(reading.estimate, history)) == reading.whole


def test_looked_up_text_is_read_from_the_history() -> None:
    """RCL3: only where recall is on, and only of the tool's results."""
    line = recall_line("#1", 1, 1, [Piece("m1", 0, 30)], CompactionTexts())
    history = [u(1, "hello"), a(2, None, "r1"), tool_result("r1", "recall", line, id="m3")]
    on = read(history, means=dataclasses.replace(MEANS, recall=True))
    found = on.recalled(2)
    assert found is not None and "[#1 user] hello" in found.text
    assert on.recalled(0) is None and read(history).recalled(2) is None
