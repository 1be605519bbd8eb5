"""The messages a client sent, each sorted by what it is to the thread."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from backscroll.agui.ids import reasoning_id
from backscroll.agui.messages import is_reasoning
from backscroll.agui.options import AgentRules
from backscroll.agui.parts import is_same
from backscroll.conversation.history import pair
from backscroll.kernel.message import Message, Role, ToolCall
from backscroll.kernel.request import Note
from backscroll.kernel.turn import Pause
from backscroll.store.pause_record import PauseRecord


@dataclass(frozen=True, slots=True)
class OpenBatch:
    """The calls at the end of a history that have no result yet.

    `pending` wait for the client; `dangling` are calls of the server's own tools that were lost.
    """

    asker: int = -1
    calls: tuple[ToolCall, ...] = ()
    pending: tuple[ToolCall, ...] = ()
    dangling: tuple[ToolCall, ...] = ()


@dataclass(slots=True)
class ClientList:
    """A client's list, sorted; places are indexes in the stored history."""

    sent: list[Message]
    history: tuple[Message, ...]
    batch: OpenBatch
    known: dict[str, int] = field(default_factory=dict)
    results: dict[str, Message] = field(default_factory=dict)
    duplicates: dict[str, int] = field(default_factory=dict)
    new: list[Message] = field(default_factory=list)
    covered: list[Message] = field(default_factory=list)
    foreign: list[Message] = field(default_factory=list)
    edited: list[Message] = field(default_factory=list)
    has_invented: bool = False

    @property
    def last(self) -> Message | None:
        """The last message of the list that says something."""
        said = (message for message in reversed(self.sent) if message.role is not Role.SYSTEM)
        return next(said, None)

    def notes(self) -> Iterator[Note]:
        """Yield what operators should know of the list."""
        if self.foreign:
            listed = [message.id or "" for message in self.foreign]
            digest = hashlib.sha256("\n".join(listed).encode()).hexdigest()[:16]
            text = f"{len(listed)} messages of the client are not of this thread and were ignored"
            key = f"foreign_messages:{digest}"
            yield Note("foreign_messages", text, key, {"ids": listed[:100]})
        for message in self.edited:
            text = f"the client's copy of {message.id} differs; the stored one stands"
            yield Note("history_differs", text, f"history_differs:{message.id}")
        for name, place in self.duplicates.items():
            text = f"{name} answers a call that has the result {self.history[place].id}"
            yield Note("duplicate_result", text, f"duplicate_result:{name}")


def without_repeats(messages: Iterable[Message]) -> tuple[list[Message], list[Note]]:
    """Return the messages with the first of equal ids alone, and notes on the others."""
    out: dict[str, Message] = {}
    notes = []
    for message in messages:
        name = message.id or ""
        if name in out:
            text = f"the list has {name} twice; the first one counts"
            notes.append(Note("stripped", text, f"stripped:{name}"))
        out.setdefault(name, message)
    return list(out.values()), notes


def open_batch(
    history: Sequence[Message], rules: AgentRules, record: PauseRecord | None = None
) -> OpenBatch:
    """Return the calls a history ends with that have no result yet.

    Those of a pause are where the pause says, and none of its calls is lost.
    """
    if record is not None and record.pause is not None:
        return _paused_batch(history, record.pause, record)
    asker = len(history) - 1
    while asker >= 0 and history[asker].role is Role.TOOL:
        asker -= 1
    if asker < 0 or not history[asker].tool_calls:
        return OpenBatch()
    calls = history[asker].tool_calls
    answers = pair(history).answers[asker]
    lacking = [call for call, at in zip(calls, answers, strict=True) if at is None]
    return OpenBatch(
        asker,
        calls,
        tuple(call for call in lacking if call.name not in rules.tool_names),
        tuple(call for call in lacking if call.name in rules.tool_names),
    )


def classify(
    sent: Sequence[Message],
    history: tuple[Message, ...],
    rules: AgentRules,
    record: PauseRecord | None = None,
) -> ClientList:
    """Sort a client's list by what the stored history says about each message."""
    out = ClientList(list(sent), history, open_batch(history, rules, record))
    asked = {call.id for call in record.pause.calls} if record and record.pause else set()
    places = {message.id or "": at for at, message in enumerate(history)}
    spans = {reasoning_id(name): at for name, at in places.items()}
    answered = {m.tool_call_id: at for at, m in enumerate(history) if m.role is Role.TOOL}
    pending = {call.id for call in out.batch.pending}
    last_known = max((at for at, m in enumerate(sent) if _is_known_user(m, places)), default=-1)
    calls: set[str] = set()
    for at, message in enumerate(sent):
        name, call_id = message.id or "", message.tool_call_id or ""
        if message.role is Role.TOOL:
            out.has_invented |= call_id in calls
            calls.add(call_id)
        if (is_reasoning(message) and name in spans) or name in places:
            out.known[name] = spans[name] if name in spans else places[name]
            _compare(out, message)
        elif message.role is Role.TOOL and call_id in pending:
            out.results.setdefault(call_id, message)
        elif message.role is Role.TOOL and call_id in answered:
            place = answered[call_id]
            out.duplicates[name] = place
            out.has_invented |= _differs(history[place], message)
        elif message.role is Role.TOOL and call_id in asked:
            # What people decide counts, so the client is to forget its own result.
            out.covered.append(message)
            out.has_invented = True
        elif message.role is Role.USER and at > last_known:
            out.new.append(message)
        elif message.role is not Role.SYSTEM:
            out.foreign.append(message)
    return out


def _paused_batch(history: Sequence[Message], pause: Pause, record: PauseRecord) -> OpenBatch:
    asker = next((at for at, m in enumerate(history) if m.id == pause.message_id), -1)
    answered = {message.tool_call_id for message in history[asker + 1 :]}
    waiting = {item.id for item in record.open_items if item.kind == "client"} - answered
    pending = tuple(call for call in pause.calls if call.id in waiting)
    return OpenBatch(asker, pause.calls, pending)


def _is_known_user(message: Message, places: dict[str, int]) -> bool:
    return message.role is Role.USER and message.id in places


def _compare(out: ClientList, message: Message) -> None:
    """Note a known user message that differs; clients reshape all others, which means nothing."""
    stored = out.history[out.known[message.id or ""]]
    if Role.USER in (stored.role, message.role) and _differs(stored, message):
        out.edited.append(message)


def _differs(stored: Message, sent: Message) -> bool:
    same = stored.role is sent.role and is_same(stored.content, sent.content)
    return not same
