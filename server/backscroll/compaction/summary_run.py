"""A summary being made: pass after pass under one deadline, each answer checked."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from backscroll.compaction.acceptance import Accepted, Rejected, accept
from backscroll.compaction.material import SummaryJob
from backscroll.compaction.passes import Pass
from backscroll.compaction.reasons import Reason
from backscroll.compaction.summariser import Summariser, SummaryDraft, SummaryPart
from backscroll.compaction.tags import escape_tags
from backscroll.kernel.errors import ModelError, Never
from backscroll.kernel.ports import CancelToken, Clock
from backscroll.kernel.usage import Usage

OutcomeStatus = Literal["done", "failed", "cancelled", "skipped"]


@dataclass(frozen=True, slots=True)
class Exchange:
    """What one pass asked and what it was answered."""

    prompt: str
    answer: str


@dataclass(frozen=True, slots=True)
class SummaryOutcome:
    """What came of a summary: the core up to `cut`, or why there is none.

    A pass that failed after others had succeeded gives `done` with a `reason`: the cut is then
    the end of the last good one.
    """

    status: OutcomeStatus
    reason: Reason | None = None
    why: str = ""
    core: str = ""
    cut: int = 0
    parts: int = 0
    done: int = 0
    kind: str = ""
    model: str | None = None
    provider: str | None = None
    usage: Usage | None = None
    ms: int = 0
    made_ms: int = 0
    clipped: bool = False
    ungrounded: tuple[str, ...] = ()
    exchanges: tuple[Exchange, ...] = ()

    @property
    def failed(self) -> bool:
        """Say whether this counts as a failure of the summariser, partial success included."""
        return self.status != "cancelled" and self.reason in (
            "summariser_failed",
            "summariser_timeout",
            "ungrounded",
        )


def skipped(reason: Reason, why: str = "") -> SummaryOutcome:
    """Return the outcome of a summary that was not tried."""
    return SummaryOutcome("skipped", reason, why)


async def run_job(
    job: SummaryJob,
    summariser: Summariser,
    *,
    timeout_s: float,
    cancel: CancelToken,
    clock: Clock,
    count: Callable[[str], int],
    max_shrink: float = 0.8,
) -> SummaryOutcome:
    """Make the summary; never raises for what the summariser does.

    One deadline covers all passes. Nothing is tried again but a pass the summariser itself found
    too long: once, with half the material.
    """
    run = _Run(job, summariser, cancel, count, max_shrink)
    began = clock.monotonic()
    timer = asyncio.timeout(max(timeout_s, 0.0))
    try:
        async with timer:
            await run.all_passes()
    except TimeoutError as error:
        if timer.expired():
            run.stop("summariser_timeout", f"no answer within {timeout_s:g} s")
        else:
            run.stop("summariser_failed", _told(error))
    except Never.CONTAINED:
        raise
    except Exception as error:
        if cancel.cancelled:
            return run.outcome("cancelled", _ms(clock, began))
        run.stop("summariser_failed", _told(error))
    outcome = run.outcome("done" if run.cut else "failed", _ms(clock, began))
    return dataclasses.replace(outcome, made_ms=int(clock.now() * 1000))


class _Run:
    def __init__(
        self,
        job: SummaryJob,
        summariser: Summariser,
        cancel: CancelToken,
        count: Callable[[str], int],
        max_shrink: float,
    ) -> None:
        self._job, self._summariser, self._cancel = job, summariser, cancel
        self._count, self._max_shrink = count, max_shrink
        self._passes = job.passes()
        self._notes = job.notes
        self._reason: Reason | None = None
        self._why = ""
        self._drafts: list[SummaryDraft] = []
        self._exchanges: list[Exchange] = []
        self._clipped = False
        self._ungrounded: list[str] = []
        self._done = 0
        self.cut, self._core = 0, ""

    def stop(self, reason: Reason, why: str) -> None:
        """Remember why no further pass is made."""
        self._reason, self._why = reason, why

    async def all_passes(self) -> None:
        """Make the passes in order, until one fails."""
        halved = False
        queue = list(self._passes)
        while queue:
            step = queue.pop(0)
            try:
                draft = await self._ask(step)
            except ModelError as error:
                if halved or error.kind != "context_overflow":
                    raise
                halved = True
                room = max(self._count(step.transcript) // 2, 1)
                queue = list(self._job.passes(self.cut_of_last(), room))
                self._passes = (*self._passes[: self._done], *queue)
                continue
            if not self._take(step, draft):
                return

    def cut_of_last(self) -> int:
        """Return where the last good pass ended."""
        return self._passes[self._done - 1].end if self._done else -1

    async def _ask(self, step: Pass) -> SummaryDraft:
        part = SummaryPart(
            escape_tags(self._notes),
            step.transcript,
            self._job.max_tokens,
            self._job.focus,
            self._job.facts.covered,
            self._cancel,
        )
        prompt = f"{part.notes}\n\n{part.transcript}"
        self._exchanges.append(Exchange(prompt, ""))
        draft = await self._cancel.race(self._summariser.summarise(part))
        self._drafts.append(draft)
        self._exchanges[-1] = Exchange(prompt, draft.text)
        return draft

    def _take(self, step: Pass, draft: SummaryDraft) -> bool:
        """Take over an answer if it is acceptable; says whether to go on."""
        material = f"{self._notes}\n{step.transcript}"
        source = self._count(self._notes) + step.source_tokens
        judged = accept(
            draft, material, source, self._job.max_tokens, self._count, self._max_shrink
        )
        if isinstance(judged, Rejected):
            self._ungrounded += judged.ungrounded
            self.stop("ungrounded" if judged.ungrounded else "summariser_failed", judged.why)
            return False
        self._settle(step, judged)
        return True

    def _settle(self, step: Pass, judged: Accepted) -> None:
        self._notes = judged.text
        self._done += 1
        self._clipped = self._clipped or judged.clipped
        self._ungrounded += judged.ungrounded
        is_last = self._done == len(self._passes)
        if is_last or step.end in self._job.safe_ends:
            self.cut, self._core = self._job.cut if is_last else step.end, judged.text

    def outcome(self, status: OutcomeStatus, ms: int) -> SummaryOutcome:
        """Return what came of it so far."""
        usages = [draft.usage for draft in self._drafts if draft.usage is not None]
        last = self._drafts[-1] if self._drafts else None
        return SummaryOutcome(
            status,
            self._reason,
            self._why,
            self._core,
            self.cut,
            len(self._passes),
            self._done,
            self._summariser.kind,
            last.model if last else None,
            last.provider if last else None,
            sum(usages, Usage()) if usages else None,
            ms,
            0,
            self._clipped,
            tuple(dict.fromkeys(self._ungrounded)),
            tuple(self._exchanges),
        )


def _told(error: BaseException) -> str:
    kind = error.kind if isinstance(error, ModelError) else type(error).__name__
    return f"{kind}: {str(error)[:300]}" if str(error) else kind


def _ms(clock: Clock, began: float) -> int:
    return round((clock.monotonic() - began) * 1000)
