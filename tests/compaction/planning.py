"""What the tests of planning share: inputs, a growing conversation, a scripted summariser."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from typing import Any

from backscroll.compaction.budget import Asked
from backscroll.compaction.facts import FactReader
from backscroll.compaction.micro import Shaper
from backscroll.compaction.plan import Plan, plan, settle
from backscroll.compaction.reading import Means, PlanInput
from backscroll.compaction.settings import Settings
from backscroll.compaction.store import EMPTY, CompactionEntry
from backscroll.compaction.summariser import SummaryDraft, SummaryPart
from backscroll.compaction.summary_run import SummaryOutcome, run_job
from backscroll.compaction.texts import CompactionTexts
from backscroll.compaction.tokens import Sizes
from backscroll.kernel.message import Message
from backscroll.kernel.model import ModelProfile
from backscroll.kernel.ports import CancelToken, SystemClock
from compaction.histories import a, t, u
from deadlines import scaled

POLL_S, WITHIN_S = 0.005, 5.0

Answer = str | SummaryDraft | BaseException | Callable[[SummaryPart], Any]

WORDS = "the quick brown fox jumps over the lazy dog while it rains in town "


def fresh_means() -> Means:
    """Return means that remember nothing yet."""
    sizes, texts = Sizes(), CompactionTexts()
    return Means(sizes, Shaper(sizes, texts), FactReader(sizes, texts), texts)


MEANS = fresh_means()


def given(
    history: Sequence[Message],
    window: int | None = 8_000,
    entry: CompactionEntry = EMPTY,
    *,
    means: Means = MEANS,
    asked: Asked | None = None,
    settings: Settings | None = None,
    **changes: Any,
) -> PlanInput:
    """Return the input of a plan over a history."""
    profile = ModelProfile(context_window=window, window_source="configured")
    return PlanInput(
        tuple(history),
        asked or Asked(profile),
        means,
        settings or Settings(),
        entry,
        **changes,
    )


def prose(tokens: int, mark: str = "") -> str:
    """Return about so many tokens of prose, which holds no fact."""
    return mark + (WORDS * (tokens // 14 + 1))[: tokens * 5]


def talk(turns: int, tokens: int = 300, start: int = 1) -> list[Message]:
    """Return turns of a question, one tool round and an answer; results have so many tokens."""
    out: list[Message] = []
    for turn in range(start, start + turns):
        n = 10 * turn
        out += [
            u(n, f"Question {turn}: what about part {turn}?"),
            a(n + 1, None, f"c{turn}", path=f"src/part{turn}.py"),
            t(n + 2, f"c{turn}", prose(tokens, f"part {turn}: ")),
            a(n + 3, f"Part {turn} is fine."),
        ]
    return out


class Says:
    """A summariser that answers from a list, its last answer again and again."""

    kind = "model"
    window_tokens: int | None = None

    def __init__(self, *answers: Answer, window: int | None = None) -> None:
        self.answers = list(answers) or ["## Goal\n- keep going with the parts, as was asked"]
        self.parts: list[SummaryPart] = []
        self.window_tokens = window

    async def summarise(self, part: SummaryPart) -> SummaryDraft:
        """Give the next answer; an exception is raised, a function is called with the part."""
        self.parts.append(part)
        answer = self.answers[min(len(self.parts), len(self.answers)) - 1]
        if callable(answer):
            answer = answer(part)
            if asyncio.iscoroutine(answer):
                answer = await answer
        if isinstance(answer, BaseException):
            raise answer
        return answer if isinstance(answer, SummaryDraft) else SummaryDraft(answer, model="small")


async def outcome_of(planned: Plan, summariser: Any, timeout_s: float = 5.0) -> SummaryOutcome:
    """Return what comes of the job of a plan."""
    assert planned.job is not None
    return await run_job(
        planned.job,
        summariser,
        timeout_s=timeout_s,
        cancel=CancelToken(),
        clock=SystemClock(),
        count=planned.given.means.sizes.text,
    )


def finished(input: PlanInput, core: str = "## Goal\n- a summary of what was said") -> Plan:
    """Return the plan, its summary made with this core if it asks for one."""
    planned = plan(input)
    if planned.job is None:
        return planned
    return settle(planned, SummaryOutcome("done", core=core, cut=planned.job.cut, kind="model"))


def stages(planned: Plan) -> list[tuple[str, str]]:
    """Return name and status of each stage of the decision."""
    decision = planned.decision
    return [(stage.stage, stage.status) for stage in decision.stages] if decision else []


async def until(condition: Callable[[], bool]) -> None:
    """Return as soon as the condition holds; fail when it does not come true."""
    deadline = time.monotonic() + scaled(WITHIN_S)
    while not condition():
        assert time.monotonic() < deadline, "what was waited for did not happen"
        await asyncio.sleep(POLL_S)
