"""Reconciliation: the client's list against what is stored."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from agui_stories import CountedIds
from backscroll.agui.client_list import open_batch
from backscroll.agui.input import ResumeEntry, RunInput
from backscroll.agui.options import AgentRules, Options
from backscroll.agui.reconcile import Plan, Stored, reconcile
from backscroll.agui.refusal import RequestRefused
from backscroll.kernel.content import FilePart
from backscroll.kernel.message import Message, Role, assistant, system, tool_call, tool_result, user
from backscroll.kernel.texts import Texts
from backscroll.kernel.tool import ToolSpec
from hypothesis import given, settings
from hypothesis import strategies as st

RULES = AgentRules("a", tool_names=frozenset({"add"}))
PICK = (ToolSpec("pick", "", {}), ToolSpec("confirm", "", {}))


def calls(name: str, *ids: str, tool: str = "pick") -> Message:
    """Return an assistant message with calls."""
    return assistant(None, [tool_call(call_id, tool) for call_id in ids], id=name)


def result(name: str, call_id: str, text: str = "done", tool: str = "pick") -> Message:
    """Return a stored result."""
    return tool_result(call_id, tool, text, id=name)


def sent_result(name: str, call_id: str, text: str = "done") -> Message:
    """Return a result as a client sends it, without the tool's name."""
    return Message(Role.TOOL, text, name, tool_call_id=call_id, outcome="ok")


def messages(names: str) -> list[Message]:
    """Return messages by their names: u1 is a user message, a1 an assistant message."""
    return [user(n, n) if n[0] == "u" else assistant(n, id=n) for n in names.split()]


def planned(stored: Sequence[Message] | None, sent: Sequence[Message], **request: Any) -> Plan:
    """Return the plan for a list; None is a thread nobody knows."""
    facts = Stored(tuple(stored or ()), stored is not None)
    asked = RunInput("t", "r", tuple(sent), **request)
    return reconcile(asked, facts, CountedIds(), Texts(), RULES)


def refused(stored: Sequence[Message] | None, sent: Sequence[Message], **request: Any) -> str:
    """Return the code with which a list is refused."""
    with pytest.raises(RequestRefused) as caught:
        planned(stored, sent, **request)
    assert caught.value.details["threadId"] == "t" and caught.value.details["runId"] == "r"
    return caught.value.code


def ids(found: Sequence[Message]) -> list[str | None]:
    """Return the ids of messages."""
    return [message.id for message in found]


def test_an_unknown_thread_imports_the_list() -> None:
    """A first message starts the history; a local greeting before it comes along."""
    plan = planned(None, messages("u1"))
    greeted = planned(None, [*messages("a9"), *messages("u1")])

    assert (plan.action, ids(plan.store), plan.is_import) == ("run", ["u1"], True)
    assert ids(greeted.store) == ["a9", "u1"] == ids(greeted.echo)


@pytest.mark.parametrize(
    ("stored", "sent", "store", "held"),
    [
        ("u1 a1", "u1 a1 u2", ["u2"], None),
        ("u1 a1", "u2", ["u2"], 1),
        ("u1 a1 u2 a2", "u1 a1 u3", ["u3"], 2),
        ("u1 a1", "a9 u1 a1 u2", ["u2"], None),
        ("u1 a1 u2", "u1 a1 u2", [], None),
        ("u1 a1", "a1 u2", ["u2"], None),
        ("u1 a1 u2 a2", "u1 a1 a2 u3", ["u3"], 2),
        ("u1 a1", "u1 a1 u2 u3", ["u2", "u3"], None),
    ],
)
def test_new_messages_run(stored: str, sent: str, store: list[str], held: int | None) -> None:
    """protocol-10: what is known is never stored again; who is behind gets the opening pair."""
    plan = planned(messages(stored), messages(sent))

    assert (plan.action, ids(plan.store), plan.held) == ("run", store, held)
    assert plan.supersede_from is None and ids(plan.history) == stored.split()


@pytest.mark.parametrize(
    ("sent", "supersede_from", "left"), [("u1 a1 u2", 3, "u1 a1 u2"), ("u1", 1, "u1")]
)
def test_a_known_question_is_answered_again(sent: str, supersede_from: int, left: str) -> None:
    """Everything after it is superseded, and nobody is behind after that."""
    plan = planned(messages("u1 a1 u2 a2"), messages(sent))

    assert (plan.action, plan.supersede_from, plan.held) == ("run", supersede_from, None)
    assert ids(plan.history) == left.split() and plan.store == ()
    assert [note.kind for note in plan.notes] == ["superseded"]


def test_answering_again_can_be_declined() -> None:
    """With regenerate off an answered question is refused, naming the answer."""
    with pytest.raises(RequestRefused) as caught:
        planned(messages("u1 a1"), messages("u1"), options=Options(regenerate=False))

    assert caught.value.code == "already_answered"
    assert caught.value.details["messageId"] == "a1"


def test_an_edited_question_stands_as_it_was() -> None:
    """A differing copy of an older question is noted, of the last one refused."""
    edited = [user("other words", "u1")]

    plan = planned(messages("u1 a1"), [*edited, *messages("a1 u2")])

    assert ids(plan.store) == ["u2"] and [n.kind for n in plan.notes] == ["history_differs"]
    assert refused(messages("u1 a1"), edited) == "message_conflict"
    assert refused(messages("u1"), edited) == "message_conflict"


def test_reshaped_copies_of_others_mean_nothing() -> None:
    """Clients reshape assistant messages; the stored one stands without a note."""
    plan = planned(messages("u1 a1"), [*messages("u1"), assistant("x", id="a1"), *messages("u2")])

    assert plan.notes == () and plan.held is None


def test_a_shortened_copy_of_an_image_is_the_same() -> None:
    """A client with small frames sends back the line that stood for the image."""
    image = user((FilePart("image/png", data="A" * 24_000),), "u1")

    plan = planned([image], [user("[image, image/png, 18 kB]", "u1")])

    assert plan.action == "run" and plan.notes == ()


def test_foreign_messages_are_noted_once() -> None:
    """Unknown messages of others are ignored; one note with one key names them."""
    plan = planned(messages("u1 a1"), messages("a8 u1 u9 a1 u1 u2".replace("u1 u2", "u2")))
    again = planned(messages("u1 a1"), messages("a8 u1 u9 a1 u2"))

    assert plan.notes[0].kind == "foreign_messages" and plan.notes[0].data["ids"] == ["a8"]
    assert plan.notes == again.notes and ids(plan.store) == ["u9", "u2"]


def test_a_new_message_before_a_known_one_is_foreign() -> None:
    """What stands before a known question cannot be put in between."""
    plan = planned(messages("u1 a1 u2 a2"), messages("u1 u9 u2 a2 u3"))

    assert ids(plan.store) == ["u3"] and plan.notes[0].data["ids"] == ["u9"]


def test_equal_ids_count_once() -> None:
    """Of two messages with one id the first counts, the other is noted."""
    plan = planned(messages("u1 a1"), messages("u1 a1 u2 u2"))

    assert ids(plan.store) == ["u2"] and [n.kind for n in plan.notes] == ["stripped"]


@pytest.mark.parametrize("sent", ["", "u1 a1", "a9"])
def test_nothing_to_run(sent: str) -> None:
    """A list that ends with a reply, or with nothing, is refused."""
    assert refused(messages("u1 a1"), messages(sent)) == "nothing_to_run"
    assert refused(None, messages("a9" if sent else "")) == "nothing_to_run"


def test_an_empty_list_goes_on_where_the_store_ends() -> None:
    """A question without an answer is run, a whole batch continued."""
    assert planned(messages("u1"), []).action == "run"
    done = [*messages("u1"), calls("a1", "c1"), result("t1", "c1")]
    assert planned(done, []).action == "continue"


def test_the_last_result_continues_the_turn() -> None:
    """With c1 answered and c2 pending, the result of c2 is stored and the turn goes on."""
    stored = [*messages("u1"), calls("a1", "c1", "c2"), result("t1", "c1")]

    plan = planned(stored, [*stored, sent_result("t2", "c2")], tools=PICK)

    assert (plan.action, ids(plan.store), plan.held) == ("continue", ["t2"], None)
    assert (plan.store[0].name, plan.store[0].outcome) == ("pick", "ok")
    assert ids(plan.echo) == ["t2"] and plan.settled == ()


def test_a_partial_answer_ends_at_once() -> None:
    """While a call is pending the result is kept and no model is called."""
    stored = [*messages("u1"), calls("a1", "c1", "c2")]

    plan = planned(stored, [*stored, sent_result("t1", "c1")], tools=PICK)

    assert (plan.action, ids(plan.store), plan.pending) == ("nothing", ["t1"], ("c2",))


def test_a_question_settles_pending_calls() -> None:
    """A new user message gives them up: their results are stored before it."""
    stored = [*messages("u1"), calls("a1", "c1", "c2")]

    plan = planned(stored, [*stored, *messages("u2")])

    assert (plan.action, ids(plan.store)) == ("run", ["msg_1", "msg_2", "u2"])
    assert [m.outcome for m in plan.settled] == ["cancelled"] * 2 and ids(plan.echo) == ["u2"]
    assert plan.settled[0].content == Texts().abandoned and plan.held is None


def test_results_and_a_question_together() -> None:
    """The batch stays contiguous: results, then what was given up, then the question."""
    stored = [*messages("u1"), calls("a1", "c1", "c2")]
    sent = [*stored, *messages("u2"), sent_result("t2", "c2")]

    plan = planned(stored, sent)

    assert (plan.action, ids(plan.store)) == ("continue", ["t2", "msg_1", "u2"])


def test_lost_calls_of_the_server_are_healed() -> None:
    """A call of the server's own tool is never answered by a client."""
    lost = [*messages("u1"), calls("a1", "c1", tool="add")]

    plan = planned(lost, [*lost, sent_result("t1", "c1"), *messages("u2")])

    assert ids(plan.store) == ["msg_1", "u2"] and plan.notes[0].data["ids"] == ["t1"]
    assert refused(lost, [*lost, sent_result("t1", "c1")]) == "nothing_to_run"


def test_a_half_lost_batch_is_healed_before_it_goes_on() -> None:
    """One of two results is there: the other call is settled, and the turn continues."""
    stored = [*messages("u1"), calls("a1", "c1", "c2", tool="add"), result("t1", "c1", tool="add")]

    plan = planned(stored, stored)

    assert (plan.action, ids(plan.store)) == ("continue", ["msg_1"])


def test_a_known_result_continues_or_is_answered_already() -> None:
    """The last message is a stored result: go on if nothing follows it, else refuse."""
    done = [*messages("u1"), calls("a1", "c1"), result("t1", "c1")]

    assert planned(done, done).action == "continue"
    assert refused([*done, *messages("a2")], done) == "already_answered"
    pending = [*messages("u1"), calls("a1", "c1", "c2"), result("t1", "c1")]
    assert refused(pending, pending) == "nothing_to_run"


def test_a_second_result_for_one_call_is_refused() -> None:
    """The same call answered under another id, with the answer there already."""
    stored = [*messages("u1"), calls("a1", "c1"), result("t1", "c1"), *messages("a2")]

    sent = [*stored[:2], sent_result("t9", "c1")]

    assert refused(stored, sent) == "already_answered"


def test_an_invented_result_makes_its_client_behind() -> None:
    """A duplicate is noted; one that differs, or two for one call, must go from the screen."""
    stored = [*messages("u1"), calls("a1", "c1"), result("t1", "c1"), *messages("a2")]
    same = [*stored[:2], sent_result("t9", "c1"), *messages("a2 u2")]
    other = [*stored[:2], sent_result("t9", "c1", "else"), *messages("a2 u2")]
    both = [*stored[:3], sent_result("t9", "c1"), *messages("a2 u2")]

    plan = planned(stored, same)

    assert [n.kind for n in plan.notes] == ["duplicate_result"] and plan.held is None
    assert planned(stored, other).held == 2 and planned(stored, both).held == 5


def test_a_result_for_an_unknown_call_is_refused() -> None:
    """A call the thread never made cannot be answered."""
    assert refused(messages("u1 a1"), [sent_result("t1", "c9")]) == "unknown_tool_call"
    assert refused(None, [*messages("u1"), sent_result("t1", "c9")]) == "unknown_tool_call"


def test_an_empty_answer_is_an_answer() -> None:
    """A client that returns nothing has said so, and errors are told as errors."""
    stored = [*messages("u1"), calls("a1", "c1", "c2")]
    error = sent_result("t2", "c2", "no").replace(outcome="error")

    plan = planned(stored, [*stored, sent_result("t1", "c1", " "), error])

    assert plan.store[0].content == Texts().client_empty
    assert (plan.store[1].content, plan.store[1].outcome) == ("no", "error")


def test_the_opening_pair_follows_the_wish() -> None:
    """never sends none, always sends it to whoever has everything."""
    behind = (messages("u1 a1"), messages("u2"))
    level = (messages("u1 a1"), messages("u1 a1 u2"))

    assert planned(*behind, options=Options(snapshot="never")).held is None
    assert planned(*level, options=Options(snapshot="always")).held == 3
    assert planned(None, messages("u1"), options=Options(snapshot="always")).held == 1


def test_a_blank_reply_makes_nobody_behind() -> None:
    """What was never shown cannot be missed."""
    plan = planned([*messages("u1"), assistant("", id="a1")], messages("u1 u2"))

    assert plan.held is None


def test_reasoning_is_known_by_the_id_of_its_message() -> None:
    """A client sends M.r back beside M."""
    thought = Message(Role.ASSISTANT, None, "a1.r", reasoning="Hmm")
    stored = [*messages("u1"), assistant("a1", id="a1").replace(reasoning="Hmm")]

    plan = planned(stored, [*messages("u1"), thought, *messages("a1 u2")])

    assert plan.notes == () and plan.held is None


def test_system_messages_of_clients_are_passed_over() -> None:
    """They are neither stored nor noted, and the last message is the one before."""
    sent = [system("Be nice", "s1"), *messages("u1 a1 u2"), system("Again", "s2")]

    assert ids(planned(messages("u1 a1"), sent).store) == ["u2"]
    assert planned(messages("u1 a1"), sent).notes == ()
    assert ids(planned(None, [system("Be nice", "s1"), *messages("u1")]).store) == ["u1"]


def test_resume_entries_without_a_question() -> None:
    """They are ignored and noted beside something new, else refused."""
    entry = (ResumeEntry("c9", "resolved"),)

    plan = planned(messages("u1 a1"), messages("u1 a1 u2"), resume=entry)

    assert [note.kind for note in plan.notes] == ["stripped"]
    assert refused(messages("u1 a1"), messages("u1"), resume=entry) == "not_paused"
    assert refused(None, messages("u1"), resume=entry) == "not_paused"


def test_an_import_may_leave_calls_pending() -> None:
    """Calls of the last message that the client offers to run wait for it."""
    sent = [*messages("u1"), calls("a1", "c1", "c2"), sent_result("t1", "c1")]

    assert planned(None, sent, tools=PICK).pending == ("c2",)
    assert planned(None, sent, tools=PICK).action == "nothing"
    healed = planned(None, sent)
    assert (healed.action, ids(healed.store)) == ("continue", ["u1", "a1", "t1", "msg_1"])
    assert ids(healed.settled) == ["msg_1"] and ids(healed.echo) == ["u1", "a1", "t1"]


def test_open_batch_of_a_text_is_none() -> None:
    """A history that ends with text has no open calls."""
    assert open_batch(messages("u1 a1"), RULES).calls == ()
    assert open_batch([], RULES).asker == -1


@st.composite
def _threads(draw: st.DrawFn) -> tuple[list[Message], list[Message]]:
    """Make a stored history and a list that a client might send for it."""
    stored: list[Message] = []
    for n in range(draw(st.integers(0, 4))):
        stored.append(user(f"question {n}", f"u{n}"))
        if draw(st.booleans()):
            stored.append(calls(f"b{n}", f"c{n}", tool=draw(st.sampled_from(["pick", "add"]))))
            if draw(st.booleans()):
                stored.append(result(f"t{n}", f"c{n}"))
        if draw(st.booleans()):
            stored.append(assistant("answer", id=f"a{n}"))
    strangers = [assistant("greeting", id="x1"), user("new", "n1"), sent_result("y1", "c9")]
    strangers += [sent_result(f"z{n}", f"c{n}") for n in range(4)]
    known = [message for message in stored if draw(st.booleans())]
    for stranger in draw(st.lists(st.sampled_from(strangers), max_size=4)):
        known.insert(draw(st.integers(0, len(known))), stranger)
    return stored, known


@given(_threads(), st.booleans())
@settings(max_examples=500, deadline=None)
def test_sending_the_list_again_never_stores_twice(
    thread: tuple[list[Message], list[Message]], is_known: bool
) -> None:
    """protocol-10: after a plan is carried out, the same list stores nothing more."""
    stored, sent = thread
    start = stored if is_known or stored else None
    try:
        plan = planned(start, sent)
    except RequestRefused:
        return
    after = [*plan.history, *plan.store]

    assert len({message.id for message in after}) == len(after)
    try:
        again = planned(after, sent)
    except RequestRefused:
        return
    assert again.echo == () and not {m.id for m in again.store} & {m.id for m in sent}
