"""Groups: what is never separated, what is open, what is always sent."""

from __future__ import annotations

from backscroll.compaction.groups import (
    Group,
    GroupFinder,
    always_kept,
    find_groups,
    newest_user_messages,
)
from backscroll.kernel.message import Message, Role, system, tool_result
from compaction.histories import SIGNED, a, histories, rounds, t, u
from hypothesis import given
from hypothesis import strategies as st


def spans(history: list[Message], *pending: str) -> list[tuple[int, int]]:
    """Return where the groups of a history begin and end."""
    return [(group.start, group.end) for group in find_groups(history, pending)]


@given(histories())
def test_groups_partition_the_history(history: list[Message]) -> None:
    """GRP2: groups cover the history in order, each message once."""
    covered = [i for start, end in spans(history) for i in range(start, end)]

    assert covered == list(range(len(history)))


@given(histories())
def test_results_are_with_their_calls(history: list[Message]) -> None:
    """GRP2: a result whose call is still unanswered shares the group of that call."""
    home = {i: n for n, (s, e) in enumerate(spans(history)) for i in range(s, e)}
    waiting: list[tuple[str, int]] = []
    for index, message in enumerate(history):
        mine = [entry for entry in waiting if entry[0] == message.tool_call_id]
        if message.role is Role.TOOL and mine:
            waiting.remove(mine[-1])
            assert home[index] == home[mine[-1][1]]
        waiting += [(call.id, index) for call in message.tool_calls]


def test_parallel_calls_stay_together() -> None:
    """GRP1: a batch is one group, also with swapped results and one missing."""
    assert spans([u(1), a(2, None, "A", "B"), t(3, "A"), t(4, "B"), a(5)]) == [
        (0, 1), (1, 4), (4, 5)
    ]  # fmt: skip
    assert spans([a(1, None, "A", "B"), t(2, "B"), t(3, "A"), u(4)]) == [(0, 3), (3, 4)]
    assert spans([a(1, None, "A", "B"), t(2, "B"), u(3), a(4)]) == [(0, 2), (2, 3), (3, 4)]


def test_what_stands_between_belongs_to_it() -> None:
    """A message between a call and its last result is in the group."""
    assert spans([a(1, None, "A", "B"), t(2, "A"), u(3), t(4, "B"), u(5)]) == [(0, 4), (4, 5)]


def test_a_reused_id_binds_to_its_own_results() -> None:
    """GRP3: a call id of an earlier turn does not pull a later result to itself."""
    history = [a(1, None, "c"), t(2, "c"), u(3), a(4, None, "c"), t(5, "c")]

    assert spans(history) == [(0, 2), (2, 3), (3, 5)]


def test_the_nearest_unanswered_call_gets_the_result() -> None:
    """A result belongs to the nearest earlier message that still needs one of that id."""
    history = [a(1, None, "c"), a(2, None, "c"), t(3, "c"), t(4, "c")]

    (group,) = find_groups(history)

    assert group == Group(0, 4, False, (2, 3))


def test_reasoning_stays_with_the_call_it_led_to() -> None:
    """An assistant message of reasoning alone and the calling one after it are one group."""
    thought = a(1, None).replace(blocks=SIGNED)

    assert spans([thought, a(2, None, "c"), t(3, "c")]) == [(0, 3)]
    assert spans([thought, a(2), u(3)]) == [(0, 1), (1, 2), (2, 3)]
    assert spans([a(1, "Let me see.").replace(reasoning="hm"), a(2, None, "c"), t(3, "c")]) == [
        (0, 1), (1, 3)
    ]  # fmt: skip


def test_an_orphaned_result_is_alone() -> None:
    """A result without a call is a group of one."""
    assert spans([u(1), t(2, "gone"), u(3)]) == [(0, 1), (1, 2), (2, 3)]


def test_a_pending_call_leaves_its_group_open() -> None:
    """GRP5: a call that waits for an answer is open, an answered one of the same id is not."""
    history = [a(1, None, "c"), t(2, "c"), u(3), a(4, None, "c", "d"), t(5, "d"), u(6)]

    assert [group.is_open for group in find_groups(history)] == [False, False, False, False]
    assert [group.is_open for group in find_groups(history, {"c"})] == [False, False, True, False]


def test_a_made_up_result_leaves_a_group_open_in_the_newest_turn() -> None:
    """A result that repair made up counts as missing until a user message follows."""
    made_up = tool_result("c", "read", "No result.", outcome="unknown")
    history = [u(1), a(2, None, "c"), made_up, a(3)]

    assert [group.is_open for group in find_groups(history)] == [False, True, False]
    assert not any(group.is_open for group in find_groups([*history, u(4)]))


def test_what_is_always_kept() -> None:
    """System messages, the newest user message, pins, open groups and the last group stay."""
    history = [system("a", "m0"), u(1), *rounds(2, start=1), u(9), a(10, None, "x"), a(11)]
    groups = find_groups(history, {"x"})

    kept = always_kept(history, groups, {"m5"})

    assert kept == {
        0: "system message",
        4: "pinned",
        5: "pinned",
        6: "newest user message",
        7: "waits for a result",
        8: "newest",
    }


def test_feedback_does_not_replace_the_users_own_words() -> None:
    """Where a filter spoke last for the user, the user's own newest message is kept too."""
    feedback = u(3, "Try again").replace(origin="filter:validation")
    history = [u(1), a(2), feedback, a(4)]

    assert newest_user_messages(history) == (0, 2)
    assert newest_user_messages([a(1)]) == ()
    assert set(always_kept(history, find_groups(history))) == {0, 2, 3}


def test_nothing_has_no_groups() -> None:
    """An empty history is fine."""
    assert find_groups([]) == ()
    assert always_kept([], ()) == {}


@given(histories(max_rounds=8), st.lists(st.integers(0, 30), max_size=5))
def test_going_on_from_what_was_found_changes_nothing(
    drawn: list[Message], ends: list[int]
) -> None:
    """The same groups, however a history grew, and after it lost its end."""
    finder = GroupFinder()
    for end in [*ends, len(drawn)]:
        history = drawn[:end]
        assert finder.find(history) == find_groups(history)
        assert finder.find(history, {"c1"}) == find_groups(history, {"c1"})


def test_only_the_histories_used_last_are_remembered() -> None:
    """Within a bound; another list of messages begins anew."""
    finder = GroupFinder(limit=1)
    one, two = rounds(3), rounds(2, start=9)
    for history in (one, two, one, [*one, *two], [one[0], *two]):
        assert finder.find(history) == find_groups(history)
