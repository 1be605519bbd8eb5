"""Our own checker of AG-UI streams: the client's verifier, and what we forbid ourselves besides.

`problems_of` takes a log of events, as JSON text or values, and names everything wrong with it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any

from ag_ui import core as ag
from ag_ui_validate.protocol.jsonpatch import PatchOk, apply_patch
from pydantic import BaseModel, TypeAdapter, ValidationError

EVENT: TypeAdapter[ag.Event] = TypeAdapter(ag.Event)
FORBIDDEN = ("RAW", "REASONING_ENCRYPTED_VALUE", "SUBAGENT_")
TERMINAL = ("RUN_FINISHED", "RUN_ERROR")
DELTA_CHARS = 65_536


def problems_of(events: Iterable[str | bytes | dict[str, Any]]) -> list[str]:
    """Return what is wrong with a stream, event by event; an empty list when nothing is."""
    checker = Checker()
    for event in events:
        checker.feed(event)
    return [*checker.problems, *checker.at_the_end()]


def assert_valid(events: Iterable[str | bytes | dict[str, Any]]) -> None:
    """Raise when a stream breaks a rule."""
    problems = problems_of(events)
    assert not problems, "\n".join(problems)


class Checker:
    """Follows one stream of runs, one after another."""

    def __init__(self) -> None:
        self.problems: list[str] = []
        self._at = -1
        self._run: str | None = None
        self._thread: str | None = None
        self._last: str | None = None
        self._ended: set[str] = set()
        self._open: dict[str, set[str]] = {
            kind: set() for kind in ("text", "call", "reasoning", "span", "step")
        }
        self._roles: dict[str, str] = {}
        self._calls: dict[str, str] = {}
        self._answered: set[str] = set()
        self._state: Any = None
        self._has_state = False
        self._activities: dict[str, Any] = {}
        self._time = 0

    def feed(self, event: str | bytes | dict[str, Any]) -> None:
        """Check the next event."""
        self._at += 1
        value = event if isinstance(event, dict) else json.loads(event)
        self._schema(value)
        kind = value.get("type", "")
        self._order(kind, value)
        handler: Callable[[dict[str, Any]], None] | None = getattr(self, f"_{kind.lower()}", None)
        if handler is not None:
            handler(value)
        self._last = kind

    def at_the_end(self) -> list[str]:
        """Return what is wrong with a stream that ends here."""
        return [] if self._run is None else [f"run {self._run} has no terminal event"]

    def _fail(self, rule: str, what: str) -> None:
        self.problems.append(f"{self._at}: {rule}: {what}")

    def _need(self, claim: bool, rule: str, what: str) -> None:
        if not claim:
            self._fail(rule, what)

    def _schema(self, value: dict[str, Any]) -> None:
        kind = str(value.get("type"))
        self._need(not kind.startswith(FORBIDDEN) and "CHUNK" not in kind, "E6", kind)
        try:
            model = EVENT.validate_python(value)
        except ValidationError as error:
            self._fail("V12", str(error.errors()[0]))
            return
        self._need(not any(_extras(model)), "V13", f"unknown members {list(_extras(model))}")
        again = json.loads(model.model_dump_json(by_alias=True))
        self._need(again == value, "V12", f"null or mistyped member in {value}")
        time = value.get("timestamp")
        self._need(type(time) is int and time >= self._time, "E3", f"timestamp {time}")
        self._time = time or 0
        self._need("subagentRunId" not in json.dumps(value), "V11", "a subagentRunId")

    def _order(self, kind: str, value: dict[str, Any]) -> None:
        if self._last is None:
            self._need(kind in ("RUN_STARTED", "RUN_ERROR"), "V1", kind)
        if kind == "RUN_STARTED":
            self._need(self._run is None, "V2", "a run is open")
        elif self._last == "RUN_FINISHED":
            self._need(kind == "RUN_ERROR" and self._run is None, "V3", kind)
        elif self._last == "RUN_ERROR":
            self._fail("V4", kind)
        if "delta" in value and isinstance(value["delta"], str):
            self._need(0 < len(value["delta"]) <= DELTA_CHARS, "E8", "empty or too long delta")

    def _start(self, rule: str, kind: str, name: str) -> None:
        self._need(name not in self._open[kind], rule, f"{kind} {name} is open")
        self._open[kind].add(name)

    def _inside(self, rule: str, kind: str, name: str) -> None:
        self._need(name in self._open[kind], rule, f"{kind} {name} is not open")

    def _end(self, rule: str, kind: str, name: str) -> None:
        self._inside(rule, kind, name)
        self._open[kind].discard(name)

    def _names(self, name: str, role: str) -> None:
        known = self._roles.setdefault(name, role)
        self._need(known == role, "ids", f"{name} is {known} and {role}")

    def _messages(self, messages: list[dict[str, Any]]) -> None:
        for message in messages:
            self._names(message["id"], message["role"])
            for call in message.get("toolCalls", ()):
                self._calls.setdefault(call["id"], message["id"])
            if message["role"] == "tool":
                self._need(message["toolCallId"] in self._calls, "ids", "result without its call")
                self._answered.add(message["toolCallId"])

    def _run_started(self, event: dict[str, Any]) -> None:
        self._need(event.get("protocolVersion") == "1.0", "E4", "protocolVersion")
        self._run, self._thread = event["runId"], event["threadId"]
        self._need(self._run not in self._ended, "runs", f"{self._run} starts twice")
        self._messages(event.get("input", {}).get("messages", []))

    def _run_finished(self, event: dict[str, Any]) -> None:
        for kind, names in self._open.items():
            self._need(not names, "V8", f"{kind} {sorted(names)} open at the end")
        same = (event["runId"], event["threadId"]) == (self._run, self._thread)
        self._need(same, "runs", "finished as another run")
        pending = event.get("outcome", {}).get("pendingToolCallIds", [])
        known = all(name in self._calls and name not in self._answered for name in pending)
        self._need(known, "pending", f"{pending}")
        self._finish()

    def _run_error(self, event: dict[str, Any]) -> None:
        for kind, names in self._open.items():
            self._need(not names, "V8", f"{kind} {sorted(names)} open at the end")
        self._finish()

    def _finish(self) -> None:
        if self._run is not None:
            self._ended.add(self._run)
        self._run = None
        for names in self._open.values():
            names.clear()

    def _step_started(self, event: dict[str, Any]) -> None:
        self._start("V7", "step", event["stepName"])

    def _step_finished(self, event: dict[str, Any]) -> None:
        self._end("V7", "step", event["stepName"])

    def _text_message_start(self, event: dict[str, Any]) -> None:
        self._alone("text")
        self._start("V5", "text", event["messageId"])
        self._names(event["messageId"], event["role"])

    def _text_message_content(self, event: dict[str, Any]) -> None:
        self._inside("V6", "text", event["messageId"])

    def _text_message_end(self, event: dict[str, Any]) -> None:
        self._end("V6", "text", event["messageId"])

    def _reasoning_start(self, event: dict[str, Any]) -> None:
        self._alone("reasoning")
        self._start("V5", "span", event["messageId"])

    def _reasoning_message_start(self, event: dict[str, Any]) -> None:
        self._start("V5", "reasoning", event["messageId"])
        self._names(event["messageId"], "reasoning")

    def _reasoning_message_content(self, event: dict[str, Any]) -> None:
        self._inside("V6", "reasoning", event["messageId"])

    def _reasoning_message_end(self, event: dict[str, Any]) -> None:
        self._end("V6", "reasoning", event["messageId"])

    def _reasoning_end(self, event: dict[str, Any]) -> None:
        name = event["messageId"]
        self._need(name not in self._open["reasoning"], "spans", f"message {name} is open")
        self._end("V6", "span", name)

    def _tool_call_start(self, event: dict[str, Any]) -> None:
        self._alone("call")
        name = event["toolCallId"]
        self._start("V5", "call", name)
        self._need(name not in self._calls, "ids", f"call {name} starts twice")
        self._calls[name] = event.get("parentMessageId", "")
        self._need("parentMessageId" in event, "ids", "a call without parentMessageId")
        self._names(event.get("parentMessageId", ""), "assistant")

    def _tool_call_args(self, event: dict[str, Any]) -> None:
        self._inside("V6", "call", event["toolCallId"])

    def _tool_call_end(self, event: dict[str, Any]) -> None:
        self._end("V6", "call", event["toolCallId"])

    def _tool_call_result(self, event: dict[str, Any]) -> None:
        name = event["toolCallId"]
        self._need(name not in self._open["call"], "results", f"{name} is still open")
        self._need(name in self._calls, "results", f"{name} is not a call of this thread")
        self._need(name not in self._answered, "results", f"{name} has two results")
        self._need(event.get("role") == "tool", "results", "without role")
        self._answered.add(name)
        self._names(event["messageId"], "tool")

    def _messages_snapshot(self, event: dict[str, Any]) -> None:
        self._need(bool(event["messages"]), "snapshot", "an empty snapshot")
        listed = [message["id"] for message in event["messages"]]
        self._need(len(listed) == len(set(listed)), "snapshot", "an id twice")
        for kind in ("text", "reasoning", "call"):
            self._need(not self._open[kind], "snapshot", f"while {kind} is open")
        self._messages(event["messages"])

    def _state_snapshot(self, event: dict[str, Any]) -> None:
        self._state, self._has_state = event["snapshot"], True

    def _state_delta(self, event: dict[str, Any]) -> None:
        self._need(self._has_state, "state", "a delta before any snapshot")
        self._need(bool(event["delta"]), "state", "an empty patch")
        self._state = self._patched(self._state, event["delta"])

    def _activity_snapshot(self, event: dict[str, Any]) -> None:
        self._names(event["messageId"], "activity")
        self._activities[event["messageId"]] = event["content"]

    def _activity_delta(self, event: dict[str, Any]) -> None:
        name = event["messageId"]
        self._need(name in self._activities, "activity", f"a delta of unknown {name}")
        self._activities[name] = self._patched(self._activities.get(name), event["patch"])

    def _patched(self, value: Any, patch: list[Any]) -> Any:
        result = apply_patch(value, patch)
        self._need(isinstance(result, PatchOk), "patch", str(patch))
        return result.result if isinstance(result, PatchOk) else value

    def _alone(self, kind: str) -> None:
        """One kind of thing is open at a time."""
        kinds = {"text", "call", "reasoning"} - {kind}
        others = {other: self._open[other] for other in kinds if self._open[other]}
        self._need(not others, "lanes", f"{kind} starts while {others} open")
        if kind == "text":
            self._need(not self._open["text"], "lanes", "two texts at once")


def _extras(value: Any) -> Iterable[str]:
    if isinstance(value, BaseModel):
        yield from value.model_extra or {}
        for name in type(value).model_fields:
            yield from _extras(getattr(value, name))
    elif isinstance(value, list):
        for item in value:
            yield from _extras(item)
