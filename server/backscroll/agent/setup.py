"""What an agent is put together from, checked and chained once."""

from __future__ import annotations

import random as random_module
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from backscroll.agent.assembly import (
    chat_order,
    check_compaction,
    check_limit,
    check_memory_filters,
    check_options,
    check_pausing,
    check_slots,
    check_tool_choice,
    check_tool_search,
    check_window,
    texts_of,
)
from backscroll.agent.events import EventSink
from backscroll.agent.executors import ConcurrentExecutor
from backscroll.agent.gate import Gate
from backscroll.agent.pause import PauseStore
from backscroll.agent.plan import Eligible
from backscroll.agent.shared import Shared
from backscroll.compaction.filter import Compaction
from backscroll.conversation.memory import ChatMemory, InMemoryChatMemory
from backscroll.filters.approval import AskApproval
from backscroll.filters.tool_search import ToolSearch
from backscroll.kernel.client import ChatClient, ToolExecutor
from backscroll.kernel.filter import Filter
from backscroll.kernel.model import ChatModel, ModelOptions, ToolChoice
from backscroll.kernel.ports import Clock, Ids, RandomIds, SystemClock
from backscroll.kernel.texts import Texts, check_texts
from backscroll.kernel.tool import Slot, Tool, ToolSet

Instructions = str | Sequence[str] | Callable[[Mapping[str, Any]], Any] | None
"""Text, several texts, or a function of the context (sync or async) that returns either."""


class _OwnMemory(InMemoryChatMemory):
    """The memory of an agent that was given none."""


@dataclass(frozen=True, kw_only=True, eq=False)
class AgentSetup:
    """A model, tools, filters, a memory, and the limits that turns run under.

    Sensitive tools pause the turn, unless an `AskApproval` filter asks about them. All mistakes of
    assembly are raised here, as AssemblyError, never in a turn.
    """

    model: ChatModel | str
    name: str = "agent"
    instructions: Instructions = None
    tools: Sequence[Tool] = ()
    filters: Sequence[Filter] = ()
    memory: ChatMemory = field(default_factory=_OwnMemory)
    compaction: Compaction | None = None
    tool_search: ToolSearch | None = None
    executor: ToolExecutor = field(default_factory=ConcurrentExecutor)
    slots: Mapping[str, Slot] = field(default_factory=dict)
    max_iterations: int = 10
    tool_choice: ToolChoice = "auto"
    options: ModelOptions | None = None
    eligible: Eligible | None = None
    gate: Gate | None = None
    sensitive_tools: Literal["ask", "run"] | None = None
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
        if self.sensitive_tools is None:
            is_asked = any(isinstance(item, AskApproval) for item in self.filters)
            object.__setattr__(self, "sensitive_tools", "run" if is_asked else "ask")
        check_texts(self.texts, Texts())
        check_limit(self.max_iterations)
        check_slots(self.slots)
        check_pausing(
            self.gate,
            self.pause_expires_s,
            sensitive_tools=(self.sensitive_tools, "ask run"),
            on_environment_error=(self.on_environment_error, "report pause"),
        )
        search = check_tool_search(self.tool_search)
        compaction = check_compaction(self.compaction)
        if compaction is not None:
            compaction = compaction.over(self.memory)
        recall = compaction.recall_tool(self.memory) if compaction is not None else None
        own_tools = (search.finder if search is not None else None, recall)
        tools = ToolSet((*self.tools, *(tool for tool in own_tools if tool is not None)))
        check_tool_choice(self.tool_choice, tools)
        if not callable(self.instructions):
            texts_of(self.instructions, "instructions")
        # A name is resolved once: changed agents share the model and its connections.
        model = self.shared.resolved(self.model)
        object.__setattr__(self, "model", model)
        memory = self.shared.memory_filter.bind(self.memory)
        inserted = [f for f in (search, compaction) if f is not None]
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
