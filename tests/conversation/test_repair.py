"""A repaired view is one that providers accept, and says what was done."""

from __future__ import annotations

import pytest
from backscroll.conversation.repair import repair
from backscroll.kernel.message import Blocks, Message, Role
from conversation.histories import a, faults, random_histories, t, u
from hypothesis import given
from strict_wires import check_both

ROWS: list[tuple[str, list[Message], list[str]]] = [
    ("call without result", [u(1), a(1, "c1"), u(2)], ["result_missing:a1:c1"]),
    ("result without call", [u(1), t("c9"), a(1)], ["result_orphaned:t-c9:c9"]),
    ("result before its call", [u(1), t("c1"), a(1, "c1"), u(2)], ["result_moved:t-c1:c1"]),
    ("others between", [u(1), a(1, "c1"), u(2), t("c1")], ["result_moved:t-c1:c1"]),
    (
        "two results",
        [u(1), a(1, "c1"), t("c1", "x"), t("c1", "y")],
        ["result_duplicate:y:c1"],
    ),
    ("part of a group", [u(1), a(1, "c1", "c2"), t("c2"), u(2)], ["result_missing:a1:c1"]),
    (
        "an id used again",
        [a(1, "c1"), t("c1", "x"), u(1), a(2, "c1"), t("c1", "y")],
        ["call_renamed:a2:c1"],
    ),
]


@pytest.mark.parametrize(("name", "history", "keys"), ROWS)
def test_each_row(name: str, history: list[Message], keys: list[str]) -> None:
    """REP1: each fault alone is repaired, reported once, and costs no user text."""
    view, repairs = repair(history, "none")

    assert faults(view) == []
    check_both(view)
    assert [done.key for done in repairs] == keys
    assert _users(view) == _users(history)


def test_all_rows_at_once() -> None:
    """REP1: all faults in one history are repaired together."""
    history = [m.replace(id=f"{n}{m.id}") for n, (_, row, _) in enumerate(ROWS) for m in row]

    view, repairs = repair(history, "none")

    assert faults(view) == []
    check_both(view)
    assert _users(view) == _users(history)
    assert all(done.text.startswith(f"call {done.call_id!r}: ") for done in repairs)


@given(random_histories())
def test_random_histories(history: list[Message]) -> None:
    """REP2: the result is well-formed, repairing again changes nothing, user texts stay."""
    view, _ = repair(history, "none")

    again, repairs = repair(view, "none")

    assert faults(view) == []
    assert again is view
    assert repairs == ()
    assert _users(view) == _users(history)
    assert _texts(view) == _texts(history)


@given(random_histories())
def test_a_well_formed_history_is_untouched(history: list[Message]) -> None:
    """The list itself comes back when it needs nothing, and only then."""
    view, repairs = repair(history, "none")

    if not faults(history) and _in_call_order(history):
        assert view is history and repairs == ()
    else:
        assert view is not history


def test_a_made_up_result() -> None:
    """The result that is put in has no id, the outcome `unknown` and the given text."""
    view, _ = repair([a(1, "c1")], "nothing known")

    assert (view[1].id, view[1].outcome, view[1].content) == (None, "unknown", "nothing known")
    assert (view[1].tool_call_id, view[1].name) == ("c1", "look")


def test_calls_first_and_then_all_results() -> None:
    """REP5: calls one by one and then their results become call, result, call, result."""
    history = [u(1), a(1, "c1"), a(2, "c2"), a(3, "c3"), t("c1"), t("c2"), t("c3"), u(2)]

    view, _ = repair(history, "none")

    assert [m.id for m in view] == ["u1", "a1", "t-c1", "a2", "t-c2", "a3", "t-c3", "u2"]
    check_both(view)


def test_another_order_is_no_repair() -> None:
    """A whole group in another order is put into call order without being reported."""
    history = [a(1, "c1", "c2"), t("c2"), t("c1")]

    view, repairs = repair(history, "none")

    assert [m.id for m in view] == ["a1", "t-c1", "t-c2"]
    assert repairs == ()


def test_renamed_call_and_result_agree() -> None:
    """The third use of an id is `~3`, in the call and in its result, at their positions."""
    history = [m for n in range(3) for m in (a(n, "c1"), t("c1", f"t{n}"))]

    view, repairs = repair(history, "none")

    assert [m.tool_calls[0].id for m in view[::2]] == ["c1", "c1~2", "c1~3"]
    assert [m.tool_call_id for m in view[1::2]] == ["c1", "c1~2", "c1~3"]
    assert [done.positions for done in repairs] == [(2, 3), (4, 5)]


def test_replayed_replies_keep_their_ids() -> None:
    """An assistant message with a provider's own blocks is never edited."""
    kept = a(2, "c1").replace(blocks=Blocks("f", ({},), "p"))

    view, _ = repair([a(1, "c1"), t("c1", "x"), kept, t("c1", "y")], "none")

    assert view[2] is kept


def test_a_long_history_is_repaired_quickly() -> None:
    """The cost grows with the history, not with its square."""
    history = [m for n in range(3_000) for m in (u(n), a(n, "c1"), t("c1", f"t{n}"))]

    view, repairs = repair(history, "none")

    assert len(view) == len(history)
    assert len(repairs) == 2_999


def _users(messages: object) -> list[str | None]:
    assert isinstance(messages, list | tuple)
    return [m.id for m in messages if m.role is Role.USER]


def _texts(messages: object) -> list[str]:
    assert isinstance(messages, list | tuple)
    return [m.text for m in messages if m.role is Role.ASSISTANT]


def _in_call_order(history: list[Message]) -> bool:
    order = {call.id: n for m in history for n, call in enumerate(m.tool_calls)}
    results = [m.tool_call_id for m in history if m.role is Role.TOOL]
    groups: list[list[int]] = [[]]
    for message in history:
        if message.role is Role.TOOL:
            groups[-1].append(order.get(message.tool_call_id or "", 0))
        else:
            groups.append([])
    return len(results) == sum(map(len, groups)) and all(g == sorted(g) for g in groups)
