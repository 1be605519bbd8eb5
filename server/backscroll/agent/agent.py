"""The agent: an immutable description of how turns run, and the way to run one."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import Any, Unpack

from backscroll.agent.answers import PauseAnswer, check_answers
from backscroll.agent.assembly import (
    check_limit,
    check_options,
    check_tool_choice,
    texts_of,
)
from backscroll.agent.batch import Tooling
from backscroll.agent.gate import GateRules
from backscroll.agent.inputs import Given, Input, TurnOptions, input_messages
from backscroll.agent.pause_desk import PauseDesk
from backscroll.agent.plan import TurnPlan, TurnState
from backscroll.agent.reporter import Reporter, Scope
from backscroll.agent.resuming import inline_tools, not_paused, turn_state
from backscroll.agent.round import Resumption
from backscroll.agent.session import Session
from backscroll.agent.setup import AgentSetup
from backscroll.agent.turn import Turn
from backscroll.conversation.windowed import WindowedChatMemory
from backscroll.filters.memory import MemoryFilter
from backscroll.filters.safeguard import Blocked, Safeguard
from backscroll.kernel.errors import ResumeRefused
from backscroll.kernel.filter import hooks_of
from backscroll.kernel.message import Message
from backscroll.kernel.model import ChatModel
from backscroll.kernel.ports import CancelToken
from backscroll.kernel.request import ChatRequest
from backscroll.kernel.tool import ToolSet
from backscroll.kernel.turn import Pause, TurnResult


@dataclass(frozen=True, kw_only=True, eq=False)
class Agent(AgentSetup):
    """An immutable description of how turns run, and the way to run one."""

    def replace(self, **changes: Any) -> Agent:
        """Return a changed agent that shares filters, locks and caches with this one.

        A window stays around whatever memory is put in its place.
        """
        memory = changes.get("memory", self.memory)
        if isinstance(self.memory, WindowedChatMemory):
            if not isinstance(memory, WindowedChatMemory):
                changes["memory"] = self.memory.over(memory)
        return dataclasses.replace(self, **changes)

    async def invoke(self, input: Input, **options: Unpack[TurnOptions]) -> TurnResult:
        """Run one turn and return how it ended; an empty input answers the history as it stands.

        Raises only for misuse, and what is never contained: a lost lease, our own task's cancel.
        """
        given = Given(**options)
        plan, state = self._plan(given, given.conversation_id or self.ids.new("conv"))
        messages = input_messages(input, plan.model, self.ids)
        async with self.shared.locks.hold(plan.conversation_id):
            return await self._turn(plan, state, given).run(messages)

    async def resume(
        self,
        answers: Mapping[str, PauseAnswer],
        *,
        pause: Pause | None = None,
        messages: Input = (),
        **options: Unpack[TurnOptions],
    ) -> TurnResult:
        """Go on with a paused turn; raises ResumeRefused with all problems, changing nothing.

        `pause` is for callers that keep pauses themselves; `messages` are said together with the
        answers and go behind the results. Options hold for the rest of the turn.
        """
        given = Given(**options)
        name = given.conversation_id or (pause.conversation_id if pause is not None else "")
        async with self.shared.locks.hold(name):
            found = pause if pause is not None else await self._desk().load(name)
            if found is None or found.conversation_id != name:
                raise not_paused(name)
            plan, state = self._plan(given, name, found)
            problems = check_answers(found, answers, plan.tooling.tools, self.clock.now())
            if problems:
                raise ResumeRefused(problems)
            said = input_messages(messages, plan.model, self.ids)
            if not await self._desk().take(found):
                raise not_paused(name)
            return await self._turn(plan, state, given).resume(Resumption(found, answers, said))

    async def next_request(
        self, conversation_id: str, context: Mapping[str, Any] | None = None
    ) -> ChatRequest:
        """Return the request that the next call would hand to compaction; stores nothing."""
        values = MappingProxyType({**(context or {}), "conversation_id": conversation_id})
        request = ChatRequest(
            (),
            await self._system((), values),
            self.client.tools.specs(),
            self.tool_choice,
            self.client.options,
            context=values,
            model=self.client.model,
            profile=self._model(None).profile,
            texts=self.texts,
        )
        whole = await self._memory_filter().expand(request)
        return whole if self.tool_search is None else self.tool_search.narrowed(whole)

    def screen(self, messages: Sequence[Message]) -> Blocked | None:
        """Return why no turn would answer these messages, for a host that stores them first."""
        guards = (item for item in self.client.filters if isinstance(item, Safeguard))
        found = (guard.screen(messages, self.texts) for guard in guards)
        return next((blocked for blocked in found if blocked is not None), None)

    def session(self, conversation_id: str) -> Session:
        """Return a short way to go on with one conversation."""
        return Session(self, conversation_id)

    async def aclose(self) -> None:
        """Let go of the executor's threads, and of the connections of models and filters."""
        await self.executor.aclose()
        for item in self.client.filters:
            await item.aclose()
        for model in {id(m): m for m in (self._model(None), *self.shared.models.values())}.values():
            await model.aclose()

    def _turn(self, plan: TurnPlan, state: TurnState, given: Given) -> Turn:
        system = partial(self._system, texts_of(given.system, "system"))
        hooks = self._hooks("turn"), self._hooks("iteration")
        return Turn(plan, state, *hooks, system, self._desk(), given.on_paused)

    def _plan(
        self, given: Given, conversation_id: str, pause: Pause | None = None
    ) -> tuple[TurnPlan, TurnState]:
        """Put together what is fixed for a turn; raises for options that cannot be."""
        inline = inline_tools(given.tools, pause)
        self.client.tools.plus(inline)
        catalog = self._declared(given.tags, given.exclude_tags).plus(inline)
        choice = self.tool_choice if given.tool_choice is None else given.tool_choice
        check_tool_choice(choice, catalog)
        limit = self.max_iterations if given.max_iterations is None else given.max_iterations
        scope: Scope = {
            "agent": self.name,
            "conversation_id": conversation_id,
            "turn_id": self.ids.new("turn"),
            "run_id": given.run_id,
        }
        reporter = Reporter(given.on_event or self.on_event, scope)
        cancel = given.cancel or CancelToken()
        plan = TurnPlan(
            conversation_id,
            self.memory,
            self._model(given.model),
            Tooling(
                self.client,
                catalog,
                self.executor,
                {**self.slots, **(self.tool_search.slots if self.tool_search else {})},
                cancel,
                reporter,
                self.on_environment_error == "pause",
            ),
            reporter,
            tool_choice=choice,
            options=check_options(given.options),
            limit=check_limit(limit),
            cancel=cancel,
            eligible=self.eligible,
            gate=GateRules(self.gate, self.sensitive_tools == "ask"),
            inline=tuple(tool.spec() for tool in inline if tool.info.runs_in == "client"),
            pause_expires_s=self.pause_expires_s,
            is_ephemeral=pause.is_ephemeral if pause else not given.conversation_id,
        )
        return plan, turn_state(plan, given, pause)

    def _declared(self, tags: Iterable[str] | None, exclude_tags: Iterable[str] | None) -> ToolSet:
        """Return the agent's tools that tags choose; the search for tools is always there."""
        chosen = self.client.tools.select(tags, exclude_tags)
        if self.tool_search is None or chosen.get(self.tool_search.finder.name) is not None:
            return chosen
        return chosen.plus([self.tool_search.finder])

    def _desk(self) -> PauseDesk:
        return PauseDesk(self.pauses, self.shared.pauses)

    async def _system(self, added: tuple[str, ...], context: Mapping[str, Any]) -> tuple[str, ...]:
        """Return the system texts of a turn; a function of the context is asked once."""
        found = self.instructions
        if callable(found):
            found = found(context)
            if inspect.isawaitable(found):
                found = await found
        return (*texts_of(found, "instructions"), *added)

    def _model(self, given: ChatModel | str | None) -> ChatModel:
        if given is not None:
            return self.shared.resolved(given)
        assert self.client.model is not None
        return self.client.model

    def _memory_filter(self) -> MemoryFilter:
        found = self.client.filters[0]
        assert isinstance(found, MemoryFilter)
        return found

    def _hooks(self, name: str) -> list[Any]:
        return [getattr(item, name) for item in self.client.filters if name in hooks_of(item)]
