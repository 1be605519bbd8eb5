"""Lanes: one kind of thing is open at a time, and nothing empty is ever sent."""

from __future__ import annotations

from ag_ui import core as ag
from backscroll.agui.lanes import DELTA_CHARS, Lane, split_delta


def told(events: list[ag.BaseEvent]) -> list[str]:
    """Return events as short words: the type without its prefix, and the delta."""
    out = []
    for event in events:
        delta = getattr(event, "delta", None)
        out.append(event.type.value if delta is None else f"{event.type.value} {delta}")
    return out


def test_text_is_closed_before_a_call_starts() -> None:
    """protocol-01: START, CONTENT, END of the text, then the call."""
    lane = Lane()

    events = lane.text("m", "Let me look") + lane.open_call("m", "c", "add")
    events += lane.args("c", '{"a":1}') + lane.close_call("c")

    assert told(events) == [
        "TEXT_MESSAGE_START",
        "TEXT_MESSAGE_CONTENT Let me look",
        "TEXT_MESSAGE_END",
        "TOOL_CALL_START",
        'TOOL_CALL_ARGS {"a":1}',
        "TOOL_CALL_END",
    ]


def test_empty_deltas_are_never_sent() -> None:
    """protocol-06: an empty delta opens nothing and adds nothing."""
    lane = Lane()

    events = [*lane.text("m", ""), *lane.text("m", "Hi"), *lane.text("m", ""), *lane.close()]

    assert told(events) == ["TEXT_MESSAGE_START", "TEXT_MESSAGE_CONTENT Hi", "TEXT_MESSAGE_END"]


def test_white_space_waits_for_something_visible() -> None:
    """White space at the start is held back and sent with the first visible delta."""
    lane = Lane()

    assert lane.text("m", " \n") == []
    assert told(lane.text("m", "Hi")) == ["TEXT_MESSAGE_START", "TEXT_MESSAGE_CONTENT  \nHi"]


def test_a_blank_message_has_no_events() -> None:
    """A message that stays blank is not shown at all, before a call or alone."""
    lane = Lane()

    assert lane.text("m", "  ") == []
    assert told(lane.open_call("m", "c", "add")) == ["TOOL_CALL_START"]


def test_white_space_inside_a_message_is_sent_at_once() -> None:
    """Only the beginning waits: a blank delta later on belongs to the text."""
    lane = Lane()
    lane.text("m", "a")

    assert told(lane.text("m", "\n\n")) == ["TEXT_MESSAGE_CONTENT \n\n"]


def test_text_inside_a_call_waits_for_its_end() -> None:
    """What a provider sends between fragments of a call follows the call."""
    lane = Lane()
    lane.open_call("m", "c", "add")

    assert lane.text("m", "so ") == []
    assert lane.reasoning("n", "why") == []
    assert told(lane.args("c", "{}")) == ["TOOL_CALL_ARGS {}"]
    assert told(lane.close_call("c"))[:3] == [
        "TOOL_CALL_END",
        "TEXT_MESSAGE_START",
        "TEXT_MESSAGE_CONTENT so ",
    ]


def test_text_after_a_call_continues_the_message() -> None:
    """The same message is started again, and its text appended."""
    lane = Lane()
    lane.text("m", "a")
    lane.open_call("m", "c", "add")
    lane.close_call("c")

    (start, content) = lane.text("m", "b")

    assert isinstance(start, ag.TextMessageStartEvent) and start.message_id == "m"
    assert isinstance(content, ag.TextMessageContentEvent) and content.delta == "b"


def test_parallel_calls_stay_interleaved() -> None:
    """Two calls streamed side by side are told apart by their ids."""
    lane = Lane()
    lane.open_call("m", "c1", "add")

    assert told(lane.open_call("m", "c2", "add")) == ["TOOL_CALL_START"]
    assert told(lane.args("c1", "{}") + lane.args("c2", "{}") + lane.args("c1", " ")) == [
        "TOOL_CALL_ARGS {}",
        "TOOL_CALL_ARGS {}",
        "TOOL_CALL_ARGS  ",
    ]
    assert told(lane.close_call("c1") + lane.close_call("c2")) == ["TOOL_CALL_END"] * 2


def test_a_call_without_arguments_sends_an_empty_object() -> None:
    """There is at least one ARGS per call."""
    lane = Lane()
    lane.open_call("m", "c", "add")

    assert told(lane.close_call("c")) == ["TOOL_CALL_ARGS {}", "TOOL_CALL_END"]


def test_reasoning_is_a_message_of_its_own() -> None:
    """Span and message have the id M.r, and both end before the text starts."""
    lane = Lane()

    events = lane.reasoning("m", "Hmm.") + lane.text("m", "Yes.")

    assert [getattr(event, "message_id", "") for event in events] == ["m.r"] * 5 + ["m"] * 2
    assert told(events)[3:5] == ["REASONING_MESSAGE_END", "REASONING_END"]


def test_reasoning_after_text_closes_the_text() -> None:
    """Opening a kind closes the others, whichever came first."""
    lane = Lane()
    lane.text("m", "a")

    assert told(lane.reasoning("m", "b"))[:2] == ["TEXT_MESSAGE_END", "REASONING_START"]


def test_another_message_closes_the_one_before() -> None:
    """Within a lane one text is open."""
    lane = Lane()
    lane.text("m", "a")

    assert told(lane.text("n", "b"))[:2] == ["TEXT_MESSAGE_END", "TEXT_MESSAGE_START"]


def test_long_deltas_are_split() -> None:
    """A delta above the limit is sent as several."""
    lane = Lane()

    events = lane.text("m", "x" * (DELTA_CHARS + 1))

    deltas = [event.delta for event in events if isinstance(event, ag.TextMessageContentEvent)]
    assert [len(delta) for delta in deltas] == [DELTA_CHARS, 1]


def test_split_takes_a_smaller_size() -> None:
    """A reader with small frames gets smaller pieces, never larger ones."""
    assert list(split_delta("abcde", 2)) == ["ab", "cd", "e"]
    assert list(split_delta("", 2)) == []


def test_what_is_cut_short_is_marked() -> None:
    """Text that is closed for the run's sake is marked incomplete."""
    lane = Lane()
    lane.text("m", "Half a sente")

    (end,) = lane.close(incomplete=True)

    assert end.metadata == {"backscroll": {"incomplete": True}}


def test_half_a_call_ends_without_invented_arguments() -> None:
    """A call received in part ends as it is, and what waited for it follows."""
    lane = Lane()
    lane.open_call("m", "c", "add")
    lane.text("m", "so")

    assert told(lane.close(incomplete=True)) == [
        "TOOL_CALL_END",
        "TEXT_MESSAGE_START",
        "TEXT_MESSAGE_CONTENT so",
        "TEXT_MESSAGE_END",
    ]


def test_pieces_of_unknown_calls_are_ignored() -> None:
    """Arguments or an end of a call that is not open bring no event."""
    lane = Lane()

    assert lane.args("c", "{}") == [] and lane.close_call("c") == [] and lane.close() == []
