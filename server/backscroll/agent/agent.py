"""The agent: an immutable description of how turns run, and the way to run one."""

from __future__ import annotations

import dataclasses
import inspect
import random as random_module
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from types import MappingProxyType
from typing import Any, Literal, Unpack

from backscroll.agent.answers import PauseAnswer, check_answers
from backscroll.agent.assembly import (
    chat_order,
    check_compaction,
    check_limit,
    check_memory_filters,
    check_options,
    check_pausing,
    check_slots,
    check_tool_choice,
    check_window,
    texts_of,
)
from backscroll.agent.batch import Tooling
from backscroll.agent.events import EventSink
from backscroll.agent.executors import ConcurrentExecutor
from backscroll.agent.gate import Gate, GateRules
from backscroll.agent.inputs import Given, Input, TurnOptions, input_messages
from backscroll.agent.pause import PauseStore
from backscroll.agent.pause_desk import PauseDesk
from backscroll.agent.plan import Eligible, TurnPlan, TurnState
from backscroll.agent.reporter import Reporter, Scope
from backscroll.agent.resuming import inline_tools, not_paused, turn_state
from backscroll.agent.round import Resumption
from backscroll.agent.session import Session
from backscroll.agent.shared import Shared
from backscroll.agent.turn import Turn
from backscroll.compaction.filter import Compaction
from backscroll.conversation.memory import ChatMemory, InMemoryChatMemory
from backscroll.conversation.windowed import WindowedChatMemory
from backscroll.filters.memory import MemoryFilter
from backscroll.filters.safeguard import Blocked, Safeguard
from backscroll.kernel.client import ChatClient, ToolExecutor
from backscroll.kernel.errors import ResumeRefused
from backscroll.kernel.filter import Filter, hooks_of
from backscroll.kernel.message import Message
from backscroll.kernel.model import ChatModel, ModelOptions, ToolChoice
from backscroll.kernel.ports import CancelToken, Clock, Ids, RandomIds, SystemClock
from backscroll.kernel.request import ChatRequest
from backscroll.kernel.texts import Texts, check_texts
from backscroll.kernel.tool import Slot, Tool, ToolSet
from backscroll.kernel.turn import Pause, TurnResult

Instructions = str | Sequence[str] | Callable[[Mapping[str, Any]], Any] | None
"""Text, several texts, or a function of the context (sync or async) that returns either."""


class _OwnMemory(InMemoryChatMemory):
    """The memory of an agent that was given none."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Agent:
    """How turns run: a model, tools, filters, a memory, and the limits they run under.

    All mistakes of assembly are raised here, as AssemblyError, never in a turn.
    """

    model: ChatModel | str
    name: str = "agent"
    instructions: Instructions = None
    tools: Sequence[Tool] = ()
    filters: Sequence[Filter] = ()
    memory: ChatMemory = field(default_factory=_OwnMemory)
    compaction: Compaction | None = None
    executor: ToolExecutor = field(default_factory=ConcurrentExecutor)
    slots: Mapping[str, Slot] = field(default_factory=dict)
    max_iterations: int = 10
    tool_choice: ToolChoice = "auto"
    options: ModelOptions | None = None
    eligible: Eligible | None = None
    gate: Gate | None = None
    sensitive_tools: Literal["ask", "run"] = "ask"
    on_environment_error: Literal["report", "pause"] = "report"
    pauses: PauseStore | None = None
    pause_expires_s: float | None = None
    on_event: EventSink | None = None
    texts: Texts = field(default_factory=Texts)
    clock: Clock = field(default_factory=SystemClock)
    ids: Ids = field(default_factory=RandomIds)
    random: random_module.Random = field(default_factory=random_module.Random)
    client: ChatClient = field(init=False, repr=False)
    shared: Shared = field(default_factory=Shared, repr=False)

    def __post_init__(self) -> None:
        """Check everything and build the chains."""
        own = check_memory_filters(self.filters)
        if own is not None and isinstance(self.memory, _OwnMemory):
            object.__setattr__(self, "memory", own.memory)
        check_window(self.memory, [self.compaction, *self.filters])
        check_texts(self.texts, Texts())
        check_limit(self.max_iterations)
        check_slots(self.slots)
        check_pausing(
            self.gate,
            self.pause_expires_s,
            sensitive_tools=(self.sensitive_tools, "ask run"),
            on_environment_error=(self.on_environment_error, "report pause"),
        )
        tools = ToolSet(self.tools)
        check_tool_choice(self.tool_choice, tools)
        if not callable(self.instructions):
            texts_of(self.instructions, "instructions")
        # A name is resolved once: changed agents share the model and its connections.
        model = self.shared.resolved(self.model)
        object.__setattr__(self, "model", model)
        memory = self.shared.memory_filter.bind(self.memory)
        inserted = [item for item in (check_compaction(self.compaction),) if item is not None]
        client = ChatClient(
            model,
            tools,
            chat_order(memory, inserted, self.filters),
            executor=self.executor,
            options=check_options(self.options),
            texts=self.texts,
            clock=self.clock,
            ids=self.ids,
            random=self.random,
        )
        object.__setattr__(self, "client", client)

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
        **options: Unpack[TurnOptions],
    ) -> TurnResult:
        """Go on with a paused turn; raises ResumeRefused with all problems, changing nothing.

        `pause` is for callers that keep pauses themselves. Options hold for the rest of the turn.
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
            if not await self._desk().take(found):
                raise not_paused(name)
            return await self._turn(plan, state, given).resume(Resumption(found, answers))

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
        return await self._memory_filter().expand(request)

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
        catalog = self.client.tools.select(given.tags, given.exclude_tags).plus(inline)
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
                self.slots,
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
