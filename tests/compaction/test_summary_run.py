"""A summary being made: passes, one deadline, failures, partial success."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from backscroll.compaction.facts import FactsBlock
from backscroll.compaction.material import SummaryJob
from backscroll.compaction.passes import Excerpt
from backscroll.compaction.pieces import PieceCounter
from backscroll.compaction.summariser import SummaryDraft, SummaryPart
from backscroll.compaction.summary_run import SummaryOutcome, run_job, skipped
from backscroll.kernel.errors import ModelError
from backscroll.kernel.ports import CancelToken, SystemClock
from backscroll.kernel.usage import FinishReason, Usage
from compaction.planning import Says

COUNT = PieceCounter().count


def job(passes: int = 1, safe: tuple[int, ...] = (1, 2, 3, 4, 5), notes: str = "") -> SummaryJob:
    """Return a job whose material needs so many passes."""
    text = "[#{n} user] please look at part {n} of the plan and say what is in it"
    groups = tuple((Excerpt(n, text.format(n=n), "short", 20, 20, 1_000),) for n in range(passes))
    facts = FactsBlock(covered=frozenset({"seen"}))
    ends = frozenset(end for end in safe if end <= passes)
    return SummaryJob(0, passes, notes, groups, 400, facts, ends, 20, "[{count}]", "focus")


async def run(made: SummaryJob, summariser: Any, **changes: Any) -> SummaryOutcome:
    """Run a job with a deadline of five seconds."""
    options = {"timeout_s": 5.0, "cancel": CancelToken(), "clock": SystemClock(), "count": COUNT}
    return await run_job(made, summariser, **{**options, **changes})


async def test_one_pass_gives_the_core_and_the_whole_cut() -> None:
    """What was asked and answered is kept, and the covered facts are named to the summariser."""
    summariser = Says(SummaryDraft("## Goal\n- x", usage=Usage(9, 2), model="m", provider="p"))
    outcome = await run(job(notes="old core"), summariser)
    assert (outcome.status, outcome.core, outcome.cut) == ("done", "## Goal\n- x", 1)
    assert (outcome.kind, outcome.model, outcome.provider) == ("model", "m", "p")
    assert (outcome.parts, outcome.done, outcome.usage) == (1, 1, Usage(9, 2))
    assert outcome.reason is None and not outcome.failed and outcome.made_ms > 0
    (part,) = summariser.parts
    assert (part.notes, part.focus, part.covered) == ("old core", "focus", {"seen"})
    assert outcome.exchanges[0].answer == "## Goal\n- x"
    assert "old core" in outcome.exchanges[0].prompt


async def test_every_pass_merges_into_the_notes_of_the_one_before() -> None:
    """SUM3: the answer of one pass is the notes of the next; usage is added up."""
    drafts = [SummaryDraft(f"notes {n} of the plan", usage=Usage(10, n)) for n in (1, 2, 3)]
    summariser = Says(*drafts)
    outcome = await run(job(3), summariser)
    assert [part.notes for part in summariser.parts] == ["", *(d.text for d in drafts[:2])]
    assert (outcome.core, outcome.cut) == ("notes 3 of the plan", 3)
    assert outcome.usage == Usage(30, 6)


async def test_a_pass_that_fails_keeps_what_the_ones_before_gave() -> None:
    """SUM4: the cut is the end of pass 2, and one failure is counted."""
    outcome = await run(job(5), Says("first notes", "second notes", "  "))
    assert (outcome.status, outcome.core, outcome.cut) == ("done", "second notes", 2)
    assert (outcome.parts, outcome.done) == (5, 2)
    assert outcome.failed and outcome.reason == "summariser_failed" and "blank" in outcome.why


async def test_partial_success_ends_at_a_safe_place() -> None:
    """SUM4: where the end of the last good pass is no safe cut, the one before counts."""
    outcome = await run(job(4, safe=(1,)), Says("first notes", "second notes", "third notes", ""))
    assert (outcome.core, outcome.cut) == ("first notes", 1)
    nothing = await run(job(4, safe=()), Says("first notes", "second notes", ""))
    assert (nothing.status, nothing.core, nothing.cut) == ("failed", "", 0)


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        ("", "blank"),
        (SummaryDraft("", has_calls=True), "tool call"),
        (SummaryDraft("no", refused=True), "refused"),
        ("word " * 2_000, "not smaller"),
        (ModelError("auth", "bad key"), "auth: bad key"),
        (ValueError(), "ValueError"),
        (TimeoutError("socket"), "TimeoutError: socket"),
    ],
)
async def test_each_failure_counts_once_and_is_not_tried_again(answer: Any, why: str) -> None:
    """SUM1, SUM5: one request, one failure, with its reason."""
    summariser = Says(answer)
    outcome = await run(job(), summariser)
    assert (outcome.status, outcome.reason, outcome.core) == ("failed", "summariser_failed", "")
    assert outcome.failed and why in outcome.why
    assert len(summariser.parts) == 1


async def test_invented_identifiers_are_a_failure_of_their_own() -> None:
    """SUM11: they are listed, marked when few, and a failure when many."""
    few = await run(job(), Says("it is dpl_99 now"))
    assert (few.core, few.ungrounded) == ("it is dpl_99 [unverified] now", ("dpl_99",))
    many = await run(job(), Says("dpl_99, dpl_98 and dpl_97"))
    assert (many.status, many.reason, len(many.ungrounded)) == ("failed", "ungrounded", 3)


async def test_the_deadline_ends_everything() -> None:
    """SUM6: one deadline over all passes; what was made before it counts."""

    async def slowly(part: SummaryPart) -> str:
        await asyncio.sleep(60 if part.notes else 0)
        return "notes of the first part"

    outcome = await run(job(2), Says(slowly), timeout_s=0.05)
    assert (outcome.status, outcome.core, outcome.cut) == ("done", "notes of the first part", 1)
    assert outcome.reason == "summariser_timeout" and outcome.failed


async def test_a_cancelled_call_is_no_failure() -> None:
    """SUM13: the summariser is stopped at once, and nothing is counted."""
    cancel, stopped = CancelToken(), asyncio.Event()

    async def forever(part: SummaryPart) -> str:
        cancel.cancel("the user left")
        try:
            await asyncio.sleep(60)
        finally:
            stopped.set()
        return ""

    outcome = await run(job(), Says(forever), cancel=cancel)
    assert outcome.status == "cancelled" and not outcome.failed
    assert stopped.is_set()


async def test_a_summariser_that_overflows_gets_half_the_material_once() -> None:
    """No other retry is made; a second overflow is a failure."""
    groups = tuple((Excerpt(n, f"word {n} " * 30, "s", 60, 60, 500),) for n in range(4))
    whole = SummaryJob(0, 4, "", groups, 400, FactsBlock(), frozenset({1, 2, 3, 4}))
    too_long = ModelError("context_overflow", "prompt is too long")

    summariser = Says(too_long, "first half", "both halves")
    outcome = await run(whole, summariser)
    assert (outcome.core, outcome.cut, outcome.parts) == ("both halves", 4, 2)
    assert len(summariser.parts[1].transcript) < len(summariser.parts[0].transcript) * 0.6

    again = await run(whole, Says(too_long, too_long))
    assert (again.status, again.reason) == ("failed", "summariser_failed")


async def test_an_answer_cut_by_its_limit_says_so() -> None:
    """It is used up to its last full line."""
    draft = SummaryDraft("## Goal\n- one\n- tw", FinishReason.MAX_TOKENS)
    outcome = await run(job(), Says(draft))
    assert (outcome.core, outcome.clipped) == ("## Goal\n- one", True)


async def test_errors_that_nobody_contains_come_out() -> None:
    """A process out of memory is not a failed summary."""
    with pytest.raises(MemoryError):
        await run(job(), Says(MemoryError()))


def test_a_summary_that_was_not_tried_is_no_failure() -> None:
    """It carries its reason."""
    outcome = skipped("paused_after_failures", "until noon")
    assert (outcome.status, outcome.reason, outcome.failed) == (
        "skipped", "paused_after_failures", False,
    )  # fmt: skip
