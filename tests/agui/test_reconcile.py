"""Reconciliation: the client's list against what is stored."""

from __future__ import annotations

import pytest
from agui_lists import calls, ids, messages, planned, refused, result
from backscroll.agui.input import ResumeEntry
from backscroll.agui.options import Options
from backscroll.agui.refusal import RequestRefused
from backscroll.kernel.content import FilePart
from backscroll.kernel.message import Message, Role, assistant, system, user


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
