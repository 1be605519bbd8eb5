"""Strategies that ours is compared with: our own versions of ideas that others use."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from backscroll.compaction.canon_forms import references
from backscroll.compaction.extractive import extract
from backscroll.compaction.groups import find_groups
from backscroll.compaction.summariser import SummaryPart, transcript_head
from backscroll.compaction.tokens import Sizes
from backscroll.kernel.message import Message, Role, user
from setting import budget_for

USUAL_SUMMARY, EQUAL_SHARE = 1_200, 0.25


@dataclass(slots=True)
class Work:
    """What the summariser was asked for so far; `aside_ms` is its own processor time."""

    calls: int = 0
    tokens: int = 0
    failed: int = 0
    aside_ms: float = 0.0


class Strategy(Protocol):
    """Decides what each call of a session is sent."""

    work: Work

    def view(self, history: Sequence[Message]) -> tuple[Message, ...]:
        """Return what the next call sends; histories only grow."""
        ...


class _Other:
    """What the other strategies share: sizes, the same budget, and a summary by lines."""

    def __init__(self, window: int, summary: int = 0) -> None:
        self._sizes = Sizes()
        self._room = budget_for(window).available
        self._summary_max = summary or int(EQUAL_SHARE * self._room)
        self._start = 0
        self._summary = ""
        self._edge: Message | None = None
        self.work = Work()

    def _begin(self, history: Sequence[Message]) -> None:
        """Start anew where the history went back behind what is summarised or left out."""
        if self._start >= len(history) or self._edge not in (None, history[self._start - 1]):
            self._start, self._summary, self._edge = 0, "", None

    def _after(self, history: Sequence[Message], room: int) -> int:
        """Return the start of the newest whole groups that fit into the room."""
        total, start = 0, len(history)
        groups = find_groups(history)
        for group in reversed(groups):
            total += self._sizes.messages(history[group.start : group.end])
            if total > room:
                break
            start = group.start
        return min(start, groups[-1].start)

    def _boundary(self, history: Sequence[Message], at: int) -> int:
        """Return the start of the group that holds a message."""
        return max(g.start for g in find_groups(history) if g.start <= at)

    def _summarise(self, history: Sequence[Message], end: int, most: int | None = None) -> None:
        """Merge H[start:end] into the summary, reading at most so many tokens of both.

        What is read is the end, as in frameworks that trim what they summarise: where the span
        alone is longer, the summary so far is lost.
        """
        notes, transcript = self._summary, _transcript(history, self._start, end)
        if most is not None:
            transcript = self._last(transcript, most)
            notes = self._last(notes, most - self._sizes.text(transcript))
        part = SummaryPart(notes, transcript, self._summary_max)
        self._summary = extract(part)
        self.work.calls += 1
        texts = (part.notes, part.transcript, self._summary)
        self.work.tokens += sum(map(self._sizes.text, texts))
        self._start, self._edge = end, history[end - 1]

    def _last(self, text: str, most: int) -> str:
        """Return the last lines that take at most so many tokens."""
        lines = text.splitlines()
        start = len(lines)
        while start and (cost := self._sizes.text(f"{lines[start - 1]}\n")) <= most:
            start, most = start - 1, most - cost
        return "\n".join(lines[start:])

    def _with_summary(self, *rest: Message) -> tuple[Message, ...]:
        head = (user(f"Summary of what came before:\n{self._summary}"),) if self._summary else ()
        return (*head, *rest)


class Sliding(_Other):
    """The newest messages that fit; with hysteresis, cut to a half when they do not."""

    def __init__(self, window: int, hysteresis: bool = False) -> None:
        super().__init__(window)
        self._hysteresis = hysteresis

    def view(self, history: Sequence[Message]) -> tuple[Message, ...]:
        """Return the newest whole groups."""
        self._begin(history)
        if not self._hysteresis:
            return tuple(history[self._after(history, self._room) :])
        if self._sizes.messages(history[self._start :]) > self._room:
            self._start = self._after(history, self._room // 2)
        return tuple(history[self._start :])


class Masking(_Other):
    """Tool results but the last ten are masked; what still does not fit slides out."""

    def __init__(self, window: int) -> None:
        super().__init__(window)
        self._masked: dict[Message, Message] = {}

    def view(self, history: Sequence[Message]) -> tuple[Message, ...]:
        """Return the history with old observations masked."""
        results = [i for i, m in enumerate(history) if m.role is Role.TOOL]
        old = set(results[:-10])
        masked = [self._mask(m) if i in old else m for i, m in enumerate(history)]
        return tuple(masked[self._after(masked, self._room) :])

    def _mask(self, result: Message) -> Message:
        found = self._masked.get(result)
        if found is None:
            found = self._masked[result] = result.replace(content="[old result left out]")
        return found


class SummariseAll(_Other):
    """Everything but the last 20 messages is merged into one summary when the window is full."""

    def __init__(self, window: int, summary: int, most_input: int | None = None) -> None:
        super().__init__(window, summary)
        self._most = most_input

    def view(self, history: Sequence[Message]) -> tuple[Message, ...]:
        """Return summary and recent messages."""
        self._begin(history)
        view = self._with_summary(*history[self._start :])
        if self._sizes.messages(view) > 0.85 * self._room:
            end = self._boundary(history, max(0, len(history) - 20))
            if end > self._start:
                self._summarise(history, end, self._most)
            view = self._with_summary(*history[self._start :])
        if self._sizes.messages(view) > self._room:
            room = self._room - self._sizes.text(self._summary)
            view = self._with_summary(*history[max(self._start, self._after(history, room)) :])
        return view


class FreshStart(_Other):
    """When the window is full, a summary and the last message begin a new context."""

    keeps_user_words = False

    def view(self, history: Sequence[Message]) -> tuple[Message, ...]:
        """Return summary and what came after it."""
        self._begin(history)
        view = self._whole(history)
        if self._sizes.messages(view) > 0.85 * self._room:
            end = find_groups(history)[-1].start
            if end > self._start:
                self._summarise(history, end)
            view = self._whole(history)
        return view

    def _whole(self, history: Sequence[Message]) -> tuple[Message, ...]:
        words = self._user_words(history) if self.keeps_user_words else ()
        return self._with_summary(*words, *history[self._start :])

    def _user_words(self, history: Sequence[Message]) -> tuple[Message, ...]:
        """Return the newest user messages before the summary's end, in a tenth of the room."""
        out: list[Message] = []
        room = self._room // 10
        for message in reversed(history[: self._start]):
            room -= self._sizes.message(message) if message.role is Role.USER else 0
            if room < 0:
                break
            if message.role is Role.USER:
                out.append(message)
        return tuple(reversed(out))


class SummaryAndUserWords(FreshStart):
    """A fresh start that also keeps recent user messages word for word."""

    keeps_user_words = True


def _transcript(history: Sequence[Message], start: int, end: int) -> str:
    refs = references(history)
    lines: list[str] = []
    for index in range(start, end):
        message = history[index]
        kind = message.role.value
        if message.text:
            lines.append(transcript_head(refs[index], kind, message.name) + message.text)
        lines += [
            transcript_head(refs[index], "call", c.name) + c.args_text for c in message.tool_calls
        ]
    return "\n".join(lines)
