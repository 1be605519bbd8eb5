"""A client's list, sorted by what each message is to the thread."""

from __future__ import annotations

from backscroll.agui.client_list import ClientList, classify, open_batch, without_repeats
from backscroll.agui.options import AgentRules
from backscroll.kernel.message import (
    Message,
    Role,
    assistant,
    system,
    tool_call,
    tool_result,
    user,
)
from backscroll.kernel.turn import Pause, PauseItem
from backscroll.store.pause_record import PauseRecord, Question

RULES = AgentRules("a", tool_names=frozenset({"add"}))
ASKED = (
    user("q", "u1"),
    assistant(None, [tool_call("c1", "pick"), tool_call("c2", "add")], id="a1"),
)


def answer(name: str, call_id: str, text: str = "done") -> Message:
    """Return a tool message of a client."""
    return Message(Role.TOOL, text, name, tool_call_id=call_id, outcome="ok")


def sorted_list(*sent: Message, history: tuple[Message, ...] = ASKED) -> ClientList:
    """Return a list sorted against a history."""
    return classify(sent, history, RULES)


def test_the_open_batch_is_split_by_who_runs_the_tool() -> None:
    """Calls of the server's tools were lost; all others wait for the client."""
    batch = open_batch(ASKED, RULES)

    assert (batch.asker, [c.id for c in batch.pending], [c.id for c in batch.dangling]) == (
        1,
        ["c1"],
        ["c2"],
    )
    answered = (*ASKED, tool_result("c1", "pick", "x", id="t1"))
    assert open_batch(answered, RULES).pending == ()
    assert open_batch((*answered, user("r", "u2")), RULES).calls == ()


def test_every_class() -> None:
    """Known, result, new and foreign, each in its place."""
    found = sorted_list(
        system("x", "s1"), assistant("hi", id="x1"), *ASKED, answer("t1", "c1"), user("r", "u2")
    )

    assert found.known == {"u1": 0, "a1": 1} and list(found.results) == ["c1"]
    assert [m.id for m in found.new] == ["u2"] and [m.id for m in found.foreign] == ["x1"]
    assert found.last is not None and found.last.id == "u2" and not found.has_invented


def test_duplicates_and_inventions() -> None:
    """A second answer is a duplicate; one that differs was invented."""
    history = (*ASKED, tool_result("c1", "pick", "done", id="t1"))

    same = sorted_list(answer("t9", "c1"), history=history)
    other = sorted_list(answer("t9", "c1", "else"), history=history)

    assert same.duplicates == {"t9": 2} and not same.has_invented
    assert other.duplicates == {"t9": 2} and other.has_invented
    assert sorted_list(answer("t1", "c1"), answer("t2", "c1")).has_invented


def test_an_edited_question_is_kept_apart() -> None:
    """Only user messages are compared."""
    found = sorted_list(user("other", "u1"), assistant("other", id="a1"))

    assert [m.id for m in found.edited] == ["u1"]
    assert [note.kind for note in found.notes()] == ["history_differs"]


def test_a_known_id_of_another_role_differs() -> None:
    """A user message under the id of a reply is no copy of it."""
    assert [m.id for m in sorted_list(user("x", "a1")).edited] == ["a1"]


def test_notes_have_keys() -> None:
    """What was noted once is not noted with every request."""
    history = (*ASKED, tool_result("c1", "pick", "done", id="t1"))

    notes = list(sorted_list(assistant("", id="x1"), answer("t9", "c1"), history=history).notes())

    assert [note.kind for note in notes] == ["foreign_messages", "duplicate_result"]
    assert all(note.key for note in notes)


def test_the_first_of_equal_ids_counts() -> None:
    """The others are noted."""
    first, second = user("a", "u1"), user("b", "u1")

    kept, notes = without_repeats([first, second])

    assert kept == [first] and notes[0].key == "stripped:u1"


def test_an_empty_list_has_no_last_message() -> None:
    """System messages say nothing either."""
    assert sorted_list().last is None and sorted_list(system("x", "s1")).last is None


def test_the_batch_of_a_pause() -> None:
    """Its calls are where the pause says; what people decide about takes no result of a client."""
    items = (
        PauseItem("c1", "client", "pick", {}, "", ("reply",)),
        PauseItem("c2", "approval", "add", {}, "", ("approve",)),
    )
    questions = {i.id: Question(i.id, i.kind, i.tool, {}, "r", "p", 1) for i in items}
    pause = Pause("p", "t", items, 1.0, calls=ASKED[1].tool_calls, message_id="a1")
    sent = (answer("t1", "c1"), answer("t2", "c2"))

    found = classify(sent, ASKED, RULES, PauseRecord(pause, questions))

    assert found.batch.asker == 1 and found.batch.dangling == ()
    assert [call.id for call in found.batch.pending] == ["c1"] and list(found.results) == ["c1"]
    assert found.covered == [sent[1]] and found.has_invented
