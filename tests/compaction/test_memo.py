"""A bounded memory of results."""

from __future__ import annotations

from backscroll.compaction.memo import Memo, ObjectMemo


def test_makes_a_value_once() -> None:
    """A value is made on first use only."""
    made: list[str] = []
    memo: Memo[int] = Memo()

    first = memo.get("k", lambda: len(made) + (made.append("k") or 1))
    second = memo.get("k", lambda: 99)

    assert (first, second, made) == (1, 1, ["k"])


def test_forgets_what_was_used_longest_ago() -> None:
    """Above the limit the key that was used longest ago is made again."""
    memo: Memo[int] = Memo(2)
    for key in ("a", "b", "a", "c"):
        memo.get(key, lambda: 1)

    assert memo.get("a", lambda: 2) == 1
    assert memo.get("b", lambda: 2) == 2
    assert len(memo) == 2


def test_remembers_objects_by_identity() -> None:
    """An object's value is made once; equal objects are different ones."""
    made: list[object] = []
    memo: ObjectMemo[int] = ObjectMemo(lambda subject: len(made) + (made.append(subject) or 1))
    one, other = [1], [1]

    assert [memo.get(one), memo.get(one), memo.get(other)] == [1, 1, 2]
    assert len(made) == 2


def test_starts_anew_when_full() -> None:
    """The number of objects held is bounded."""
    memo: ObjectMemo[int] = ObjectMemo(len, limit=2)
    kept = [[n] for n in range(5)]

    assert [memo.get(item) for item in kept] == [1] * 5
    assert len(memo._values) <= 2
