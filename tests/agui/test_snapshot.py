"""Snapshots: the visible history at one place."""

from __future__ import annotations

from typing import Any

from agui_stories import called, encoder, folded, opened, played, returned, said, thought
from backscroll.agui.live_run import Activity
from backscroll.agui.messages import Shown
from backscroll.agui.snapshot import in_call_order, messages_snapshot, snapshot_of, visible_messages
from backscroll.kernel.message import Message, assistant, tool_call, tool_result, user


def ids(messages: Any) -> list[str]:
    """Return the ids of messages."""
    return [message.id for message in messages]


def batch(*call_ids: str, id: str = "a") -> Message:
    """Return an assistant message with calls."""
    return assistant(None, [tool_call(call_id, "add") for call_id in call_ids], id=id)


def result(call_id: str) -> Message:
    """Return the result of a call."""
    return tool_result(call_id, "add", "x", id=f"t{call_id}")


def test_results_stand_in_call_order() -> None:
    """Whatever order they were stored in; results nobody asked for keep their place."""
    history = [user("q", "u"), batch("1", "2"), result("2"), result("1"), result("9")]

    assert ids(in_call_order(history)) == ["u", "a", "t1", "t2", "t9"]


def test_a_result_moves_behind_its_call() -> None:
    """A result that something else separates from its call comes back to it."""
    history = [batch("1"), user("q", "u"), result("1")]

    assert ids(in_call_order(history)) == ["a", "t1", "u"]


def test_the_history_alone() -> None:
    """Reasoning before its message, nothing else."""
    history = [user("q", "u"), assistant("Yes", id="a").replace(reasoning="Hmm")]

    assert ids(visible_messages(history)) == ["u", "a.r", "a"]
    assert ids(visible_messages(history, shown=Shown(reasoning=False))) == ["u", "a"]


def test_what_a_live_run_has_sent_is_on_top() -> None:
    """Closed text and ended calls of a reply that is not stored yet; nothing of what is open."""
    steps = [*said("m", "Hi"), *called("m", "1", "{}"), opened("m", "2"), returned(result("1"))]
    live = folded(played(steps))

    reply, answer = visible_messages([user("q", "u")], live)[1:]

    assert (reply.id, reply.content, len(reply.tool_calls)) == ("m", "Hi", 1)  # type: ignore[union-attr]
    assert answer.id == "t1"


def test_nothing_to_show_is_no_snapshot() -> None:
    """protocol-07: an empty snapshot would wipe the client."""
    assert messages_snapshot([]) is None and snapshot_of([]) is None


def test_activities_stand_where_they_appeared() -> None:
    """Behind their message; those of a run without a question before what it made."""
    history = [user("q", "u"), assistant("Yes", id="a"), user("r", "v")]
    old = Activity("cmp_1", "backscroll.compaction", {"status": "done"}, after="a")

    event = messages_snapshot(history, activities=[old])

    assert event is not None and ids(event.messages) == ["u", "a", "cmp_1", "v"]
    assert event.metadata == {
        "@ag-ui/client": {"authoritativeActivityTypes": ["backscroll.compaction"]}
    }


def test_activities_of_a_run_without_a_question() -> None:
    """They stand before the first message the run made, or at the end."""
    by = encoder()
    entries = [*by.start(), *by.activity("cmp_1", "k", {"status": "done"})]
    alone = folded(entries)
    entries += [e for step in said("m", "Hi") for e in by.feed(step)]

    history = [user("q", "u"), assistant("Hi", id="m")]
    assert ids(visible_messages(history, folded(entries))) == ["u", "cmp_1", "m"]
    assert ids(visible_messages(history[:1], alone)) == ["u", "cmp_1"]


def test_open_reasoning_is_stated_empty() -> None:
    """A client may hold a stale copy, which a snapshot without any reasoning would leave there."""
    live = folded(played(thought("m", "Hm")))

    event = messages_snapshot([user("q", "u")], live)

    assert event is not None and ids(event.messages) == ["u", "m.r"]
    assert event.messages[-1].content == ""


def test_other_reasoning_makes_that_needless() -> None:
    """Once a snapshot holds reasoning, the client drops what is missing."""
    history = [user("q", "u"), assistant("Yes", id="a").replace(reasoning="Hmm")]

    event = messages_snapshot(history, folded(played(thought("m", "Hm"))))

    assert event is not None and ids(event.messages) == ["u", "a.r", "a"]


def test_dropped_reasoning_is_stated_at_its_place() -> None:
    """The block of a message that is shown stands before it."""
    event = messages_snapshot([user("q", "u"), assistant("Yes", id="a")], stale_reasoning=["a.r"])

    assert event is not None and ids(event.messages) == ["u", "a.r", "a"]


def test_types_named_by_the_caller_are_replaced() -> None:
    """A page names the types of all pages."""
    event = snapshot_of(visible_messages([user("q", "u")]), kinds=["k"])

    assert event is not None
    assert event.metadata == {"@ag-ui/client": {"authoritativeActivityTypes": ["k"]}}


def test_a_run_that_only_started_adds_nothing() -> None:
    """The history is all there is."""
    assert ids(visible_messages([user("q", "u")], folded(played([])))) == ["u"]
