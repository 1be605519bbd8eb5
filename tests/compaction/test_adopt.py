"""A summary made ahead of need, and when it comes into use."""

from __future__ import annotations

from backscroll.compaction.adopt import in_use, ready_cache
from backscroll.compaction.plan import force, plan
from backscroll.compaction.reading import Reading
from backscroll.compaction.store import Cache, CompactionEntry
from backscroll.compaction.summary_text import join_summary
from backscroll.kernel.errors import Refusal
from backscroll.kernel.message import Message
from compaction.planning import given, stages, talk

SHORT, LONG = talk(36, 60), talk(46, 60)


def ready(history: list[Message], n: int, text: str = "READY") -> Cache:
    """Return a cache made ahead of need for the first n messages."""
    hashes = Reading(given(history)).hashes
    return Cache(n, hashes[n], join_summary(text, "FACTS"), {"kind": "model", "ready": True})


def test_below_the_trigger_the_view_is_unchanged_by_it() -> None:
    """STO10: it waits."""
    entry = CompactionEntry(ring=(ready(SHORT, 100),))
    assert plan(given(SHORT, entry=entry)).view == plan(given(SHORT)).view
    assert plan(given(SHORT, entry=entry)).entry is entry


def test_above_the_trigger_it_is_used_without_a_call() -> None:
    """STO10: adopted, and no longer ready; planning again changes nothing."""
    entry = CompactionEntry(ring=(ready(LONG, 120),))
    planned = plan(given(LONG, entry=entry))
    assert planned.job is None and stages(planned) == [("summary", "done")]
    assert planned.entry.cache is not None and not planned.entry.cache.ready
    assert planned.entry.ring == ()
    assert planned.decision is not None and planned.decision.summary is not None
    assert planned.decision.summary["source"] == "adopted"
    again = plan(given(LONG, entry=planned.entry))
    assert again.view == planned.view and again.entry == planned.entry


def test_one_that_does_not_suffice_is_not_taken() -> None:
    """The call makes a summary of its own, of more."""
    entry = CompactionEntry(ring=(ready(LONG, 4),))
    planned = plan(given(LONG, entry=entry))
    assert planned.job is not None and not planned.adopted


def test_an_open_breaker_is_no_reason_against_it() -> None:
    """No summariser is asked."""
    entry = CompactionEntry(ring=(ready(LONG, 120),))
    planned = plan(given(LONG, entry=entry, withheld="paused_after_failures"))
    assert planned.adopted and stages(planned) == [("summary", "done")]


def test_a_forced_view_takes_it_too() -> None:
    """Smaller, and nobody waits."""
    entry = CompactionEntry(ring=(ready(SHORT, 120),))
    forced = force(plan(given(SHORT, entry=entry)), Refusal("overflow"))
    assert forced.adopted and forced.job is None and forced.is_smaller


def test_the_longest_that_fits_the_history_is_chosen() -> None:
    """Only ready ones, of this history, that cover more."""
    reading = Reading(given(LONG))
    other = Cache(140, "another history", "x", {"ready": True})
    kept = Cache(130, reading.hashes[130], "x")
    entry = CompactionEntry(ring=(ready(LONG, 100), other, ready(LONG, 120), kept))
    found = ready_cache(reading, entry, 0)
    assert found is not None and found.prefix_n == 120
    assert ready_cache(reading, entry, 120) is None


def test_the_former_summary_goes_to_the_ring() -> None:
    """STO7: nothing that was made is lost."""
    former, new = Cache(20, "aa", "old"), ready(LONG, 120)
    entry = in_use(CompactionEntry(former, ring=(new,)), new, 4)
    assert entry.ring == (former,)
    assert entry.cache is not None and entry.cache.made == {"kind": "model"}
