"""Which facts fit into shares."""

from __future__ import annotations

from backscroll.compaction.fact_rules import FactClass, Share
from backscroll.compaction.fact_scan import Found
from backscroll.compaction.fact_shares import Entry, choose, fill, merge
from hypothesis import given
from hypothesis import strategies as st


def entry(
    at: int, cls: FactClass = "standing", share: Share | None = None, tokens: int = 10
) -> Entry:
    """Return an entry of its own key."""
    return Entry(
        Found("rule", cls, (str(at), cls, str(share)), f"text {at}", share), at, at, tokens
    )


def path(at: int, wrote: bool) -> Entry:
    """Return an entry about one path."""
    return Entry(Found("path", "ledger", ("path", "a.py"), "", "path", wrote), at, at, 10)


def test_the_newest_of_a_key_wins() -> None:
    """Equal entries are one, at the place of the newest."""
    old, new = (
        entry(1),
        Entry(Found("rule", "standing", ("1", "standing", "None"), "new"), 7, 7, 10),
    )

    assert merge([old, entry(3), new]) == [entry(3), new]


def test_a_write_beats_a_read() -> None:
    """The last write of a path stays, whoever reads it later; without one the last read."""
    assert merge([path(1, True), path(5, False)]) == [path(1, True)]
    assert merge([path(1, True), path(5, True)]) == [path(5, True)]
    assert merge([path(1, False), path(5, False)]) == [path(5, False)]


def test_what_fits_is_all_there() -> None:
    """Nothing is left out while there is room."""
    entries = [entry(n) for n in range(5)]

    assert fill(entries, 50) == (entries, 0)


def test_newest_and_oldest_share_the_room() -> None:
    """FAC6: the newest fill four fifths, the oldest the rest, in order."""
    chosen, left = fill([entry(n) for n in range(100)], 100)

    assert [e.at for e in chosen] == [0, 1, 92, 93, 94, 95, 96, 97, 98, 99]
    assert left == 0


def test_an_unused_share_flows_on() -> None:
    """What standing leaves goes to the ledger, what that leaves to other words."""
    ledger = [entry(n, "ledger", "id") for n in range(99)]
    other = [entry(n, "other") for n in range(99)]

    assert len(choose([entry(0), *ledger], 200)) == 1 + 17
    assert len(choose([*other], 200)) == 20
    assert len(choose([*other, *(entry(n) for n in range(99))], 200)) == 13 + 7


def test_parts_of_the_ledger_have_their_own_shares() -> None:
    """Ids do not flood the ledger: paths, errors and values keep their room."""
    flood = [entry(n, "ledger", "id") for n in range(500)]
    rest = [entry(600 + n, "ledger", s) for n, s in enumerate(("path", "error", "value") * 3)]
    standing = [entry(n) for n in range(500)]

    chosen = [e.found for e in choose([*standing, *flood, *rest], 1_000)]

    assert sum(f.share in ("path", "error", "value") for f in chosen) == 9
    assert 13 <= sum(f.share == "id" for f in chosen) <= 16


def test_what_one_part_leaves_goes_to_any_other() -> None:
    """Without ids their share is not lost: paths, which come first, may use it."""
    paths = [entry(n, "ledger", "path") for n in range(50)]

    assert len(choose(paths, 200)) == 18


def test_what_was_written_comes_before_what_was_read() -> None:
    """A search that names many files leaves those that were changed."""
    wrote = [entry_of(n, wrote=True) for n in range(5)]
    read = [entry_of(n, wrote=False) for n in range(5, 60)]

    chosen = choose([*wrote, *read], 200)

    assert chosen[:5] == wrote and len(chosen) == 18


def entry_of(at: int, wrote: bool) -> Entry:
    """Return an entry about a path of its own."""
    found = Found("path", "ledger", ("path", f"{at}.py"), f"{at}.py", "path", wrote)
    return Entry(found, at, at, 10)


def test_the_goal_is_always_there() -> None:
    """FAC5: the goal comes first, at the expense of the standing share."""
    goal = entry(0, tokens=60)

    chosen = choose([entry(n) for n in range(1, 50)], 100, goal)

    assert chosen[0] is goal
    assert sum(e.tokens for e in chosen) <= 100


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["standing", "ledger", "other"]),
            st.sampled_from(["path", "error", "value", "id"]),
            st.integers(1, 80),
        )
    ),
    st.integers(1, 900),
)
def test_shares_are_never_exceeded(drawn: list[tuple[FactClass, Share, int]], room: int) -> None:
    """FAC1: whatever there is, the chosen entries fit."""
    entries = [entry(n, cls, share, tokens) for n, (cls, share, tokens) in enumerate(drawn)]

    assert sum(e.tokens for e in choose(entries, room)) <= room
