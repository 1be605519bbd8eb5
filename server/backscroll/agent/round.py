"""One round: what becomes of the calls of a reply, now or after a pause."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from backscroll.agent.answers import PauseAnswer, Reply, Retry, response_to
from backscroll.agent.batch import execute_runs
from backscroll.agent.events import ContextChanged
from backscroll.agent.gate import Decisions, decide
from backscroll.agent.pause import approval_items, client_items, environment_items
from backscroll.agent.plan import TurnPlan, TurnState
from backscroll.agent.tool_run import ToolRun
from backscroll.agent.unrunnable import unrunnable
from backscroll.kernel.content import text_of
from backscroll.kernel.message import Message, ToolCall
from backscroll.kernel.pause_codec import json_context
from backscroll.kernel.request import ChatResponse, Note, ToolResponse
from backscroll.kernel.turn import Continue, Pause, PauseItem, ToolRecord, TurnResult
from backscroll.kernel.usage import FinishReason


@dataclass(frozen=True, slots=True)
class Resumption:
    """A pause that goes on, with an answer to each of its items.

    `said` are messages that came together with the answers; they go behind the results.
    """

    pause: Pause
    answers: Mapping[str, PauseAnswer]
    said: tuple[Message, ...] = ()

    def runs(self, plan: TurnPlan) -> list[ToolRun]:
        """Return the calls that have no result yet, with what was answered."""
        done = {record.call_id for record in self.pause.records}
        return [self._run(call, plan) for call in self.pause.calls if call.id not in done]

    def _run(self, call: ToolCall, plan: TurnPlan) -> ToolRun:
        client = plan.tooling.client
        item = next((item for item in self.pause.items if item.id == call.id), None)
        if item is None:
            decided = self.pause.decided.get(call.id)
            return ToolRun(call, client.ids.new("msg"), decided)
        answer = self.answers[call.id]
        held = next((record for record in self.pause.held if record.call_id == call.id), None)
        named = answer.message_id if isinstance(answer, Reply) else None
        edited = getattr(answer, "args", None) or (held.edited_args if held else None)
        return ToolRun(
            call,
            named or client.ids.new("msg"),
            response_to(item, answer, held, client.texts),
            edited,
            start=held.attempts + 1 if held and isinstance(answer, Retry) else 1,
        )


class Round:
    """The calls of one reply, from the gate to what the turn does next."""

    def __init__(
        self,
        plan: TurnPlan,
        state: TurnState,
        calls: tuple[ToolCall, ...],
        message_id: str,
        remaining: int,
    ) -> None:
        self._plan, self._state = plan, state
        self._calls, self._message_id, self._remaining = calls, message_id, remaining

    async def begin(self, response: ChatResponse) -> Continue | TurnResult:
        """Decide about the calls of a reply; run them, or ask somebody first."""
        plan, tools = self._plan, self._plan.tooling.tools
        is_cut = response.finish_reason is FinishReason.MAX_TOKENS
        answers = {
            call.id: answer
            for call in self._calls
            if (answer := unrunnable(call, tools, plan.tooling.client.texts, is_cut)) is not None
        }
        clients = [c for c in self._calls if c.id not in answers and self._is_client(c)]
        others = [c for c in self._calls if c.id not in answers and not self._is_client(c)]
        decisions = await self._decide(others)
        if plan.cancel.cancelled:
            return self._cancelled()
        answers |= decisions.decided
        if decisions.questions:
            items = approval_items(decisions.questions, self._calls)
            return await self._pause([*items, *client_items(clients)], answers)
        new_id = plan.tooling.client.ids.new
        runs = [
            ToolRun(call, new_id("msg"), answers.get(call.id))
            for call in self._calls
            if call not in clients
        ]
        return await self._run(runs, clients)

    async def go_on(self, resumption: Resumption) -> Continue | TurnResult:
        """Carry out what was answered; the gate is not asked again."""
        step = await self._run(resumption.runs(self._plan), [])
        if not resumption.said or not (isinstance(step, Continue) or step.return_direct):
            return step
        # What was said is answered, so results that would end the turn do not.
        results = tuple(self._state.waiting.values())
        return Continue((*results, *resumption.said), self._state.context, (), step.records)

    async def _decide(self, calls: Sequence[ToolCall]) -> Decisions:
        tooling = self._plan.tooling
        context, texts = self._state.context, tooling.client.texts
        return await decide(self._plan.gate, calls, tooling.tools, context, texts)

    async def _run(
        self, runs: Sequence[ToolRun], clients: Sequence[ToolCall]
    ) -> Continue | TurnResult:
        """Run the calls; their results are the next delta, unless the turn ends or waits."""
        plan, state = self._plan, self._state
        batch = await execute_runs(plan.tooling, runs, state.context, self._message_id)
        state.take_results(batch.messages, batch.records)
        if batch.error is not None:
            raise batch.error
        state.context = batch.context
        if batch.written:
            scope = plan.reporter.scope
            changed = ContextChanged(**scope, keys=batch.written, conflicts=batch.conflicts)
            await plan.reporter.send(changed)
        if plan.cancel.cancelled:
            return self._cancelled()
        by_id = {call.id: call for call in self._calls}
        texts = plan.tooling.client.texts
        items = [*environment_items(batch.held, by_id, texts), *client_items(clients)]
        if items:
            return await self._pause(items, {}, batch.held)
        if self._is_direct():
            return self._direct()
        return Continue(batch.messages, batch.context, (), batch.records)

    async def _pause(
        self,
        items: Sequence[PauseItem],
        decided: Mapping[str, ToolResponse],
        held: tuple[ToolRecord, ...] = (),
    ) -> TurnResult:
        """Store what ran, and return the turn as it waits."""
        plan, state = self._plan, self._state
        await state.store_waiting(plan.memory)
        context, left_out = json_context(state.context)
        if left_out:
            names = ", ".join(left_out)
            note = Note("pause_context", f"these are no JSON values and do not outlive it: {names}")
            await plan.reporter.report(note)
        client = plan.tooling.client
        now = client.clock.now()
        pause = Pause(
            client.ids.new("pause"),
            plan.conversation_id,
            tuple(items),
            now,
            None if plan.pause_expires_s is None else now + plan.pause_expires_s,
            self._calls,
            self._message_id,
            self._remaining,
            tuple(state.records),
            state.usage,
            decided,
            held,
            context,
            plan.inline,
            plan.is_ephemeral,
        )
        return TurnResult("paused", pause=pause, context=state.context)

    def _is_client(self, call: ToolCall) -> bool:
        tool = self._plan.tooling.tools.get(call.name)
        return tool is not None and tool.info.runs_in == "client"

    def _is_direct(self) -> bool:
        """Say whether all tools that were asked for give the answer themselves."""
        tools = (self._plan.tooling.tools.get(call.name) for call in self._calls)
        return all(tool is not None and tool.info.return_direct for tool in tools)

    def _direct(self) -> TurnResult:
        """Return the results of the calls, in their order, as the answer of the turn."""
        contents: dict[str, Any] = {r.call_id: r.content for r in self._state.records}
        return TurnResult(
            "completed",
            text="\n".join(text_of(contents[call.id]) for call in self._calls),
            finish_reason=FinishReason.STOP,
            context=self._state.context,
            return_direct=True,
        )

    def _cancelled(self) -> TurnResult:
        return TurnResult("cancelled", context=self._state.context)
