"""The facts block: what rules find in messages, within fixed shares, without any model."""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from backscroll.compaction.canon_forms import SUMMARY_ORIGIN, reference_text
from backscroll.compaction.fact_lines import ResultReader
from backscroll.compaction.fact_rules import CLASSES, RULES, FactClass, FactRule
from backscroll.compaction.fact_scan import Found, goal_text, scan
from backscroll.compaction.fact_shares import CLASS_SHARES, Entry, choose, merge
from backscroll.compaction.memo import Memo
from backscroll.compaction.texts import CompactionTexts
from backscroll.compaction.tokens import Sizes
from backscroll.kernel.message import Message, Role

DECORATION: Mapping[FactClass, int] = {"standing": 6, "ledger": 4, "other": 6}
"""What dash, reference and line end of an entry take, in tokens; more than that would be room
that a class with short lines does not get."""

_ROUNDS, _SLACK = 4, 24


@dataclass(frozen=True, slots=True)
class FactLine:
    """One printed line, the rule that found it, and the reference of its message."""

    text: str
    rule: str
    cls: FactClass
    ref: int | None


@dataclass(frozen=True, slots=True)
class FactsBlock:
    """The facts of a span: the text, its lines, and how many were kept and left out per class.

    `covered` holds the bare texts in it, for a summariser that must not repeat them.
    """

    text: str = ""
    lines: tuple[FactLine, ...] = ()
    kept: Mapping[FactClass, int] = field(default_factory=dict)
    left_out: Mapping[FactClass, int] = field(default_factory=dict)
    tokens: int = 0
    covered: frozenset[str] = frozenset()


class FactReader:
    """Writes facts blocks; what a message gave is remembered, so a growing span costs little."""

    def __init__(
        self,
        sizes: Sizes,
        texts: CompactionTexts | None = None,
        rules: Sequence[FactRule] = RULES,
        results: ResultReader | None = None,
    ) -> None:
        """`results` must know the same rules; whoever shortens results may share it."""
        self._sizes = sizes
        self._headings = (texts or CompactionTexts()).facts_headings
        self._rules = tuple(rules)
        self._results = results or ResultReader(rules)
        self._blocks: Memo[FactsBlock] = Memo(64)
        self._scanned: Memo[tuple[tuple[Found, int], ...]] = Memo(20_000)

    def under(self, sizes: Sizes) -> FactReader:
        """Return the reader for another model, with the same memory."""
        other = copy.copy(self)
        other._sizes = sizes
        return other

    def block(
        self,
        messages: Sequence[Message],
        refs: Sequence[int | None],
        max_tokens: int,
        goal_at: int | None = None,
    ) -> FactsBlock:
        """Return the facts of a span of the history, with the references of its messages.

        `goal_at` is the index in the span of the conversation's first user message, if it is
        there (see `first_user`): that one is always in the block.
        """
        digests = b"".join(map(self._sizes.digests.stored, messages))
        key = (digests, tuple(refs), max_tokens, goal_at, self._sizes.counter.name)
        return self._blocks.get(key, lambda: self._block(messages, refs, max_tokens, goal_at))

    def _block(
        self,
        messages: Sequence[Message],
        refs: Sequence[int | None],
        max_tokens: int,
        goal_at: int | None,
    ) -> FactsBlock:
        room = max_tokens - sum(self._sizes.text(f"{heading}\n") for heading in self._headings)
        if room <= 0:
            return FactsBlock()
        goal = self._goal(messages, refs, goal_at, int(room * CLASS_SHARES["standing"]))
        entries = merge(self._entries(messages, refs, goal_at, goal))
        best = FactsBlock()
        for _ in range(_ROUNDS):
            found = self._printed(
                choose(entries, room, goal), (*entries, *([goal] if goal else ()))
            )
            slack = max_tokens - found.tokens
            if slack >= 0 and found.tokens >= best.tokens:
                best = found
            if 0 <= slack <= _SLACK:
                break
            # Lines are rounded up one by one, so the whole is less than their sum: use the rest.
            room += slack
        return best

    def _printed(self, chosen: Sequence[Entry], entries: Sequence[Entry]) -> FactsBlock:
        lines = tuple(map(_line, chosen))
        kept = Counter(line.cls for line in lines)
        found = Counter(entry.found.cls for entry in entries)
        text = self._render(lines)
        return FactsBlock(
            text=text,
            lines=lines,
            kept={cls: kept[cls] for cls in CLASSES},
            left_out={cls: found[cls] - kept[cls] for cls in CLASSES},
            tokens=self._sizes.text(text),
            covered=frozenset(entry.found.text for entry in chosen),
        )

    def _goal(
        self, messages: Sequence[Message], refs: Sequence[int | None], at: int | None, room: int
    ) -> Entry | None:
        if at is None:
            return None
        text = goal_text(messages[at].text)
        tokens = self._sizes.text(text) + DECORATION["standing"]
        while text and tokens > room:
            text = text[: max(0, len(text) * room // tokens - 1)]
            tokens = self._sizes.text(text) + DECORATION["standing"]
        found = Found("goal", "standing", ("goal",), text)
        return Entry(found, at, refs[at], tokens) if text else None

    def _entries(
        self,
        messages: Sequence[Message],
        refs: Sequence[int | None],
        goal_at: int | None,
        goal: Entry | None,
    ) -> Iterator[Entry]:
        stored = [m.origin == SUMMARY_ORIGIN for m in messages]
        # A stored summary stands for what came before all the rest, wherever it is stored.
        order = sorted(range(len(messages)), key=lambda i: not stored[i])
        for index in order:
            for found, tokens in self._scan(messages[index]):
                repeats = index == goal_at and goal is not None and _said_in(found, goal.found.text)
                if not repeats:
                    at = -1 if stored[index] else index
                    yield Entry(found, at, refs[index], tokens)

    def _scan(self, message: Message) -> tuple[tuple[Found, int], ...]:
        key = (self._sizes.digests.stored(message), message.origin, self._sizes.counter.name)
        return self._scanned.get(key, lambda: self._scan_anew(message))

    def _scan_anew(self, message: Message) -> tuple[tuple[Found, int], ...]:
        found = scan(message, self._rules, self._headings, self._results.best)
        return tuple((item, self._sizes.text(item.text) + DECORATION[item.cls]) for item in found)

    def _render(self, lines: Sequence[FactLine]) -> str:
        out: list[str] = []
        for cls, heading in zip(CLASSES, self._headings, strict=True):
            texts = [line.text for line in lines if line.cls == cls]
            if texts:
                out += [heading, *texts]
        return "\n".join(out)


def first_user(history: Sequence[Message]) -> int | None:
    """Return the index of the first message that a user sent, if there is one."""
    return next(
        (i for i, m in enumerate(history) if m.role is Role.USER and m.origin is None), None
    )


def _line(entry: Entry) -> FactLine:
    found = entry.found
    ref = reference_text(entry.ref)
    if found.handed_on:
        text = found.text
    elif found.cls == "ledger":
        text = f"{found.text} #{ref}"
    else:
        text = f"- {found.text} (#{ref})"
    return FactLine(text, found.rule, found.cls, entry.ref)


def _said_in(found: Found, goal: str) -> bool:
    return found.cls == "other" or found.text in goal
