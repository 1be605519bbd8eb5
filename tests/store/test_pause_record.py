"""What a thread remembers of its pauses, as values."""

from __future__ import annotations

from backscroll.kernel.turn import Pause, PauseItem
from backscroll.store.pause_record import Decision, PauseChange, PauseRecord, Question, read_pauses


def test_same_decisions() -> None:
    """Who made it and when does not matter, what it says does."""
    yes = Decision("resolved", {"a": 1, "b": 2}, "ann", 5)

    assert yes.is_same(Decision("resolved", {"b": 2, "a": 1}, "bob", 6, "r"))
    assert not yes.is_same(Decision("resolved", {"a": 1}))
    assert not yes.is_same(Decision("cancelled", {"a": 1, "b": 2}))


def test_an_empty_hash_is_no_pause() -> None:
    """Nothing waits, nothing was asked."""
    assert read_pauses({}) == PauseRecord()
    assert PauseRecord().open_items == ()


def test_what_heads_say() -> None:
    """Open questions only: calls of the client are none."""
    pick = PauseItem("c1", "client", "pick", {}, "", ("reply", "reject"))
    asked = PauseChange(asked=Pause("p", "t", (pick,), 1.0, 2.0))

    assert asked.meta() == {"pause": "p", "questions": "0"} and asked.due == 2000
    assert PauseChange(taken="p").meta() == {"pause": "", "questions": "0"}
    assert PauseChange(open_questions=3).meta() == {"questions": "3"}
    assert PauseChange().due is None


def test_a_pause_whose_items_are_decided() -> None:
    """Decisions of the open pause only; the rest is history."""
    pay = PauseItem("c1", "approval", "pay", {}, "", ("approve",))
    old = Question("c0", "approval", "pay", {}, "r", "p0", 1, decision=Decision("cancelled"))
    new = Question("c1", "approval", "pay", {}, "r", "p1", 1, decision=Decision("resolved", True))

    found = PauseRecord(Pause("p1", "t", (pay,), 1.0), {"c0": old, "c1": new})

    assert list(found.decisions) == ["c1"] and found.open_items == ()
