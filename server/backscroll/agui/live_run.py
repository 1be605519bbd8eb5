"""What a live run has put on the wire up to some entry: what is open, what was sent whole."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from backscroll.agui.ids import reasoning_id
from backscroll.agui.parts import from_wire_json
from backscroll.kernel.canon import parse_json
from backscroll.kernel.message import Message, Role, parse_call
from backscroll.store.entry import Entry


@dataclass(frozen=True, slots=True)
class Activity:
    """An activity as it was last stated, and the message it first appeared after."""

    id: str
    kind: str
    content: Mapping[str, Any]
    after: str | None = None


@dataclass(slots=True)
class Piece:
    """A text or a call that is being sent: whose it is, and everything since its last start."""

    message_id: str
    text: list[str] = field(default_factory=list)
    name: str = ""

    @property
    def whole(self) -> str:
        """Everything so far, as one text."""
        return "".join(self.text)


@dataclass(slots=True)
class _Reply:
    """What was sent whole of one assistant message."""

    text: list[str] = field(default_factory=list)
    reasoning: list[str] = field(default_factory=list)
    calls: list[tuple[str, str, str]] = field(default_factory=list)
    is_incomplete: bool = False


class LiveRun:
    """Folds the logged events of one run, from its RUN_STARTED on."""

    def __init__(self) -> None:
        self.run_id = ""
        self.parent_run_id: str | None = None
        self.steps: list[str] = []
        self.predicts: Any = None  # Any: the value of the run's PredictState
        self.spans: list[str] = []
        self.reasoning: dict[str, Piece] = {}
        self.texts: dict[str, Piece] = {}
        self.calls: dict[str, Piece] = {}
        self.activities: dict[str, Activity] = {}
        self.terminal: Mapping[str, Any] | None = None
        self._replies: dict[str, _Reply] = {}
        self._results: dict[str, Message] = {}
        self._last: str | None = None

    @classmethod
    def of(cls, entries: Iterable[Entry]) -> LiveRun:
        """Fold the entries of a run; those that are no events are passed over."""
        run = cls()
        for entry in entries:
            if entry.kind == "event":
                run.apply(parse_json(entry.body))
        return run

    def apply(self, event: Mapping[str, Any]) -> None:
        """Take the next event in."""
        reader = _READERS.get(event["type"])
        if reader is not None:
            reader(self, event)

    def unstored(self, stored: Iterable[Message]) -> list[Message]:
        """Return what was sent whole but is not among the stored messages, in order."""
        known = {message.id for message in stored}
        out: list[Message] = []
        for message_id, reply in self._replies.items():
            message = _message_of(message_id, reply)
            if message_id not in known and message is not None:
                out.append(message)
        out += (message for message in self._results.values() if message.id not in known)
        return out

    def reasoning_sent(self) -> list[str]:
        """Return the ids of all reasoning this run has shown."""
        return [reasoning_id(name) for name, reply in self._replies.items() if reply.reasoning]

    def made(self) -> set[str]:
        """Return the ids of all messages this run has shown so far."""
        results = {message.id for message in self._results.values() if message.id}
        return {*self._replies, *results}

    def _started(self, event: Mapping[str, Any]) -> None:
        self.run_id = event["runId"]
        self.parent_run_id = event.get("parentRunId")
        echoed = event.get("input", {}).get("messages", ())
        self._last = echoed[-1]["id"] if echoed else None

    def _ended(self, event: Mapping[str, Any]) -> None:
        self.terminal = event

    def _step_started(self, event: Mapping[str, Any]) -> None:
        self.steps.append(event["stepName"])

    def _step_finished(self, event: Mapping[str, Any]) -> None:
        self.steps.remove(event["stepName"])

    def _text_started(self, event: Mapping[str, Any]) -> None:
        self.texts[event["messageId"]] = Piece(event["messageId"])
        self._reply(event["messageId"])

    def _text_content(self, event: Mapping[str, Any]) -> None:
        self.texts[event["messageId"]].text.append(event["delta"])

    def _text_ended(self, event: Mapping[str, Any]) -> None:
        piece = self.texts.pop(event["messageId"])
        reply = self._reply(piece.message_id)
        reply.text += piece.text
        if event.get("metadata", {}).get("backscroll", {}).get("incomplete"):
            reply.is_incomplete = True

    def _span_started(self, event: Mapping[str, Any]) -> None:
        self.spans.append(event["messageId"])

    def _span_ended(self, event: Mapping[str, Any]) -> None:
        self.spans.remove(event["messageId"])

    def _reasoning_started(self, event: Mapping[str, Any]) -> None:
        span = event["messageId"]
        self.reasoning[span] = Piece(span.removesuffix(reasoning_id("")))
        self._reply(self.reasoning[span].message_id)

    def _reasoning_content(self, event: Mapping[str, Any]) -> None:
        self.reasoning[event["messageId"]].text.append(event["delta"])

    def _reasoning_ended(self, event: Mapping[str, Any]) -> None:
        piece = self.reasoning.pop(event["messageId"])
        self._reply(piece.message_id).reasoning += piece.text

    def _call_started(self, event: Mapping[str, Any]) -> None:
        piece = Piece(event["parentMessageId"], name=event["toolCallName"])
        self.calls[event["toolCallId"]] = piece
        self._reply(piece.message_id)

    def _call_args(self, event: Mapping[str, Any]) -> None:
        self.calls[event["toolCallId"]].text.append(event["delta"])

    def _call_ended(self, event: Mapping[str, Any]) -> None:
        piece = self.calls.pop(event["toolCallId"])
        call = (event["toolCallId"], piece.name, piece.whole)
        self._reply(piece.message_id).calls.append(call)

    def _result(self, event: Mapping[str, Any]) -> None:
        outcome = event.get("metadata", {}).get("backscroll", {}).get("outcome", "ok")
        self._last = event["messageId"]
        self._results[event["toolCallId"]] = Message(
            Role.TOOL,
            from_wire_json(event["content"]),
            event["messageId"],
            tool_call_id=event["toolCallId"],
            outcome=outcome,
        )

    def _activity(self, event: Mapping[str, Any]) -> None:
        name = event["messageId"]
        after = self.activities[name].after if name in self.activities else self._last
        self.activities[name] = Activity(name, event["activityType"], event["content"], after)

    def _custom(self, event: Mapping[str, Any]) -> None:
        if event["name"] == "PredictState":
            self.predicts = event["value"]

    def _snapshot(self, event: Mapping[str, Any]) -> None:
        """A logged snapshot replaces what was sent whole before it."""
        held = {message["id"] for message in event["messages"]}
        for name in [name for name in self._replies if name not in held]:
            del self._replies[name]

    def _reply(self, message_id: str) -> _Reply:
        self._last = message_id
        return self._replies.setdefault(message_id, _Reply())


def _message_of(message_id: str, reply: _Reply) -> Message | None:
    text, reasoning = "".join(reply.text), "".join(reply.reasoning)
    if not (text or reasoning or reply.calls):
        return None
    return Message(
        Role.ASSISTANT,
        text or None,
        message_id,
        tool_calls=tuple(parse_call(*call) for call in reply.calls),
        reasoning=reasoning or None,
        incomplete=reply.is_incomplete,
    )


_READERS: Mapping[str, Callable[[LiveRun, Mapping[str, Any]], None]] = {
    "RUN_STARTED": LiveRun._started,
    "RUN_FINISHED": LiveRun._ended,
    "RUN_ERROR": LiveRun._ended,
    "STEP_STARTED": LiveRun._step_started,
    "STEP_FINISHED": LiveRun._step_finished,
    "TEXT_MESSAGE_START": LiveRun._text_started,
    "TEXT_MESSAGE_CONTENT": LiveRun._text_content,
    "TEXT_MESSAGE_END": LiveRun._text_ended,
    "REASONING_START": LiveRun._span_started,
    "REASONING_END": LiveRun._span_ended,
    "REASONING_MESSAGE_START": LiveRun._reasoning_started,
    "REASONING_MESSAGE_CONTENT": LiveRun._reasoning_content,
    "REASONING_MESSAGE_END": LiveRun._reasoning_ended,
    "TOOL_CALL_START": LiveRun._call_started,
    "TOOL_CALL_ARGS": LiveRun._call_args,
    "TOOL_CALL_END": LiveRun._call_ended,
    "TOOL_CALL_RESULT": LiveRun._result,
    "ACTIVITY_SNAPSHOT": LiveRun._activity,
    "CUSTOM": LiveRun._custom,
    "MESSAGES_SNAPSHOT": LiveRun._snapshot,
}
