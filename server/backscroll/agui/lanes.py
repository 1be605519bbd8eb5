"""A lane of a run: at most one kind of thing is open in it, and what opens closes the others."""

from __future__ import annotations

from collections.abc import Iterator

from ag_ui import core as ag

from backscroll.agui.ids import reasoning_id

DELTA_CHARS = 65_536

_INCOMPLETE = {"backscroll": {"incomplete": True}}


def split_delta(text: str, chars: int = DELTA_CHARS) -> Iterator[str]:
    """Yield a text in pieces that fit into one event each; nothing for an empty text."""
    size = min(chars, DELTA_CHARS)
    for at in range(0, len(text), size):
        yield text[at : at + size]


class Lane:
    """Turns pieces of replies into events in an order that clients accept.

    A text message is closed before a tool call starts, and reasoning before text. What a provider
    sends between the fragments of a call waits until no call is open. White space at the start
    of a message waits until something visible follows.
    """

    def __init__(self) -> None:
        self._reasoning = ""
        self._text = ""
        self._calls: dict[str, bool] = {}
        self._waiting: list[tuple[bool, str, str]] = []
        self._blank: dict[str, str] = {}
        self._visible: set[str] = set()

    def text(self, message_id: str, delta: str) -> list[ag.BaseEvent]:
        """Add to the text of a reply."""
        if self._calls:
            self._waiting.append((False, message_id, delta))
            return []
        shown = self._visible_part(message_id, delta)
        if not shown:
            return []
        events: list[ag.BaseEvent] = []
        if self._text != message_id:
            events += self._end_reasoning() + self._end_text()
            events.append(ag.TextMessageStartEvent(message_id=message_id, role="assistant"))
            self._text = message_id
        events += (
            ag.TextMessageContentEvent(message_id=message_id, delta=piece)
            for piece in split_delta(shown)
        )
        return events

    def reasoning(self, message_id: str, delta: str) -> list[ag.BaseEvent]:
        """Add to the readable reasoning of a reply."""
        if self._calls:
            self._waiting.append((True, message_id, delta))
            return []
        span = reasoning_id(message_id)
        shown = self._visible_part(span, delta)
        if not shown:
            return []
        events: list[ag.BaseEvent] = []
        if self._reasoning != span:
            events += self._end_reasoning() + self._end_text()
            events.append(ag.ReasoningStartEvent(message_id=span))
            events.append(ag.ReasoningMessageStartEvent(message_id=span))
            self._reasoning = span
        events += (
            ag.ReasoningMessageContentEvent(message_id=span, delta=piece)
            for piece in split_delta(shown)
        )
        return events

    def open_call(self, message_id: str, call_id: str, name: str) -> list[ag.BaseEvent]:
        """Begin a tool call of a reply."""
        events = self._end_reasoning() + self._end_text()
        self._calls[call_id] = False
        start = ag.ToolCallStartEvent(
            tool_call_id=call_id, tool_call_name=name, parent_message_id=message_id
        )
        return [*events, start]

    def args(self, call_id: str, delta: str) -> list[ag.BaseEvent]:
        """Add to the arguments of an open call; of one that is not open nothing comes."""
        if call_id not in self._calls or not delta:
            return []
        self._calls[call_id] = True
        return [
            ag.ToolCallArgsEvent(tool_call_id=call_id, delta=piece) for piece in split_delta(delta)
        ]

    def close_call(self, call_id: str) -> list[ag.BaseEvent]:
        """End a call whose arguments are complete; what waited for it follows."""
        if call_id not in self._calls:
            return []
        events: list[ag.BaseEvent] = []
        if not self._calls.pop(call_id):
            events.append(ag.ToolCallArgsEvent(tool_call_id=call_id, delta="{}"))
        events.append(ag.ToolCallEndEvent(tool_call_id=call_id))
        return events if self._calls else events + self._release()

    def close(self, *, incomplete: bool = False) -> list[ag.BaseEvent]:
        """End everything open; `incomplete` marks text that was cut short.

        A call that is still open was received in part: it ends with the arguments it has.
        """
        events = self._end_reasoning() + self._end_text(incomplete)
        events += [ag.ToolCallEndEvent(tool_call_id=call_id) for call_id in self._calls]
        self._calls.clear()
        events += self._release()
        return events + self._end_reasoning() + self._end_text(incomplete)

    def _release(self) -> list[ag.BaseEvent]:
        waiting, self._waiting = self._waiting, []
        events: list[ag.BaseEvent] = []
        for is_reasoning, message_id, delta in waiting:
            add = self.reasoning if is_reasoning else self.text
            events += add(message_id, delta)
        return events

    def _visible_part(self, message_id: str, delta: str) -> str:
        """Return what can be shown now, held back white space first."""
        if message_id in self._visible:
            return delta
        shown = self._blank.pop(message_id, "") + delta
        if shown.isspace() or not shown:
            self._blank[message_id] = shown
            return ""
        self._visible.add(message_id)
        return shown

    def _end_reasoning(self) -> list[ag.BaseEvent]:
        span, self._reasoning = self._reasoning, ""
        if not span:
            return []
        return [
            ag.ReasoningMessageEndEvent(message_id=span),
            ag.ReasoningEndEvent(message_id=span),
        ]

    def _end_text(self, incomplete: bool = False) -> list[ag.BaseEvent]:
        message_id, self._text = self._text, ""
        if not message_id:
            return []
        metadata = _INCOMPLETE if incomplete else None
        return [ag.TextMessageEndEvent(message_id=message_id, metadata=metadata)]
