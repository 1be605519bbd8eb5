"""Runs that never happened: what an agent reports and stores, told as a log, for tests of agui."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from backscroll.agent import events as agent
from backscroll.agui.encode import RunEncoder, RunIds
from backscroll.agui.live_run import LiveRun
from backscroll.agui.run_end import CANCELLED, RunEnd, failed_with
from backscroll.kernel.errors import ModelError
from backscroll.kernel.message import Message, ToolCall, assistant, parse_call, tool_result, user
from backscroll.kernel.model import ModelRequest
from backscroll.kernel.usage import Usage
from backscroll.store.entry import STAMP, Entry, NewEntry
from hypothesis import strategies as st

SCOPE: dict[str, Any] = {"agent": "a", "conversation_id": "t", "turn_id": "turn"}
EPOCH, TIME = "k3f0", 1_764_465_600_000
COMPLETED = RunEnd("completed")


class CountedIds:
    """Ids that are counted: msg_1, msg_2 …"""

    def __init__(self) -> None:
        self._count = 0

    def new(self, prefix: str) -> str:
        """Return the next id."""
        self._count += 1
        return f"{prefix}_{self._count}"


@dataclass(frozen=True)
class FakeModel:
    """As much of a model as an encoder looks at."""

    name: str = "m-large"
    provider: str = "openai"


def said(message_id: str, *deltas: str) -> list[agent.AgentEvent]:
    """Return a reply's text as it streams."""
    return [agent.TextDelta(**SCOPE, message_id=message_id, delta=delta) for delta in deltas]


def thought(message_id: str, *deltas: str) -> list[agent.AgentEvent]:
    """Return a reply's reasoning as it streams."""
    return [agent.ReasoningDelta(**SCOPE, message_id=message_id, delta=delta) for delta in deltas]


def opened(message_id: str, call_id: str, name: str = "add") -> agent.AgentEvent:
    """Return the beginning of a call."""
    return agent.ToolCallOpened(**SCOPE, message_id=message_id, call_id=call_id, name=name)


def args(message_id: str, call_id: str, delta: str) -> agent.AgentEvent:
    """Return a piece of a call's arguments."""
    return agent.ToolCallArgs(**SCOPE, message_id=message_id, call_id=call_id, delta=delta)


def closed(message_id: str, call_id: str) -> agent.AgentEvent:
    """Return the end of a call."""
    return agent.ToolCallClosed(**SCOPE, message_id=message_id, call_id=call_id)


def called(message_id: str, call_id: str, text: str, name: str = "add") -> list[agent.AgentEvent]:
    """Return a whole call, its arguments in one piece."""
    pieces = [args(message_id, call_id, text)] if text else []
    return [opened(message_id, call_id, name), *pieces, closed(message_id, call_id)]


def iteration(index: int) -> agent.AgentEvent:
    """Return the beginning of an iteration, counted from 0."""
    return agent.IterationStarted(**SCOPE, index=index, remaining=10)


def asked(message_id: str, model: FakeModel | None = None) -> agent.AgentEvent:
    """Return the beginning of a model call."""
    request: Any = ModelRequest(())
    shown: Any = model or FakeModel()
    return agent.CallStarted(
        **SCOPE, message_id=message_id, attempt=1, request=request, model=shown, stream=True
    )


def replied(
    message_id: str, usage: Usage | None = None, error: ModelError | None = None
) -> agent.AgentEvent:
    """Return the end of a model call."""
    return agent.CallFinished(
        **SCOPE, message_id=message_id, attempt=1, duration_s=0.1, usage=usage, error=error
    )


def answered(message_id: str, text: str) -> list[agent.AgentEvent]:
    """Return a whole reply of text alone."""
    return [asked(message_id), *said(message_id, text), replied(message_id)]


def returned(message: Message) -> agent.AgentEvent:
    """Return the end of a tool call."""
    return agent.ToolFinished(
        **SCOPE,
        call_id=message.tool_call_id or "",
        message=message,
        outcome=message.outcome or "ok",
    )


def encoder(run_id: str = "r1", **options: Any) -> RunEncoder:
    """Return an encoder for a run of thread t."""
    return RunEncoder(RunIds("t", run_id), CountedIds(), **options)


def played(events: Iterable[agent.AgentEvent], by: RunEncoder | None = None) -> list[NewEntry]:
    """Return what an encoder makes of events, between its start and before its close."""
    by = by or encoder()
    return [*by.start(), *(entry for event in events for entry in by.feed(event))]


def values(entries: Iterable[NewEntry]) -> list[dict[str, Any]]:
    """Return the events of entries as JSON values, without their timestamps."""
    read = [json.loads(stamped(entry.body)) for entry in entries]
    return [{name: v for name, v in event.items() if name != "timestamp"} for event in read]


def types(entries: Iterable[NewEntry]) -> list[str]:
    """Return the types of entries, shortened."""
    return [entry.type for entry in entries]


def folded(entries: Iterable[NewEntry]) -> LiveRun:
    """Return a run folded from entries that have no numbers yet."""
    run = LiveRun()
    for entry in entries:
        run.apply(json.loads(stamped(entry.body)))
    return run


def stamped(body: bytes, time: int = TIME) -> bytes:
    """Return a body with its time filled in, as the log does it."""
    return body.replace(STAMP, str(time).encode(), 1)


@dataclass
class Log:
    """A thread's log and history as they grow, with numbers and times."""

    entries: list[Entry] = field(default_factory=list)
    history: list[tuple[int, Message]] = field(default_factory=list)

    @property
    def head(self) -> int:
        """The number of the newest entry."""
        return len(self.entries)

    def append(self, new: Iterable[NewEntry]) -> None:
        """Number and stamp entries."""
        for entry in new:
            at = entry.stamp_at
            assert entry.body[at - 1 : at + 12] == STAMP
            seq = self.head + 1
            self.entries.append(_entry(seq, entry, stamped(entry.body, TIME + seq)))

    def store(self, messages: Iterable[Message]) -> None:
        """Store messages; each has an entry that announces it."""
        for message in messages:
            seq = self.head + 1
            new = NewEntry("message", "added", b"{}", "operator", "r1", message.id or "")
            self.entries.append(_entry(seq, new, new.body))
            self.history.append((seq, message))

    def messages(self, until: int | None = None) -> tuple[Message, ...]:
        """Return the history as it was after an entry."""
        last = self.head if until is None else until
        return tuple(message for seq, message in self.history if seq <= last)

    def events(self, after: int = 0) -> list[dict[str, Any]]:
        """Return the client-visible entries after a number, as JSON values."""
        return [json.loads(e.body) for e in self.entries[after:] if e.kind == "event"]


def _entry(seq: int, new: NewEntry, body: bytes) -> Entry:
    return Entry(
        seq, TIME + seq, new.run, new.kind, new.type, new.audience, new.ref, new.preview, "w", body
    )


@dataclass
class Story:
    """One run: what the agent reports (events) and what is stored (messages), in order."""

    steps: list[agent.AgentEvent | Message]
    end: RunEnd = COMPLETED

    def told(self, run_id: str = "r1", log: Log | None = None, ask: str = "u1") -> Log:
        """Return the log of the run, its question stored at the start."""
        log = log or Log()
        question = user("a question", ask)
        by = encoder(run_id)
        log.store([question])
        log.append(by.start([question]))
        before = len(log.history)
        for step in self.steps:
            if isinstance(step, Message):
                log.store([step])
            else:
                log.append(by.feed(step))
        log.append(by.close(self.end, log.messages(), before))
        return log


_words = st.text(alphabet='ab \n你🌍"\\', min_size=1, max_size=4)
_pieces = st.lists(_words, max_size=4)


@st.composite
def stories(draw: st.DrawFn, prefix: str = "") -> Story:
    """Make runs of a few iterations: reasoning, text, parallel calls, results in any order."""
    steps: list[agent.AgentEvent | Message] = []
    for index in range(draw(st.integers(1, 3))):
        reply = draw(_replies(f"{prefix}m{index}"))
        steps += [iteration(index), *reply.events]
        if reply.error is not None:
            steps += reply.kept
            return Story(steps, failed_with("worker_lost"))
        steps += [reply.message]
        results = [_result(call) for call in reply.message.tool_calls]
        if draw(st.integers(0, 9)) == 0:
            results = [result.replace(content="stopped", outcome="cancelled") for result in results]
            return Story([*steps, *map(returned, results), *results], CANCELLED)
        steps += [*map(returned, draw(st.permutations(results))), *results]
        if not results:
            break
    return Story(steps)


@dataclass
class _Reply:
    events: list[agent.AgentEvent]
    message: Message
    error: ModelError | None = None
    kept: list[Message] = field(default_factory=list)


@st.composite
def _replies(draw: st.DrawFn, name: str) -> _Reply:
    reasoning, text, after = draw(_pieces), draw(_pieces), draw(_pieces)
    calls = [
        parse_call(f"{name}c{n}", "add", draw(st.sampled_from(["", "{}", '{"a":1}', '{"a":'])))
        for n in range(draw(st.integers(0, 3)))
    ]
    after = after if calls else []
    events = [asked(name), *thought(name, *reasoning), *said(name, *text)]
    events += draw(_interleaved(name, calls))
    events += said(name, *after)
    message = dataclasses.replace(
        assistant("".join([*text, *after]) or None, calls, id=name),
        reasoning="".join(reasoning) or None,
    )
    if draw(st.integers(0, 7)) > 0:
        return _Reply([*events, replied(name, Usage(5, 3))], message)
    cut = draw(st.integers(1, len(events)))
    error = ModelError("incomplete_stream", "broke off")
    return _Reply(
        [*events[:cut], replied(name, error=error)], message, error, _kept(name, events[:cut])
    )


@st.composite
def _interleaved(draw: st.DrawFn, name: str, calls: Sequence[ToolCall]) -> list[agent.AgentEvent]:
    """Stream calls side by side, as some providers do."""
    out: list[agent.AgentEvent] = [opened(name, call.id) for call in calls]
    waiting = {call.id: list(call.args_text) for call in calls if call.raw or call.args}
    while waiting:
        call_id = draw(st.sampled_from(sorted(waiting)))
        count = draw(st.integers(1, 3))
        taken, waiting[call_id] = waiting[call_id][:count], waiting[call_id][count:]
        out.append(args(name, call_id, "".join(taken)))
        if not waiting[call_id]:
            del waiting[call_id]
    return [*out, *(closed(name, call.id) for call in calls)]


def _kept(name: str, events: Iterable[agent.AgentEvent]) -> list[Message]:
    """Return what the memory keeps of a reply that broke off: its text, never its calls."""
    listed = list(events)
    text = "".join(e.delta for e in listed if isinstance(e, agent.TextDelta))
    thoughts = "".join(e.delta for e in listed if isinstance(e, agent.ReasoningDelta))
    if not text.strip():
        return []
    partial = assistant(text, id=name)
    return [dataclasses.replace(partial, reasoning=thoughts or None, incomplete=True)]


def _result(call: ToolCall) -> Message:
    return tool_result(call.id, call.name, f"result of {call.id}", id=f"{call.id}r")
