"""A request to a thread whose turn waits, as values: what it decides and what it leaves open."""

from __future__ import annotations

from typing import Any

import pytest
from agui_lists import calls, ids, messages, sent_result
from agui_stories import CountedIds
from backscroll.agent.answers import TAKES, Approve, Reject
from backscroll.agui.input import ResumeEntry, RunInput
from backscroll.agui.options import AgentRules, Options
from backscroll.agui.plan import Plan, Stored, Waiting
from backscroll.agui.reconcile import reconcile
from backscroll.agui.refusal import RequestRefused
from backscroll.kernel.message import Message, tool_call, user
from backscroll.kernel.texts import Texts
from backscroll.kernel.tool import ToolSet, tool
from backscroll.kernel.turn import Pause, PauseItem
from backscroll.store.pause_record import Decision, PauseRecord, Question
from hypothesis import given
from hypothesis import strategies as st

YES = Decision("resolved", {"approved": True}, "ann", 5)


@tool
def pay() -> str:
    """Pay."""
    return "paid"


HISTORY = [*messages("u1"), calls("a1", "c1", "c2", "c3", tool="pay")]
KINDS = {"c1": "approval", "c2": "client"}
"""Of the three calls one needs approval, one the client, and one runs with the others."""


def waiting(decided: dict[str, Decision] | None = None, **fields: Any) -> Waiting:
    """Return what the thread waits for after some decisions."""
    items = tuple(
        PauseItem(name, kind, "pay", {}, "why", TAKES[kind])  # type: ignore[arg-type]
        for name, kind in KINDS.items()
    )
    asked = tuple(tool_call(name, "pay") for name in ("c1", "c2", "c3"))
    pause = Pause("p", "t", items, 1.0, calls=asked, message_id="a1", remaining=3)
    questions = {
        i.id: Question(i.id, i.kind, "pay", {}, "r0", "p", 1, decision=(decided or {}).get(i.id))
        for i in items
    }
    return Waiting(PauseRecord(pause, questions, 7, **fields), 9.0, ToolSet([pay]), "ann")


def planned(
    sent: list[Message], *entries: ResumeEntry, facts: Waiting | None = None, **options: Any
) -> Plan:
    """Return the plan for a list and resume entries."""
    request = RunInput("t", "r", tuple(sent), resume=entries, options=Options(**options))
    stored = Stored(tuple(HISTORY), True, facts or waiting())
    return reconcile(request, stored, CountedIds(), Texts(), AgentRules("a"))


def refused(sent: list[Message], *entries: ResumeEntry, **more: Any) -> RequestRefused:
    """Return why a request is refused."""
    with pytest.raises(RequestRefused) as caught:
        planned(sent, *entries, **more)
    return caught.value


def yes(name: str = "c1") -> ResumeEntry:
    """Return an approval."""
    return ResumeEntry(name, "resolved", {"approved": True})


def test_a_result_while_a_question_is_open() -> None:
    """It is kept, and the run ends with the question."""
    plan = planned([*HISTORY, sent_result("t2", "c2")])

    assert (plan.action, ids(plan.store), plan.pending) == ("nothing", ["t2"], ())
    assert [item.id for item in plan.questions] == ["c1"]
    assert plan.pause is not None and list(plan.pause.decided) == ["c2"]
    assert (plan.pause.revision, plan.pause.taken, plan.pause.open_items) == (7, "", 1)


def test_the_answer_while_a_call_is_pending() -> None:
    """The decision is kept, and the run ends with what is pending."""
    plan = planned(HISTORY, yes())

    assert (plan.action, plan.pending, plan.questions) == ("nothing", ("c2",), ())
    assert plan.pause is not None and plan.pause.decided["c1"].by == "ann"
    assert plan.pause.open_items == 1


def test_both_at_once_go_on() -> None:
    """The pause is taken; the client's call is done, the answer is for the other."""
    plan = planned([*HISTORY, sent_result("t2", "c2"), user("and?", "u2")], yes())

    assert plan.action == "continue" and plan.resumes is not None
    assert [item.id for item in plan.resumes.items] == ["c1"]
    assert [(r.call_id, r.content) for r in plan.resumes.records] == [("c2", "done")]
    assert plan.answers == {"c1": Approve()}
    assert ids(plan.store) == ["t2"] and ids(plan.said) == ["u2"] and ids(plan.echo) == ["t2", "u2"]
    assert plan.pause is not None and (plan.pause.taken, plan.pause.taken_by) == ("p", "r")


def test_what_was_decided_before_counts() -> None:
    """With the last one decided elsewhere any request goes on, an empty one too."""
    no = Decision("cancelled", {"reason": "no"}, "bob")
    given_up = Decision("cancelled", None, "bob")

    plan = planned([], facts=waiting({"c1": no, "c2": given_up}))

    assert (plan.action, plan.answers) == ("continue", {"c1": Reject("no")})
    assert [(m.tool_call_id, m.outcome) for m in plan.settled] == [("c2", "cancelled")]
    assert plan.store == plan.settled and plan.echo == ()


def test_a_question_settles_pending_calls_beside_a_decision() -> None:
    """The call of the client is abandoned, what was approved is carried out."""
    plan = planned([*HISTORY, user("go", "u2")], facts=waiting({"c1": YES}))

    assert (plan.action, plan.answers) == ("continue", {"c1": Approve()})
    assert [m.content for m in plan.settled] == [Texts().abandoned] and ids(plan.said) == ["u2"]
    assert plan.pause is not None and plan.pause.decided["c2"].status == "cancelled"


def test_abandoned() -> None:
    """Every call without a result gets one; without a message the run ends at once."""
    plan = planned([*HISTORY, user("no", "u2")], abandon=True)
    alone = planned(HISTORY, abandon=True)

    assert (plan.action, alone.action) == ("run", "nothing")
    assert [m.tool_call_id for m in plan.settled] == ["c1", "c2", "c3"]
    assert ids(plan.store)[-1] == "u2" and len(alone.store) == 3
    assert alone.pause is not None and set(alone.pause.decided) == {"c1", "c2"}


def test_calls_of_the_page_are_abandoned_too() -> None:
    """An open pause is discarded, also when only the client is waited for."""
    facts = waiting({"c1": YES})

    alone = planned(HISTORY, facts=facts, abandon=True)

    assert alone.action == "nothing" and alone.pending == ()
    assert [m.tool_call_id for m in alone.settled] == ["c1", "c2", "c3"]
    assert alone.pause is not None and alone.pause.taken == "p"


def test_a_lost_pause_is_given_up() -> None:
    """What cannot be read is taken out with the calls it was about."""
    facts = Waiting(PauseRecord(revision=3, lost="p9"))

    plan = planned([*HISTORY, user("go", "u2")], facts=facts, abandon=True)

    assert plan.action == "run" and len(plan.settled) == 3
    assert plan.pause is not None and (plan.pause.taken, plan.pause.revision) == ("p9", 3)
    assert "pause_discarded" in [note.kind for note in plan.notes]


@pytest.mark.parametrize(
    ("sent", "entries", "code"),
    [
        ([user("x", "u2")], [], "awaiting_resume"),
        ([], [], "awaiting_resume"),
        ([sent_result("t1", "c1")], [], "awaiting_resume"),
        ([sent_result("t2", "c2"), user("x", "u2")], [], "awaiting_resume"),
        ([sent_result("t2", "c2")], [yes("c9")], "interrupt_incomplete"),
        ([], [yes("c9")], "interrupt_unknown"),
        ([], [ResumeEntry("c1", "resolved", "hm")], "interrupt_invalid"),
    ],
)
def test_refusals(sent: list[Message], entries: list[ResumeEntry], code: str) -> None:
    """What does not cover the open questions is refused."""
    assert refused([*HISTORY, *sent], *entries).code == code


def test_decided_otherwise() -> None:
    """The decision that holds is told, with the run that carried it out."""
    held = waiting({"c1": Decision("resolved", {"approved": True}, "ann", 5, "r9")})

    refusal = refused(HISTORY, ResumeEntry("c1", "cancelled"), facts=held)

    assert refusal.code == "already_answered" and refusal.details["interruptId"] == "c1"
    told = {"status": "resolved", "payload": {"approved": True}, "runId": "r9"}
    assert refusal.details["decision"] == told
    assert refused(HISTORY, yes(), facts=held).code == "already_answered"


def test_a_covered_result_puts_its_client_behind() -> None:
    """An invented result under an answered question is ignored and must go."""
    sent = [*HISTORY, sent_result("t1", "c1"), sent_result("t2", "c2")]

    plan = planned(sent, yes())

    assert ids(plan.store) == ["t2"] and plan.held == 3
    assert not any(note.kind == "foreign_messages" for note in plan.notes)


def test_pending_calls_that_a_request_leaves_alone() -> None:
    """While calls are pending, a list that brings nothing is refused."""
    refusal = refused(HISTORY, facts=waiting({"c1": YES}))

    assert refusal.code == "nothing_to_run"


def test_answering_again_leaves_the_pause() -> None:
    """What waited is superseded with the calls it was about."""
    plan = planned(messages("u1"), facts=waiting({"c1": YES}))

    assert plan.supersede_from == 1 and plan.pause is not None and plan.pause.taken == "p"


@given(
    st.sets(st.sampled_from(["c1", "c2"])),
    st.booleans(),
    st.booleans(),
    st.booleans(),
)
def test_every_request_settles_or_keeps(
    before: set[str], answers: bool, brings: bool, asks: bool
) -> None:
    """Either the pause is taken and every call is accounted for, or nothing of it runs."""
    facts = waiting({name: YES if name == "c1" else Decision("cancelled") for name in before})
    sent = [*HISTORY, *([sent_result("t2", "c2")] if brings else [])]
    sent += [user("x", "u2")] if asks else []
    try:
        plan = planned(sent, *([yes()] if answers else []), facts=facts)
    except RequestRefused:
        return

    if plan.action == "nothing":
        assert plan.resumes is None and (plan.pending or plan.questions)
        return
    results = {m.tool_call_id for m in plan.store if m.tool_call_id}
    assert plan.pause is not None and plan.pause.taken == "p" and plan.resumes is not None
    assert "c2" in results and set(plan.answers) == {"c1"}
    assert not asks or "u2" in ids(plan.said)
