"""Reconciliation: the client's list when calls wait for results."""

from __future__ import annotations

from agui_lists import PICK, RULES, calls, ids, messages, planned, refused, result, sent_result
from backscroll.agui.client_list import open_batch
from backscroll.agui.refusal import RequestRefused
from backscroll.kernel.message import Message, assistant, user
from backscroll.kernel.texts import Texts
from hypothesis import given, settings
from hypothesis import strategies as st


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
