"""A list that begins a thread."""

from __future__ import annotations

from agui_stories import CountedIds
from backscroll.agui.imported import Imported, import_messages
from backscroll.kernel.message import Message, Role, assistant, tool_call, user


def imported(*sent: Message, offered: str = "") -> Imported:
    """Return what a list becomes."""
    return import_messages(sent, frozenset(offered.split()), CountedIds(), "No result.")


def ids(messages: tuple[Message, ...]) -> list[str | None]:
    """Return the ids of messages."""
    return [message.id for message in messages]


def calls(name: str, *call_ids: str) -> Message:
    """Return an assistant message with calls of the tool pick."""
    return assistant(None, [tool_call(call_id, "pick") for call_id in call_ids], id=name)


def answer(name: str, call_id: str) -> Message:
    """Return a tool message of a client."""
    return Message(Role.TOOL, "done", name, tool_call_id=call_id, outcome="ok")


def test_a_whole_conversation() -> None:
    """Everything in order; results know the name of their tool."""
    made = imported(user("q", "u1"), calls("a1", "c1"), answer("t1", "c1"), assistant("y", id="a2"))

    assert ids(made.messages) == ["u1", "a1", "t1", "a2"] and made.messages[2].name == "pick"
    assert made.settled == () and made.pending == ()


def test_reasoning_goes_to_the_reply_behind_it() -> None:
    """Several stretches are joined; what no reply follows is left out."""
    thoughts = [Message(Role.ASSISTANT, None, f"r{n}", reasoning=f"thought {n}") for n in range(3)]

    made = imported(*thoughts[:2], assistant("y", id="a1"), thoughts[2], user("q", "u1"))

    assert ids(made.messages) == ["a1", "u1"]
    assert made.messages[0].reasoning == "thought 0\nthought 1"


def test_results_without_a_call_are_left_out() -> None:
    """So are second results for one call."""
    made = imported(answer("t0", "c9"), calls("a1", "c1"), answer("t1", "c1"), answer("t2", "c1"))

    assert ids(made.messages) == ["a1", "t1"]


def test_unanswered_calls_are_settled_in_place() -> None:
    """A call that other messages follow gets a result that says so, with its batch."""
    made = imported(calls("a1", "c1", "c2"), answer("t2", "c2"), user("q", "u1"))

    assert ids(made.messages) == ["a1", "msg_1", "t2", "u1"]
    assert (made.settled[0].content, made.settled[0].outcome) == ("No result.", "unknown")


def test_calls_of_the_last_message_may_wait() -> None:
    """Where the client offers the tool; elsewhere they are settled as well."""
    sent = (user("q", "u1"), calls("a1", "c1", "c2"), answer("t1", "c1"))

    waiting, settled = imported(*sent, offered="pick"), imported(*sent)

    assert [call.id for call in waiting.pending] == ["c2"] and waiting.settled == ()
    assert settled.pending == () and ids(settled.settled) == ["msg_1"]
