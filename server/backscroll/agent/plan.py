"""What is fixed for one turn, and what the turn has gathered so far."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from backscroll.agent.batch import Tooling
from backscroll.agent.gate import GateRules
from backscroll.agent.reporter import Reporter
from backscroll.conversation.memory import ChatMemory
from backscroll.kernel.message import Message, ToolCall
from backscroll.kernel.model import ChatModel, ModelOptions, ToolChoice
from backscroll.kernel.ports import CancelToken
from backscroll.kernel.request import ChatResponse
from backscroll.kernel.tool import ToolSpec
from backscroll.kernel.turn import Pause, ToolRecord, TurnResult
from backscroll.kernel.usage import CallUsage

Eligible = Callable[[ChatResponse, Mapping[str, Any]], bool | Awaitable[bool]]
"""Says whether the tools that a reply asks for may run; sync or async."""


@dataclass(frozen=True, slots=True)
class TurnPlan:
    """What is fixed for one turn: who takes part, what is offered, and how far it may go.

    `inline` are the tools offered for this turn only.
    """

    conversation_id: str
    memory: ChatMemory
    model: ChatModel
    tooling: Tooling
    reporter: Reporter
    system: tuple[str, ...] = ()
    tool_choice: ToolChoice = "auto"
    options: ModelOptions = field(default_factory=ModelOptions)
    limit: int = 10
    cancel: CancelToken = field(default_factory=CancelToken)
    eligible: Eligible | None = None
    gate: GateRules = field(default_factory=GateRules)
    inline: tuple[ToolSpec, ...] = ()
    pause_expires_s: float | None = None
    is_ephemeral: bool = False


@dataclass(slots=True)
class TurnState:
    """What a turn has gathered so far, over all passes of its iterations.

    `waiting` are results that no model call has stored yet, `open` the calls of the last reply
    that have no result, `new` what the turn added to the history, `earlier` what calls before a
    pause have used.
    """

    conversation_id: str
    reporter: Reporter
    context: Mapping[str, Any]
    earlier: tuple[CallUsage, ...] = ()
    iterations: int = 0
    calls: int = 0
    records: list[ToolRecord] = field(default_factory=list)
    waiting: dict[str, Message] = field(default_factory=dict)
    open: dict[str, ToolCall] = field(default_factory=dict)
    new: dict[str, Message] = field(default_factory=dict)

    @property
    def usage(self) -> tuple[CallUsage, ...]:
        """What each call used, those before a pause included."""
        return (*self.earlier, *self.reporter.usage)

    def add_new(self, messages: Sequence[Message]) -> None:
        """Take messages that are stored now."""
        self.new.update((message.id or "", message) for message in messages)

    def take_reply(self, reply: Message) -> None:
        """Take a reply: it is stored, and so is what was passed to get it."""
        self.add_new([reply])
        self.waiting.clear()
        self.open = {call.id: call for call in reply.tool_calls}

    def take_up(self, pause: Pause) -> None:
        """Take up the calls of a pause: those without a result are open again."""
        done = {record.call_id for record in pause.records}
        self.open = {call.id: call for call in pause.calls if call.id not in done}

    def take_results(self, results: Sequence[Message], records: Sequence[ToolRecord]) -> None:
        """Take what came of the reply's calls."""
        self.records.extend(records)
        for result in results:
            self.waiting[result.id or ""] = result
            self.open.pop(result.tool_call_id or "", None)

    async def store_waiting(
        self, memory: ChatMemory, but: Collection[str | None] = frozenset()
    ) -> None:
        """Store results that no model call has stored, but not those of the given ids."""
        stored = [message for key, message in self.waiting.items() if key not in but]
        if stored:
            self.add_new(await memory.add(self.conversation_id, stored))
            self.waiting = {k: m for k, m in self.waiting.items() if k in but}

    def fill(self, result: TurnResult) -> TurnResult:
        """Return a result with everything gathered so far."""
        return result.replace(
            conversation_id=self.conversation_id,
            records=tuple(self.records),
            usage=self.usage,
            iterations=self.iterations,
            new_messages=tuple(self.new.values()),
        )
