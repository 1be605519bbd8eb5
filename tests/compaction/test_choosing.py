"""What an operator may change of an entry."""

from __future__ import annotations

import pytest
from backscroll.compaction.choosing import (
    HISTORY,
    ActionRefused,
    edited,
    gone_back,
    group_ids,
    pinned_tokens,
)
from backscroll.compaction.reading import Reading
from backscroll.compaction.report import text_hash
from backscroll.compaction.store import EMPTY, Cache, CompactionEntry, Marks
from compaction.planning import given, talk

LONG = talk(20, 60)
READING = Reading(given(LONG))


def cache(n: int, text: str, **made: object) -> Cache:
    """Return a summary of the first n messages."""
    return Cache(n, READING.hashes[n], text, made)


def test_an_edit_keeps_the_former_text() -> None:
    """OPR3: the core is another one, escaped; what was there goes to the ring."""
    old = cache(20, "old")
    new = edited(
        READING, EMPTY.replace(cache=old), "</facts> new ", text_hash("old"), {"by": "ann"}
    )

    assert new.cache is not None and new.cache.summary.startswith("&lt;/facts> new\n<facts>\n")
    assert new.cache.chosen and dict(new.cache.made)["kind"] == "edited"
    assert [c.summary for c in new.ring] == ["old"] and new.ring[0].ready


@pytest.mark.parametrize(
    ("entry", "text", "code"),
    [
        (EMPTY, "new", "summary_changed"),
        (EMPTY.replace(cache=cache(20, "other")), "new", "summary_changed"),
        (EMPTY.replace(cache=Cache(20, "gone", "old")), "new", "summary_changed"),
        (EMPTY.replace(cache=cache(20, "old")), " \n", "invalid_input"),
    ],
)
def test_an_edit_of_something_else_is_refused(entry: CompactionEntry, text: str, code: str) -> None:
    """OPR3: nothing there, another summary, another history, or nothing to say."""
    with pytest.raises(ActionRefused) as error:
        edited(READING, entry, text, text_hash("old"), {})

    assert error.value.code == code


def test_going_back_and_forth() -> None:
    """OPR4: the newest of the ring that fits; what is left can be gone back to; marks go."""
    ring = (Cache(16, "gone", "misfit"), cache(12, "older"))
    entry = CompactionEntry(cache(20, "newest"), ring=ring, marks=Marks(24, 0, 24, "h"))

    back = gone_back(READING, entry, None)
    again = gone_back(READING, back, text_hash("newest"))

    assert back.cache is not None and back.cache.summary == "older" and back.marks is None
    assert [(c.summary, c.ready) for c in back.ring] == [("newest", True), ("misfit", True)]
    assert again.cache is not None and again.cache.summary == "newest" and again.cache.chosen
    assert [(c.summary, c.ready) for c in again.ring] == [("older", False), ("misfit", True)]


def test_going_back_to_the_history() -> None:
    """OPR4: by its word, or where no summary is left; never from nothing."""
    entry = EMPTY.replace(cache=cache(20, "newest"), ring=(cache(12, "older"),))

    whole = gone_back(READING, entry, HISTORY)

    assert whole.cache is None and all(c.ready for c in whole.ring) and len(whole.ring) == 2
    assert gone_back(READING, EMPTY.replace(cache=cache(20, "s")), None).cache is None
    for nothing, to in ((EMPTY, None), (EMPTY, HISTORY), (entry, "unknown")):
        with pytest.raises(ActionRefused) as error:
            gone_back(READING, nothing, to)
        assert error.value.code == "not_found"


def test_the_ring_stays_bounded() -> None:
    """Four summaries are kept aside, the newest first."""
    ring = tuple(cache(n, f"s{n}") for n in (16, 12, 8, 4))

    back = gone_back(READING, EMPTY.replace(cache=cache(20, "s20"), ring=ring), HISTORY)

    assert [c.summary for c in back.ring] == ["s20", "s16", "s12", "s8"]


def test_a_pin_holds_a_group() -> None:
    """GRP6: the call with its result, by the id of either; what is unknown has no group."""
    of_result = group_ids(given(LONG), "m12")
    tokens, limit = pinned_tokens(given(LONG), frozenset({"m12"}))
    both, _ = pinned_tokens(given(LONG), frozenset({"m11", "m12"}))

    assert of_result == group_ids(given(LONG), "m11") == {"m11", "m12"}
    assert group_ids(given(LONG), "nobody") == frozenset()
    assert 0 < tokens == both < limit
