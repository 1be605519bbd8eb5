"""ToolGuard: stops tools that fail again and again."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from backscroll.filters.kept import Kept
from backscroll.filters.options import check_choice, check_counts
from backscroll.kernel.filter import Filter, IterationHandler, ToolHandler, TurnHandler
from backscroll.kernel.request import ToolRequest, ToolResponse
from backscroll.kernel.texts import Texts
from backscroll.kernel.turn import Continue, IterationRequest, ToolRecord, TurnRequest, TurnResult

Call = tuple[str, str]


@dataclass(slots=True)
class Failures:
    """Failures of one turn: per call with its arguments, per tool, and all."""

    identical: Counter[Call] = field(default_factory=Counter)
    per_tool: Counter[str] = field(default_factory=Counter)
    total: int = 0
    is_told: bool = False

    def take(self, records: Sequence[ToolRecord]) -> None:
        """Count the failures of a batch; a success resets the counts of its tool."""
        for record in records:
            if record.failure is not None:
                self.identical[call_key(record.name, record.args)] += 1
                self.per_tool[record.name] += 1
                self.total += 1
            elif record.outcome == "ok":
                self.per_tool.pop(record.name, None)
                for key in [key for key in self.identical if key[0] == record.name]:
                    del self.identical[key]


class ToolGuard(Filter):
    """Refuses calls that failed `identical` times as they are, and tells the model about others.

    After `per_tool` failures of one tool, and once after `per_turn` failures of a turn, a note is
    on the next request; with `on_turn_limit="stop"` the turn ends. None switches a limit off.
    """

    name = "tool_guard"

    def __init__(
        self,
        identical: int | None = 3,
        per_tool: int | None = 5,
        per_turn: int | None = 8,
        on_turn_limit: str = "note",
    ) -> None:
        limits = {"identical": identical, "per_tool": per_tool, "per_turn": per_turn}
        check_counts(**{name: value for name, value in limits.items() if value is not None})
        check_choice("on_turn_limit", on_turn_limit, "note", "stop")
        self._identical, self._per_tool, self._per_turn = identical, per_tool, per_turn
        self._stops = on_turn_limit == "stop"
        self._failures: Kept[Failures] = Kept(Failures)

    async def turn(self, request: TurnRequest, chain: TurnHandler) -> TurnResult:
        """Forget earlier failures, unless a paused turn goes on."""
        if not request.is_resume:
            self._failures.renew(request.conversation_id)
        return await chain(request)

    async def iteration(
        self, request: IterationRequest, chain: IterationHandler
    ) -> Continue | TurnResult:
        """Count the failures of the batch, and tell or stop."""
        step = await chain(request)
        if not isinstance(step, Continue):
            return step
        failures = self._failures.of(request.conversation_id)
        failures.take(step.records)
        notes = self._tool_notes(failures, request.texts)
        if self._per_turn is not None and failures.total >= self._per_turn:
            if self._stops:
                text = request.texts.guard_stop.format(count=failures.total)
                answer = request.answer(text, blocked_by=self.name, store=True)
                return answer.replace(context=step.context)
            if not failures.is_told:
                failures.is_told = True
                notes.append(request.texts.guard_turn.format(count=failures.total))
        return step.replace(notes=(*step.notes, *notes)) if notes else step

    async def tool(self, request: ToolRequest, chain: ToolHandler) -> ToolResponse:
        """Refuse a call that failed too often exactly like this."""
        failures = self._failures.of(request.context.get("conversation_id"))
        count = failures.identical[call_key(request.tool.name, request.args)]
        if self._identical is None or count < self._identical:
            return await chain(request)
        text = request.texts.guard_refused.format(name=request.tool.name, count=count)
        return ToolResponse(text, outcome="error")

    def _tool_notes(self, failures: Failures, texts: Texts) -> list[str]:
        if self._per_tool is None:
            return []
        over = [name for name, count in failures.per_tool.items() if count >= self._per_tool]
        notes = [texts.guard_tool.format(name=n, count=failures.per_tool[n]) for n in over]
        for name in over:
            del failures.per_tool[name]
        return notes


def call_key(name: str, args: Mapping[str, Any] | None) -> Call:
    """Return what makes two calls identical: the tool, and its arguments in any order."""
    return name, json.dumps(args, sort_keys=True, default=repr)
