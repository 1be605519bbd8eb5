"""DeadLoop: reminds a model that runs in circles; it never blocks anything."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from backscroll.filters.circles import circle, fingerprint
from backscroll.filters.kept import Kept
from backscroll.filters.options import check_counts, check_template
from backscroll.kernel.filter import Filter, IterationHandler, TurnHandler
from backscroll.kernel.turn import Continue, IterationRequest, ToolRecord, TurnRequest, TurnResult


class DeadLoop(Filter):
    """Puts a note on the next request when the last rounds of tool calls brought nothing new.

    A successful call of a tool named in `writes`, or what `progress(records)` says, is progress:
    it starts the count anew. With `compare_results=False` only the calls are compared.
    """

    name = "dead_loop"

    def __init__(
        self,
        window: int = 6,
        recent: int = 4,
        distinct: int = 2,
        reminder: str | None = None,
        writes: Collection[str] = (),
        progress: Callable[[Sequence[ToolRecord]], bool] | None = None,
        compare_results: bool = True,
    ) -> None:
        check_counts(window=window, recent=recent, distinct=distinct)
        check_template("reminder", reminder, {"rounds"})
        self._window, self._recent, self._distinct = window, recent, distinct
        self._reminder, self._writes, self._progress = reminder, frozenset(writes), progress
        self._compare_results = compare_results
        self._rounds: Kept[list[str]] = Kept(list)

    async def turn(self, request: TurnRequest, chain: TurnHandler) -> TurnResult:
        """Start the count anew, unless a paused turn goes on."""
        if not request.is_resume:
            self._rounds.renew(request.conversation_id)
        return await chain(request)

    async def iteration(
        self, request: IterationRequest, chain: IterationHandler
    ) -> Continue | TurnResult:
        """Remember the round, and remind if it closes a circle."""
        step = await chain(request)
        if not isinstance(step, Continue) or not step.records:
            return step
        rounds = self._rounds.of(request.conversation_id)
        if self._is_progress(step.records):
            rounds.clear()
            return step
        rounds.append(fingerprint(step.records, self._compare_results))
        del rounds[: -self._window]
        found = circle(rounds, self._recent, self._distinct, self._window)
        if found is None:
            return step
        rounds.clear()
        note = (self._reminder or request.texts.dead_loop).format(rounds=found)
        return step.replace(notes=(*step.notes, note))

    def _is_progress(self, records: Sequence[ToolRecord]) -> bool:
        if self._progress is not None:
            return self._progress(records)
        return any(record.name in self._writes and record.outcome == "ok" for record in records)
