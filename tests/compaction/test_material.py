"""What a summariser reads: excerpts of messages, and how many tokens of them."""

from __future__ import annotations

from collections.abc import Sequence

from backscroll.compaction.canon_forms import references
from backscroll.compaction.material import ExcerptWriter, excerpts, room_for
from backscroll.compaction.passes import Excerpt
from backscroll.compaction.settings import Settings, limits
from backscroll.compaction.shorten import take_ends
from backscroll.compaction.summarise import summary_request
from backscroll.compaction.summariser import SummaryPart
from backscroll.compaction.texts import CompactionTexts
from backscroll.kernel.content import TextPart
from backscroll.kernel.message import Message, assistant, system, tool_call, user
from compaction.histories import PNG, a, t, u
from compaction.planning import MEANS, prose

TEXTS = CompactionTexts()
WRITER = ExcerptWriter(MEANS.sizes, MEANS.shaper, limits(Settings(), 8_000, 8_000), TEXTS)


def written(history: Sequence[Message]) -> list[Excerpt]:
    """Return the excerpts of a history."""
    span, refs = range(len(history)), references(history)
    source = [MEANS.sizes.message(message) for message in history]
    return list(excerpts(history, refs, span, source, WRITER))


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
