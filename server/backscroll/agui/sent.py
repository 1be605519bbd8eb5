"""What clients were sent of one run, kept so that it can be compared with what was stored."""

from __future__ import annotations

from collections.abc import Sequence

from backscroll.agui.ids import reasoning_id
from backscroll.kernel.message import Message, Role


class Sent:
    """The texts, calls and results that a run has put on the wire."""

    def __init__(self) -> None:
        self._texts: dict[str, list[str]] = {}
        self._calls: dict[str, tuple[str, list[str]]] = {}
        self._results: set[str] = set()

    def text(self, message_id: str, delta: str) -> None:
        """Note a piece of a message's text; for reasoning the id is that of the reasoning."""
        self._texts.setdefault(message_id, []).append(delta)

    def call(self, call_id: str, message_id: str) -> None:
        """Note that a call was begun."""
        self._calls[call_id] = (message_id, [])

    def args(self, call_id: str, delta: str) -> None:
        """Note a piece of a call's arguments."""
        self._calls[call_id][1].append(delta)

    def result(self, call_id: str) -> None:
        """Note that a call's result was sent."""
        self._results.add(call_id)

    def has_text(self, message_id: str, text: str) -> bool:
        """Say whether a message was sent, or this very text as the last one."""
        if message_id in self._texts:
            return True
        last = next(reversed(self._texts), None)
        return last is not None and "".join(self._texts[last]) == text

    def reasoning_ids(self) -> list[str]:
        """Return the ids of all reasoning that was sent."""
        return [name for name in self._texts if name.endswith(reasoning_id(""))]

    def missing_results(self, stored: Sequence[Message]) -> list[Message]:
        """Return the stored results that no client was sent yet."""
        return [
            message
            for message in stored
            if message.role is Role.TOOL and message.tool_call_id not in self._results
        ]

    def unstored(self, stored: Sequence[Message]) -> list[Message]:
        """Return what was sent of messages that are not stored: text and reasoning, incomplete.

        Calls are left out: nobody runs one that never came to be stored.
        """
        known = {message.id for message in stored}
        texts = {name: "".join(pieces) for name, pieces in self._texts.items()}
        names = dict.fromkeys(name.removesuffix(reasoning_id("")) for name in texts)
        return [
            Message(
                Role.ASSISTANT,
                texts.get(name),
                name,
                reasoning=texts.get(reasoning_id(name)),
                incomplete=True,
            )
            for name in names
            if name not in known
        ]

    def is_stored(self, stored: Sequence[Message], reasoning: bool) -> bool:
        """Say whether the run's stored messages are what clients were sent."""
        texts: dict[str, str] = {}
        calls: dict[str, tuple[str, str]] = {}
        for message in stored:
            if message.role is not Role.ASSISTANT or message.id is None:
                continue
            if message.text.strip():
                texts[message.id] = message.text
            if reasoning and message.reasoning and message.reasoning.strip():
                texts[reasoning_id(message.id)] = message.reasoning
            for call in message.tool_calls:
                calls[call.id] = (message.id, call.args_text)
        sent_texts = {name: "".join(pieces) for name, pieces in self._texts.items()}
        sent_calls = {name: (of, "".join(args)) for name, (of, args) in self._calls.items()}
        return texts == sent_texts and calls == sent_calls
