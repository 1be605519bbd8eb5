"""What a thread remembers of its pauses, as values."""

from __future__ import annotations

from typing import Any

import msgpack
import pytest
from backscroll.kernel.errors import ResumeRefused
from backscroll.kernel.message import user
from backscroll.kernel.turn import Pause, PauseItem
from backscroll.store.pause_record import (
    Decision,
    PauseChange,
    PauseRecord,
    Question,
    read_pauses,
    read_said,
    write_said,
)


def applied(*changes: PauseChange) -> dict[bytes, bytes]:
    """Return the hash after some changes, as the scripts make it, at second 5."""
    fields: dict[bytes, bytes] = {}
    for count, change in enumerate(changes, 1):
        _, put, stamped, gone = msgpack.unpackb(change.pack(), raw=True)
        for name in gone:
            fields.pop(name, None)
        fields |= put | {name: b"5000 " + value for name, value in stamped.items()}
        fields[b"rev"] = str(count).encode()
    return fields


def pay(**fields: Any) -> Pause:
    """Return a pause that asks about one call."""
    item = PauseItem("支付", "approval", "pay", {"to": "安"}, "why", ("approve", "reject"))
    return Pause("p1", "t", (item,), 1.0, **fields)


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
    """Heads count everything that waits for somebody, calls of pages included."""
    pick = PauseItem("c1", "client", "pick", {}, "", ("reply", "reject"))
    asked = PauseChange(asked=Pause("p", "t", (pick,), 1.0, 2.0))

    assert asked.meta() == {"pause": "p", "questions": "1"} and asked.due == 2000
    assert PauseChange(taken="p").meta() == {"pause": "", "questions": "0"}
    assert PauseChange(open_items=3).meta() == {"questions": "3"}
    assert PauseChange().due is None


def test_a_pause_whose_items_are_decided() -> None:
    """Decisions of the open pause only; the rest is history."""
    pay = PauseItem("c1", "approval", "pay", {}, "", ("approve",))
    old = Question("c0", "approval", "pay", {}, "r", "p0", 1, decision=Decision("cancelled"))
    new = Question("c1", "approval", "pay", {}, "r", "p1", 1, decision=Decision("resolved", True))

    found = PauseRecord(Pause("p1", "t", (pay,), 1.0), {"c0": old, "c1": new})

    assert list(found.decisions) == ["c1"] and found.open_items == ()


def test_asked_decided_taken() -> None:
    """PS3: what is written is read back, CJK text included, at every stage."""
    asked = PauseChange(asked=pay(expires_at=9.5), asked_by="r1", said=(user("und?", "u2"),))
    yes = PauseChange(1, {"支付": Decision("resolved", {"approved": True}, "ann")})
    taken = PauseChange(2, taken="p1", taken_by="r2")

    first, second = read_pauses(applied(asked)), read_pauses(applied(asked, yes))
    last = read_pauses(applied(asked, yes, taken))

    assert first.pause == pay(expires_at=9.5) and [m.text for m in first.said] == ["und?"]
    assert [item.id for item in first.open_questions] == ["支付"] and first.revision == 1
    question = first.questions["支付"]
    assert (question.input, question.asked, question.expires) == ({"to": "安"}, 5000, 9500)
    decided = Decision("resolved", {"approved": True}, "ann", 5000)
    assert second.decisions == {"支付": decided} and second.open_items == ()
    assert last.pause is None and last.said == () and last.revision == 3
    assert last.questions["支付"].decision == Decision(
        "resolved", {"approved": True}, "ann", 5000, "r2"
    )


def test_a_lost_pause_is_read_by_whoever_gives_it_up() -> None:
    """One of a newer version raises; given up, its id is known, and nothing of it is open."""
    fields = {b"open": b'{"version":99}', b"id": b"p9", b"rev": b"4"}

    found = read_pauses(fields, gives_up=True)

    assert (found.lost, found.revision, found.pause, found.open_items) == ("p9", 4, None, ())
    with pytest.raises(ResumeRefused, match="expected version 1, got 99"):
        read_pauses(fields)


@pytest.mark.parametrize(
    "broken",
    [{b"q:\xe6\x94\xaf\xe4\xbb\x98": b"nonsense"}, {b"said": b"[{}]"}, {b"open": b"[]"}],
)
def test_what_is_broken_is_never_guessed(broken: dict[bytes, bytes]) -> None:
    """A question, a message, a pause that is none: all of them are pause_unreadable."""
    fields = applied(PauseChange(asked=pay(), asked_by="r1"))
    unasked = {name: value for name, value in fields.items() if not name.startswith(b"q:")}

    for found in (fields | broken, unasked):
        with pytest.raises(ResumeRefused) as caught:
            read_pauses(found)
        assert caught.value.code == "pause_unreadable"


def test_messages_that_wait() -> None:
    """Nothing is kept for none."""
    assert read_said(write_said([user("hi", "u1")])) == (user("hi", "u1"),)
    assert write_said([]) == b"" and read_said(None) == read_said(b"") == ()
