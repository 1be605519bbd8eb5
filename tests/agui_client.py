"""A client as the official one behaves: what it holds after the events of a stream."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterable
from itertools import groupby
from typing import Any

Event = dict[str, Any]


class Client:
    """Applies events to a list of messages and a state."""

    def __init__(self, messages: Iterable[Event] = ()) -> None:
        self.messages: list[Event] = [copy.deepcopy(message) for message in messages]
        self.state: Any = None

    def apply(self, *events: str | bytes | Event) -> Client:
        """Take events in, in order."""
        for event in events:
            value = event if isinstance(event, dict) else json.loads(event)
            handler = getattr(self, f"_{value['type'].lower()}", None)
            if handler is not None:
                handler(value)
        return self

    def shown(self) -> list[Event]:
        """Return what is on the screen: no marks, no empty members, no reasoning without a word.

        Among the results of one batch order has no meaning, so they are sorted.
        """
        out: list[Event] = []
        for is_result, group in groupby(self.messages, lambda message: message["role"] == "tool"):
            messages = list(group)
            if is_result:
                messages.sort(key=lambda message: message["id"])
            out += (shown(m) for m in messages if m["role"] != "reasoning" or m["content"])
        return out

    def _held(self, name: str) -> Event | None:
        return next((message for message in self.messages if message["id"] == name), None)

    def _run_started(self, event: Event) -> None:
        for message in event.get("input", {}).get("messages", ()):
            if self._held(message["id"]) is None:
                self.messages.append(copy.deepcopy(message))

    def _text_message_start(self, event: Event) -> None:
        self._begin(event["messageId"], event.get("role", "assistant"))

    def _reasoning_message_start(self, event: Event) -> None:
        self._begin(event["messageId"], "reasoning")

    def _begin(self, name: str, role: str) -> None:
        if self._held(name) is None:
            self.messages.append({"id": name, "role": role, "content": ""})

    def _text_message_content(self, event: Event) -> None:
        message = self._held(event["messageId"])
        assert message is not None
        message["content"] = (message.get("content") or "") + event["delta"]

    _reasoning_message_content = _text_message_content

    def _tool_call_start(self, event: Event) -> None:
        owner = self._held(event["parentMessageId"])
        if owner is None:
            owner = {"id": event["parentMessageId"], "role": "assistant"}
            self.messages.append(owner)
        function = {"name": event["toolCallName"], "arguments": ""}
        call = {"id": event["toolCallId"], "type": "function", "function": function}
        calls = owner.setdefault("toolCalls", [])
        if all(held["id"] != call["id"] for held in calls):
            calls.append(call)

    def _tool_call_args(self, event: Event) -> None:
        call = self._call(event["toolCallId"])[1]
        call["function"]["arguments"] += event["delta"]

    def _tool_call_result(self, event: Event) -> None:
        at = self.messages.index(self._call(event["toolCallId"])[0]) + 1
        while at < len(self.messages) and self.messages[at]["role"] == "tool":
            at += 1
        names = {"id": event["messageId"], "toolCallId": event["toolCallId"]}
        self.messages.insert(at, {**names, "role": "tool", "content": event["content"]})

    def _messages_snapshot(self, event: Event) -> None:
        new = {message["id"]: copy.deepcopy(message) for message in event["messages"]}
        has_reasoning = any(message["role"] == "reasoning" for message in new.values())
        about = event.get("metadata", {}).get("@ag-ui/client", {})
        kinds = about.get("authoritativeActivityTypes", ())

        def stays(message: Event) -> bool:
            if message["role"] == "reasoning":
                return not has_reasoning
            return message["role"] == "activity" and message["activityType"] not in kinds

        kept = [m for m in self.messages if m["id"] in new or stays(m)]
        self.messages = [new.get(message["id"], message) for message in kept]
        held = {message["id"] for message in self.messages}
        self.messages += (message for name, message in new.items() if name not in held)

    def _activity_snapshot(self, event: Event) -> None:
        content = copy.deepcopy(event["content"])
        held = self._held(event["messageId"])
        if held is not None:
            held["content"] = content
            return
        names = {"id": event["messageId"], "activityType": event["activityType"]}
        self.messages.append({**names, "role": "activity", "content": content})

    def _state_snapshot(self, event: Event) -> None:
        self.state = event["snapshot"]

    def _call(self, name: str) -> tuple[Event, Event]:
        return next(
            (message, call)
            for message in self.messages
            for call in message.get("toolCalls", ())
            if call["id"] == name
        )


def shown(message: Event) -> Event:
    """Return what a person sees of a message: no marks, no empty members."""
    hidden = ("metadata", "error")
    return {name: value for name, value in message.items() if name not in hidden and value}
