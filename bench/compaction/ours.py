"""Our own ladder as a strategy, with a good summariser, none, or one that is no good."""

from __future__ import annotations

import asyncio
import dataclasses
import time
from collections.abc import Sequence
from typing import Any, Literal

from backscroll.compaction.extractive import ExtractiveSummariser
from backscroll.compaction.fact_lines import ResultReader
from backscroll.compaction.facts import FactReader
from backscroll.compaction.material import SummaryJob
from backscroll.compaction.micro import Shaper
from backscroll.compaction.plan import Plan, PlanInput, plan, settle
from backscroll.compaction.reading import Means
from backscroll.compaction.settings import Settings
from backscroll.compaction.store import EMPTY, CompactionEntry
from backscroll.compaction.summariser import Summariser, SummaryDraft, SummaryPart
from backscroll.compaction.summary_run import SummaryOutcome, run_job, skipped
from backscroll.compaction.tokens import Sizes
from backscroll.kernel.message import Message
from backscroll.kernel.ports import CancelToken, SystemClock
from setting import asked
from strategies import Work

Fault = Literal["empty", "lying", "dead", "slow"]
SLOW_S, MOST_S = 0.05, 600.0
LIES = "## Artifacts\n" + "".join(
    f"- wrote /srv/made/up_{n}.py for ord_{n}77{n}\n" for n in range(9)
)


class Bad:
    """A summariser with a fault."""

    kind = "model"
    window_tokens: int | None = None

    def __init__(self, fault: Fault) -> None:
        self._fault = fault

    async def summarise(self, part: SummaryPart) -> SummaryDraft:
        """Fail in its own way."""
        if self._fault == "dead":
            raise ConnectionError("nobody answers")
        if self._fault == "slow":
            await asyncio.sleep(3_600)
        return SummaryDraft("" if self._fault == "empty" else LIES)


class Backscroll:
    """Our own ladder, by its pure functions and the extractive summariser."""

    def __init__(
        self,
        window: int,
        *,
        facts: bool = True,
        summariser: bool = True,
        fault: Fault | None = None,
        by: Summariser | None = None,
    ) -> None:
        """`by` is asked for summaries instead of the extractive summariser."""
        sizes, results = Sizes(), ResultReader()
        reader = FactReader(sizes, results=results) if facts else FactReader(sizes, rules=())
        self.means = Means(sizes, Shaper(sizes, results=results), reader)
        self._asked = asked(window)
        self._settings = Settings() if facts else Settings(facts_max=1)
        self.entry: CompactionEntry = EMPTY
        good: Summariser | None = ExtractiveSummariser() if summariser else None
        self._summariser = by or (Bad(fault) if fault else good)
        self._timeout_s = SLOW_S if fault else MOST_S
        self.work = Work()
        self.made: list[tuple[SummaryJob, SummaryOutcome]] = []

    def view(self, history: Sequence[Message]) -> tuple[Message, ...]:
        """Return the view that the filter would send."""
        planned = self.planned(history)
        self.work.failed += any(w.reason == "invariant" for w in planned.warnings)
        self.entry = planned.entry
        return planned.view

    def planned(self, history: Sequence[Message]) -> Plan:
        """Return the finished plan of a call."""
        planned = plan(self._given(history))
        if planned.job is None:
            return planned
        if self._summariser is None:
            return settle(planned, skipped("no_summariser"))
        began = time.process_time()
        outcome = asyncio.run(self._run(planned.job))
        self._count(outcome)
        self.made.append((planned.job, outcome))
        self.work.aside_ms += (time.process_time() - began) * 1_000
        settled = settle(planned, outcome)
        if outcome.failed:
            entry = settled.entry
            settled = _with_failures(settled, entry.failures + 1)
        return settled

    def _given(self, history: Sequence[Message]) -> PlanInput:
        withheld: Any = None if self._summariser else "no_summariser"
        if self.entry.failures >= self._settings.failures_open:
            withheld = "paused_after_failures"
        window = self._summariser.window_tokens if self._summariser else None
        return PlanInput(
            tuple(history), self._asked, self.means, self._settings, self.entry,
            summariser_window=window, withheld=withheld,
        )  # fmt: skip

    def _count(self, outcome: SummaryOutcome) -> None:
        count = self.means.sizes.text
        self.work.calls += max(1, len(outcome.exchanges))
        self.work.tokens += sum(count(x.prompt) + count(x.answer) for x in outcome.exchanges)

    async def _run(self, job: SummaryJob) -> SummaryOutcome:
        assert self._summariser is not None
        return await run_job(
            job, self._summariser, timeout_s=self._timeout_s, cancel=CancelToken(),
            clock=SystemClock(), count=self.means.sizes.text,
        )  # fmt: skip


def _with_failures(settled: Plan, failures: int) -> Plan:
    return dataclasses.replace(settled, entry=settled.entry.replace(failures=failures))
