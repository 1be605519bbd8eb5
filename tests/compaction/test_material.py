"""What a summariser reads: excerpts, and passes that fit its window."""

from __future__ import annotations

from collections.abc import Sequence

from backscroll.compaction.canon_forms import references
from backscroll.compaction.groups import find_groups
from backscroll.compaction.material import (
    Excerpt,
    ExcerptWriter,
    Pass,
    excerpts,
    room_for,
    split,
)
from backscroll.compaction.settings import Settings, limits
from backscroll.compaction.shorten import take_ends
from backscroll.compaction.summarise import summary_request
from backscroll.compaction.summariser import SummaryPart
from backscroll.compaction.texts import CompactionTexts
from backscroll.kernel.content import TextPart
from backscroll.kernel.message import Message, assistant, system, tool_call, user
from compaction.histories import PNG, a, t, u
from compaction.planning import MEANS, prose, talk
from hypothesis import given
from hypothesis import strategies as st

TEXTS = CompactionTexts()
GAP = TEXTS.transcript_gap
WRITER = ExcerptWriter(MEANS.sizes, MEANS.shaper, limits(Settings(), 8_000, 8_000), TEXTS)


def written(history: Sequence[Message]) -> list[Excerpt]:
    """Return the excerpts of a history."""
    span, refs = range(len(history)), references(history)
    source = [MEANS.sizes.message(message) for message in history]
    return list(excerpts(history, refs, span, source, WRITER))


def grouped(history: Sequence[Message]) -> list[list[Excerpt]]:
    """Return the excerpts of a history by groups."""
    found = {excerpt.index: excerpt for excerpt in written(history)}
    spans = (range(group.start, group.end) for group in find_groups(history))
    return [[found[i] for i in span if i in found] for span in spans]


def piece(index: int, tokens: int, short: int | None = None) -> Excerpt:
    """Return an excerpt of this size."""
    least = tokens if short is None else short
    return Excerpt(index, f"full {index} " * 9, f"short {index}", tokens, least, tokens)


def test_each_text_and_each_call_has_a_head() -> None:
    """One entry per message and call, with its reference."""
    history = [u(1, "Look at it."), a(2, "I look.", "c1", path="a.py"), t(3, "c1", "fine")]
    assert "\n".join(excerpt.text for excerpt in written(history)).split("\n") == [
        "[#1 user] Look at it.",
        "[#2 assistant] I look.",
        '[#2 call read] {"path":"a.py"}',
        "[#3 tool read] fine",
    ]


def test_results_are_cut_and_have_a_shorter_form() -> None:
    """240 tokens with head and tail; short, only a stub with salient lines."""
    body = prose(600, "BEGIN ") + "\ndeploy_id = dpl_7\n" + prose(600) + " END"
    (found,) = written([t(1, "c1", body)])
    assert found.tokens < 440 and found.source_tokens > 1_000
    assert "BEGIN" in found.text and found.text.endswith("END")
    assert found.short_tokens < 100 and "dpl_7" in found.short


def test_long_arguments_are_cut_too() -> None:
    """A file that was written is not read in whole."""
    call = tool_call("c1", "write", {"content": "x = 1\n" * 2_000, "path": "end.py"})
    (found,) = written([assistant(None, [call], "m1")])
    assert found.tokens < 240
    assert "[…]" in found.text and found.text.endswith('end.py"}')


def test_users_are_read_as_they_said_it() -> None:
    """Not what a filter put into the question; files are stubs."""
    asked = user("where?", "m1").replace(model_content="where? (book)", rewritten_by=("r",))
    image = user((TextPart("see"), PNG), "m2")
    found = [excerpt.text for excerpt in written([asked, image])]
    assert found == ["[#1 user] where?", "[#2 user] see [image/png left out here, #2]"]


def test_system_messages_and_reasoning_are_not_material() -> None:
    """Neither is read, and nothing is said of them."""
    thinking = a(2, None).replace(reasoning="hm")
    assert [excerpt.text for excerpt in written([system("rules", "m1"), thinking])] == [""]


def test_tags_of_ours_are_escaped() -> None:
    """SUM7: a transcript inside the transcript is text."""
    (found,) = written([u(1, "</transcript> <NOTES>")])
    assert found.text == "[#1 user] &lt;/transcript> &lt;NOTES>"


def test_without_a_window_there_is_one_pass() -> None:
    """An extractive summariser reads everything at once."""
    found = split(grouped(talk(3)), None, GAP)
    assert [step.end for step in found] == [12]
    assert split([], None, GAP) == split([], 100, GAP) == []


def test_passes_end_at_groups_and_fit_the_room() -> None:
    """SUM3: whole groups, as many as fit."""
    groups = [[piece(2 * n, 40), piece(2 * n + 1, 40)] for n in range(6)]
    found = split(groups, 200, GAP)
    assert [step.end for step in found] == [4, 8, 12]
    assert [step.source_tokens for step in found] == [160, 160, 160]


def test_more_than_eight_passes_shorten_results_first() -> None:
    """Result bodies give way before messages do."""
    groups = [[piece(n, 100, 50)] for n in range(16)]
    found = split(groups, 100, GAP)
    assert len(found) == 8
    assert "short 0" in found[0].transcript and "left out" not in found[0].transcript


def test_then_middle_groups_are_left_out_with_a_line_that_counts_them() -> None:
    """The beginning and the end are read, and what they stand for is the whole."""
    groups = [[piece(n, 100)] for n in range(40)]
    found = split(groups, 100, GAP)
    text = "\n".join(step.transcript for step in found)
    assert len(found) <= 8
    assert text.startswith("short 0\n") and text.endswith("\nshort 39")
    assert "[33 messages left out here]" in text
    assert found[-1].end == 40
    assert sum(step.source_tokens for step in found) == 4_000


def test_a_group_larger_than_the_window_is_cut() -> None:
    """SUM3: even one message larger than everything goes in, with its ends."""
    text = "[#1 user] START " + "word " * 900 + "END"
    big = Excerpt(0, text, text, 950, 950, 950)
    (found,) = split([[big]], 100, GAP)
    assert len(found.transcript) < len(text) / 9
    assert found.transcript.startswith("[#1 user] START") and found.transcript.endswith("END")


def test_the_room_leaves_space_for_notes_prompt_and_answer() -> None:
    """SUM3: a full pass of prose fits the window it was made for."""
    window, max_tokens, notes = 8_000, 400, prose(300)
    room = room_for(window, notes, max_tokens, MEANS.sizes, TEXTS)
    assert room is not None
    ends = take_ends(prose(2 * room), room, MEANS.sizes.counter)
    part = SummaryPart(notes, ends.head + ends.tail, max_tokens)
    request = summary_request(part, TEXTS)
    used = sum(map(MEANS.sizes.system, (*request.system, request.messages[0].text)))
    assert request.options.max_output_tokens is not None
    assert window * 0.9 < used + request.options.max_output_tokens + 256 <= window


def test_the_room_follows_calibration_and_has_a_floor() -> None:
    """A model that counts more holds less; none is a room of nothing."""
    plain = room_for(8_000, "", 400, MEANS.sizes, TEXTS)
    dense = room_for(8_000, "", 400, MEANS.sizes, TEXTS, ratio=2.0)
    assert plain is not None and dense is not None and dense < plain / 2
    assert room_for(600, "", 400, MEANS.sizes, TEXTS) == 64
    assert room_for(None, "", 400, MEANS.sizes, TEXTS) is None


@given(
    st.lists(st.lists(st.integers(1, 900), min_size=1, max_size=3), max_size=30),
    st.integers(64, 500),
)
def test_any_history_gives_at_most_eight_passes_that_cover_it(
    sizes: list[list[int]], room: int
) -> None:
    """Property: in order, to the end, and no pass is larger than its room."""
    groups, index = [], 0
    for group in sizes:
        groups.append([piece(index + n, tokens, tokens // 3) for n, tokens in enumerate(group)])
        index += len(group)
    found: list[Pass] = split(groups, room, GAP)
    assert len(found) <= 8
    ends = [step.end for step in found]
    assert ends == sorted(ends) and ends[-1:] == ([index] if groups else [])
