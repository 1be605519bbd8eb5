"""Which result belongs to which call, and what makes a history whole."""

from __future__ import annotations

from backscroll.conversation.history import heal, pair, segments
from backscroll.kernel.message import Message, Role
from conversation.histories import a, faults, random_histories, t, u
from hypothesis import given


def test_pairs_across_reused_ids() -> None:
    """Each call takes the first unused result before the next call of its id."""
    history = [a(1, "c1"), t("c1", "x"), t("c1", "y"), a(2, "c1"), t("c1", "z")]

    pairing = pair(history)

    assert pairing.answers == {0: (1,), 3: (4,)}
    assert pairing.duplicates == {2}
    assert pairing.orphans == frozenset()


def test_the_first_call_may_take_an_earlier_result() -> None:
    """A result before its call is used when there is none after it."""
    assert pair([t("c1"), a(1, "c1")]).answers == {1: (0,)}
    assert pair([t("c1"), a(1, "c1"), t("c1")]).answers == {1: (2,)}
    assert pair([t("c2"), a(1, "c1")]).orphans == {0}


def test_heals_the_last_calls() -> None:
    """LOOP6: two of three unanswered calls get a result each, in call order."""
    history = [u(1), a(1, "c1", "c2", "c3"), t("c2"), u(2)]

    first, second = heal(history, "Gone: {name}.")

    assert (first.tool_call_id, second.tool_call_id) == ("c1", "c3")
    assert first.role is Role.TOOL
    assert (first.content, first.outcome, first.id) == ("Gone: look.", "cancelled", None)


def test_heals_nothing_that_is_whole() -> None:
    """A history that dangles nowhere, or has no calls at all, needs nothing."""
    assert heal([], "x") == []
    assert heal([u(1), a(1)], "x") == []
    assert heal([u(1), a(1, "c1"), t("c1"), u(2)], "x") == []


def test_leaves_older_damage_alone() -> None:
    """Only the last assistant message with calls is healed."""
    assert heal([a(1, "c1"), a(2, "c2"), t("c2")], "x") == []


@given(random_histories())
def test_healing_ends_well(history: list[Message]) -> None:
    """A healed history needs no further healing, whatever it was before."""
    added = heal(history, "x", "unknown")

    assert heal([*history, *added], "x") == []
    assert all(message.outcome == "unknown" for message in added)


@given(random_histories())
def test_pairing_uses_each_result_once(history: list[Message]) -> None:
    """Every tool message answers one call, or is an orphan, or a duplicate."""
    pairing = pair(history)

    used = [at for row in pairing.answers.values() for at in row if at is not None]
    tools = {at for at, message in enumerate(history) if message.role is Role.TOOL}
    assert len(used) == len(set(used))
    assert set(used) | pairing.orphans | pairing.duplicates == tools
    assert not pairing.orphans & pairing.duplicates
    assert all(
        history[at].tool_call_id == call.id
        for place, row in pairing.answers.items()
        for at, call in zip(row, history[place].tool_calls, strict=True)
        if at is not None
    )
    assert not faults([]) and faults([t("c1")]) and faults([a(1, "c1")])


def test_segments() -> None:
    """Calls are one piece with their results, wherever these are; the rest is one by one."""
    history = [u(1), a(1, "c1", "c2"), u(2), t("c2"), t("c1"), t("c9"), a(2)]

    assert segments(history) == [(0,), (1, 3, 4), (2,), (5,), (6,)]


@given(random_histories())
def test_segments_are_all_of_it(history: list[Message]) -> None:
    """Every message is in one piece, and pieces are in order of their first message."""
    pieces = segments(history)

    assert sorted(at for piece in pieces for at in piece) == list(range(len(history)))
    assert all(list(piece) == sorted(piece) or history[piece[0]].tool_calls for piece in pieces)
