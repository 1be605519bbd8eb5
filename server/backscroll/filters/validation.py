"""Validation: checks the answer of a turn, and lets the model correct it."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable

from backscroll.filters.options import check_counts, check_template
from backscroll.filters.schema_check import Judgement
from backscroll.kernel.errors import AssemblyError
from backscroll.kernel.filter import Filter, TurnHandler
from backscroll.kernel.message import Role
from backscroll.kernel.request import Note
from backscroll.kernel.turn import TurnRequest, TurnResult

Check = Callable[[str], str | None | Awaitable[str | None]]
"""Returns what is wrong with an answer, or None; sync or async."""


class Corrected(Filter):
    """Base of filters that send an answer back with what is wrong with it.

    Only completed answers of the model are judged. After `max_retries` the last one is returned as
    it is, and noted.
    """

    def __init__(self, max_retries: int = 2, feedback: str | None = None) -> None:
        check_counts(0, max_retries=max_retries)
        check_template("feedback", feedback, {"problem"})
        self._max_retries, self._feedback = max_retries, feedback

    async def judge(self, text: str) -> Judgement:
        """Return what an answer is worth."""
        raise NotImplementedError

    async def turn(self, request: TurnRequest, chain: TurnHandler) -> TurnResult:
        """Run the turn, again with feedback as long as its answer has a problem."""
        result = await chain(request)
        for left in range(self._max_retries, -1, -1):
            if result.status != "completed" or result.return_direct or result.blocked_by:
                return result
            judgement = await self.judge(result.text)
            if judgement.problem is None:
                return self.accepted(result, judgement)
            if not left:
                text = f"the answer is still wrong after {self._max_retries} corrections"
                await request.report(Note(self.label, f"{text}: {judgement.problem}"))
                return result
            template = self._feedback or request.texts.validation_feedback
            feedback = self.message(Role.USER, template.format(problem=judgement.problem))
            again = request.replace(messages=(feedback,), context=result.context, is_resume=False)
            result = await chain(again)
        return result

    def accepted(self, result: TurnResult, judgement: Judgement) -> TurnResult:
        """Return the result of a turn whose answer is right."""
        return result


class Validation(Corrected):
    """Checks answers with a function that returns the problem, or None."""

    name = "validation"

    def __init__(self, check: Check, max_retries: int = 2, feedback: str | None = None) -> None:
        super().__init__(max_retries, feedback)
        if not callable(check):
            message = f"check: expected a function of the answer's text, got {check!r}"
            raise AssemblyError("invalid_option", message, "check")
        self._check = check

    async def judge(self, text: str) -> Judgement:
        """Ask the function."""
        problem = self._check(text)
        return Judgement(await problem if inspect.isawaitable(problem) else problem)
