"""A cache made of a summary."""

from __future__ import annotations

from backscroll.compaction.new_cache import new_cache
from backscroll.compaction.plan import plan
from backscroll.compaction.summary_run import SummaryOutcome
from backscroll.compaction.summary_text import split_summary
from compaction.histories import u
from compaction.planning import given, prose, talk

HISTORY = [u(1, "You must never touch staging."), *talk(70, 60), u(999, "Never say stop.")]


def test_it_holds_core_and_facts_of_what_it_covers() -> None:
    """With the hash of that prefix, and what it was made by."""
    planned = plan(given(HISTORY))
    assert planned.job is not None and planned.reading is not None
    outcome = SummaryOutcome("done", core="CORE", cut=planned.job.cut, kind="model", made_ms=5)
    cache, facts = new_cache(planned.reading, planned.job, outcome, ready=True, chosen=None)
    assert split_summary(cache.summary) == ("CORE", facts.text)
    assert facts is planned.job.facts and "never touch staging" in facts.text
    assert cache.prefix_hash == planned.reading.hashes[planned.job.cut]
    assert cache.made == {"kind": "model", "at": 5, "ready": True}


def test_an_earlier_end_has_the_facts_of_just_that_span() -> None:
    """SUM4: what lies behind it is not in them."""
    planned = plan(given(HISTORY))
    assert planned.job is not None and planned.reading is not None
    _, facts = new_cache(planned.reading, planned.job, SummaryOutcome("done", core="C", cut=5))
    assert "never touch staging" in facts.text and "part 40" not in facts.text
    _, none = new_cache(planned.reading, planned.job, SummaryOutcome("done", core="C", cut=0))
    assert none.text == ""


def test_a_long_core_leaves_less_to_the_facts() -> None:
    """Both together stay within their share."""
    planned = plan(given(HISTORY))
    assert planned.job is not None and planned.reading is not None
    outcome = SummaryOutcome("done", core=prose(1_200), cut=planned.job.cut)
    cache, facts = new_cache(planned.reading, planned.job, outcome)
    assert facts.tokens < planned.job.facts.tokens
    size = planned.given.means.sizes.text(cache.summary)
    assert size <= planned.reading.limits.block_max + 20
