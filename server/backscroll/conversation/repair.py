"""Repair: a view of a history that providers accept; what is stored stays as it is."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from backscroll.conversation.history import Pairing, pair
from backscroll.kernel.message import Message, Role, ToolCall, tool_result

RepairKind = Literal[
    "result_missing", "result_orphaned", "result_moved", "result_duplicate", "call_renamed"
]

_WORDS: dict[RepairKind, str] = {
    "result_missing": "no result of this call is on record, so one that says so was put in",
    "result_orphaned": "the result answers no call, so it was left out",
    "result_moved": "the result did not follow its call, so it was moved there",
    "result_duplicate": "the call has another result before this one, so it was left out",
    "call_renamed": "an earlier call has the same id, so this one and its result got another",
}


@dataclass(frozen=True, slots=True)
class Repair:
    """One thing a view has otherwise than the history, and the positions it concerns."""

    kind: RepairKind
    message_id: str
    call_id: str
    positions: tuple[int, ...] = ()

    @property
    def key(self) -> str:
        """What makes it the same repair the next time."""
        return f"{self.kind}:{self.message_id}:{self.call_id}"

    @property
    def text(self) -> str:
        """Say in a sentence what was done."""
        return f"call {self.call_id!r}: {_WORDS[self.kind]}"


def repair(
    history: Sequence[Message], no_result: str
) -> tuple[Sequence[Message], tuple[Repair, ...]]:
    """Return a list that providers accept, and what had to be done; a well-formed one unchanged.

    Made-up results have no id and the text `no_result`. User and assistant texts keep their order.
    """
    work = _Repairing(history, no_result, pair(history))
    view = tuple(work.view())
    return (view, tuple(work.done)) if work.done or work.reordered else (history, ())


class _Repairing:
    def __init__(self, history: Sequence[Message], no_result: str, pairing: Pairing) -> None:
        self._history, self._no_result, self._pairing = history, no_result, pairing
        self._seen: set[str] = set()
        self._uses: dict[str, int] = {}
        self.done: list[Repair] = []
        self.reordered = False

    def view(self) -> Iterator[Message]:
        """Yield the messages of the view, in order."""
        for at, message in enumerate(self._history):
            if at in self._pairing.orphans:
                self._note("result_orphaned", message, message.tool_call_id or "", at)
            elif at in self._pairing.duplicates:
                self._note("result_duplicate", message, message.tool_call_id or "", at)
            elif message.tool_calls:
                yield from self._group(at, message)
            elif message.role is not Role.TOOL:
                yield message

    def _group(self, at: int, message: Message) -> Iterator[Message]:
        """Yield an assistant message with calls, then one result per call, in call order."""
        answers = self._pairing.answers[at]
        close = self._following(at)
        order = [answer for answer in answers if answer is not None and answer in close]
        self.reordered = self.reordered or order != sorted(order)
        calls = tuple(
            self._call(message, call, (at, answer))
            for call, answer in zip(message.tool_calls, answers, strict=True)
        )
        renamed = calls != message.tool_calls
        yield message.replace(tool_calls=calls) if renamed else message
        for call, was, answer in zip(calls, message.tool_calls, answers, strict=True):
            if answer is None:
                self._note("result_missing", message, was.id)
                yield tool_result(call.id, call.name, self._no_result, outcome="unknown")
                continue
            result = self._history[answer]
            if answer not in close:
                self._note("result_moved", result, was.id, answer)
            yield result if call.id == was.id else result.replace(tool_call_id=call.id)

    def _following(self, at: int) -> range:
        end = at + 1
        while end < len(self._history) and self._history[end].role is Role.TOOL:
            end += 1
        return range(at + 1, end)

    def _call(
        self, message: Message, call: ToolCall, concerned: tuple[int, int | None]
    ) -> ToolCall:
        """Return the call under an id that no earlier call of the view has."""
        # A reply that must be sent back as the provider made it keeps its ids.
        if call.id in self._seen and message.blocks is None:
            self._note("call_renamed", message, call.id, *(p for p in concerned if p is not None))
            call = dataclasses.replace(call, id=self._fresh(call.id))
        self._seen.add(call.id)
        return call

    def _fresh(self, call_id: str) -> str:
        number = self._uses.get(call_id, 1) + 1
        while f"{call_id}~{number}" in self._seen:
            number += 1
        self._uses[call_id] = number
        return f"{call_id}~{number}"

    def _note(self, kind: RepairKind, message: Message, call_id: str, *positions: int) -> None:
        self.done.append(Repair(kind, message.id or "", call_id, positions))
