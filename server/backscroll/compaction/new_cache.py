"""A cache made of a summary: its core, the facts beside it, and what it was made by."""

from __future__ import annotations

from typing import Any

from backscroll.compaction.facts import FactsBlock, first_user
from backscroll.compaction.material import SummaryJob
from backscroll.compaction.reading import Reading
from backscroll.compaction.store import Cache
from backscroll.compaction.summary_run import SummaryOutcome
from backscroll.compaction.summary_text import join_summary


def new_cache(
    reading: Reading, job: SummaryJob, outcome: SummaryOutcome, **more: Any
) -> tuple[Cache, FactsBlock]:
    """Return the cache of a summary that was made, and its facts.

    Core and facts stay within their common share; a summary that ends earlier than asked for has
    the facts of just what it covers. `more` goes into what it was made by.
    """
    means, limits = reading.given.means, reading.limits
    room = min(limits.facts_max, max(limits.block_max - means.sizes.text(outcome.core), 0))
    facts, cut = job.facts, outcome.cut
    if cut != job.cut or facts.tokens > room:
        goal = first_user(reading.history)
        at = goal if goal is not None and goal < cut else None
        facts = means.facts.block(reading.history[:cut], reading.refs[:cut], room, at)
    told = {"kind": outcome.kind, "model": outcome.model, "at": outcome.made_ms, **more}
    made = {key: value for key, value in told.items() if value is not None}
    return Cache(cut, reading.hashes[cut], join_summary(outcome.core, facts.text), made), facts
