"""A summary in the history itself: how it is made, sent, and read again."""

from __future__ import annotations

from backscroll.compaction.plan import plan
from backscroll.compaction.stored_summary import (
    as_sent,
    compacted_history,
    core_of,
    is_stored_summary,
    stored_summary,
)
from backscroll.compaction.summary_text import join_summary
from backscroll.compaction.texts import CompactionTexts
from backscroll.kernel.message import Message, Role, assistant, system
from compaction.histories import a, u
from compaction.planning import finished, given, talk

TEXTS = CompactionTexts()
CORE = "## Goal\n- keep going\n\n## Done\n- all of it"


def stored(core: str = CORE, texts: CompactionTexts = TEXTS) -> Message:
    """Return a stored summary of the first forty messages."""
    return stored_summary(join_summary(core, "- must never stop (#3)"), 40, "msg_1", texts)


def test_what_is_stored_is_no_user_message() -> None:
    """WBK4: nobody said it; it holds frame, core and facts, and has an id."""
    message = stored()
    assert (message.role, message.id, message.origin) == (
        Role.ASSISTANT, "msg_1", "filter:compaction",
    )  # fmt: skip
    assert "#1 to #40" in message.text and CORE in message.text and "(#3)" in message.text
    assert is_stored_summary(message) and not is_stored_summary(as_sent(message))
    assert not is_stored_summary(assistant("hi"))


def test_its_core_is_read_again() -> None:
    """Of our frame, of a replaced one, and of text without any."""
    assert core_of(stored(), TEXTS) == CORE
    other = CompactionTexts(summary_frame="<r {n}>\n{core}\nFACTS\n{facts}</r>{recall}")
    assert core_of(stored(texts=other), other) == CORE
    assert core_of(stored(texts=other), TEXTS).startswith("<r 40>")
    assert core_of(assistant("free\n<facts>\n- x\n</facts>"), TEXTS) == "free"


def test_it_takes_the_place_of_the_last_message_it_stands_for() -> None:
    """What is kept of the prefix stays before it, the rest behind it."""
    history = [system("rules", "s1"), u(1), a(2), u(3), a(4), u(5)]
    summary = stored()
    assert compacted_history(history, 5, {0, 3}, summary) == (
        history[0], history[3], summary, history[5],
    )  # fmt: skip
    assert compacted_history(history[:2], 1, {0}, summary) == tuple(history[:2])


def test_a_view_sends_it_with_a_user_s_role() -> None:
    """Fate rewritten, by compaction; and it is no violation."""
    history = [stored(), *talk(2)]
    planned = plan(given(history))
    assert planned.view[0] == as_sent(history[0])
    assert planned.claims[0].fate == "rewritten" and not planned.warnings


def test_a_later_summary_takes_its_core_as_notes_and_keeps_its_facts() -> None:
    """There is one summary again, made from both."""
    history = [stored(), *talk(70, 60)]
    planned = plan(given(history))
    assert planned.job is not None
    assert planned.job.notes == CORE
    assert planned.job.groups[0][0].index == 1
    assert "must never stop" in planned.job.facts.text
    done = finished(given(history))
    assert [m.origin for m in done.view if m.origin] == ["filter:compaction"]
