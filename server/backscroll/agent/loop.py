"""The loop: model calls and their tool batches, until one reply is the answer."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Sequence
from types import MappingProxyType

from backscroll.agent.events import IterationStarted
from backscroll.agent.plan import TurnPlan, TurnState
from backscroll.agent.round import Resumption, Round
from backscroll.kernel.errors import MaxIterationsExceeded, ModelError
from backscroll.kernel.filter import IterationHandler, build_chain
from backscroll.kernel.message import Message, ToolCall
from backscroll.kernel.model import Named, ToolChoice
from backscroll.kernel.request import ChatRequest, ChatResponse, Note, Stream
from backscroll.kernel.turn import Continue, IterationRequest, TurnRequest, TurnResult

IterationHook = Callable[[IterationRequest, IterationHandler], Awaitable[Continue | TurnResult]]


class Loop:
    """The innermost turn handler of one turn; a filter that calls it again gets a fresh budget.

    With a resumption, the first call carries it out before it iterates.
    """

    def __init__(
        self,
        plan: TurnPlan,
        state: TurnState,
        hooks: Sequence[IterationHook],
        resumption: Resumption | None = None,
    ) -> None:
        self._plan, self._state = plan, state
        self.resumption = resumption
        self._left = plan.limit
        self._iterate: IterationHandler = build_chain(hooks, self._iteration, Continue, TurnResult)

    async def __call__(self, request: TurnRequest) -> TurnResult:
        """Iterate until there is a final result."""
        step = await self._first(request)
        index = 0
        while isinstance(step, Continue):
            step = await self._iterate(
                IterationRequest(
                    step.messages,
                    step.context,
                    step.notes,
                    index,
                    self._left,
                    self._plan.reporter,
                    self._plan.tooling.client.texts,
                )
            )
            index += 1
        return self._state.fill(step)

    async def _first(self, request: TurnRequest) -> Continue | TurnResult:
        """Return what the first iteration starts from."""
        resumption, self.resumption = self.resumption, None
        if resumption is None:
            self._left = self._plan.limit
            return Continue(request.messages or (), request.context)
        self._state.context = request.context
        pause = resumption.pause
        self._left = pause.remaining
        self._state.take_up(pause)
        return await self._round(pause.calls, pause.message_id).go_on(resumption)

    async def _iteration(self, request: IterationRequest) -> Continue | TurnResult:
        """Make one model call and run the tools it asks for."""
        plan, state = self._plan, self._state
        state.context = request.context
        if plan.cancel.cancelled:
            return self._cancelled()
        delta = self._with_ids(request.messages)
        await self._store_missing(delta)
        state.iterations += 1
        await plan.reporter.send(
            IterationStarted(**plan.reporter.scope, index=request.index, remaining=self._left)
        )
        response = await self._chat(request, delta)
        if response is None or plan.cancel.cancelled:
            return self._cancelled()
        if not response.tool_calls or not await self._is_eligible(response):
            return await self._completed(response)
        if self._left <= 0:
            texts = plan.tooling.client.texts
            raise MaxIterationsExceeded(plan.limit, texts.max_iterations.format(limit=plan.limit))
        self._left -= 1
        return await self._round(response.tool_calls, response.message.id or "").begin(response)

    def _round(self, calls: tuple[ToolCall, ...], message_id: str) -> Round:
        return Round(self._plan, self._state, calls, message_id, self._left)

    async def _chat(
        self, request: IterationRequest, delta: tuple[Message, ...]
    ) -> ChatResponse | None:
        """Return the reply, or None when the call was cancelled."""
        plan, state = self._plan, self._state
        client = plan.tooling.client
        reply_id = client.ids.new("msg")
        chat = ChatRequest(
            delta,
            plan.system,
            plan.tooling.tools.specs(),
            self._choice(),
            plan.options,
            request.notes,
            MappingProxyType(dict(request.context)),
            plan.model,
            texts=client.texts,
            stream=Stream(plan.reporter.deltas(reply_id)),
            observer=plan.reporter,
            cancel=plan.cancel,
            reply_id=reply_id,
        )
        state.calls += 1
        state.add_new(delta)
        try:
            response = await client.chat(chat)
        except ModelError as error:
            if error.kind == "cancelled" and plan.cancel.cancelled:
                return None
            raise
        except Exception as error:
            await plan.reporter.broke_off(reply_id, error)
            raise
        state.take_reply(response.message)
        return response

    def _choice(self) -> ToolChoice:
        """A forced tool is forced in the first call of a turn; otherwise no turn could end."""
        choice = self._plan.tool_choice
        is_forced = choice == "required" or isinstance(choice, Named)
        return "auto" if is_forced and self._state.calls else choice

    async def _is_eligible(self, response: ChatResponse) -> bool:
        """Say whether the tools that a reply asks for may run."""
        if self._plan.eligible is None:
            return True
        answer = self._plan.eligible(response, self._state.context)
        return bool(await answer if inspect.isawaitable(answer) else answer)

    async def _completed(self, response: ChatResponse) -> TurnResult:
        if not response.text and not response.tool_calls:
            note = Note("empty_reply", "the model's reply has neither text nor tool calls")
            await self._plan.reporter.report(note)
        return TurnResult(
            "completed",
            text=response.text,
            message=response.message,
            finish_reason=response.finish_reason,
            context=self._state.context,
        )

    def _cancelled(self) -> TurnResult:
        return TurnResult("cancelled", context=self._state.context)

    def _with_ids(self, messages: Sequence[Message]) -> tuple[Message, ...]:
        ids = self._plan.tooling.client.ids
        return tuple(m if m.id else m.replace(id=ids.new("msg")) for m in messages)

    async def _store_missing(self, delta: Sequence[Message]) -> None:
        """Store results of an earlier pass that the delta does not bring."""
        brought = frozenset(message.id for message in delta)
        await self._state.store_waiting(self._plan.memory, brought)
