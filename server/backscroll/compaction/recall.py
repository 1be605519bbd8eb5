"""The tool that looks up earlier messages of its own conversation, by reference or by words."""

from __future__ import annotations

import math
import re
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol

from backscroll.compaction.canon_forms import references
from backscroll.compaction.groups import newest_user_messages
from backscroll.compaction.memo import Memo
from backscroll.compaction.recalled import (
    RECALL,
    Piece,
    is_recallable,
    pieces_in,
    pieces_of,
    recall_line,
    whole_text,
)
from backscroll.compaction.texts import CompactionTexts
from backscroll.compaction.tokens import Sizes
from backscroll.conversation.repair import repair
from backscroll.conversation.words import words
from backscroll.kernel.message import Message
from backscroll.kernel.tool import Tool, ToolContext

PART_TOKENS = 2_000
MAX_RANGE, MAX_HITS, MAX_PER_TURN = 8, 5, 3
REMEMBERED = 1_000
_AROUND_CHARS = 600
_EXACT = 1_000.0
_REF = re.compile(r"#?(\d{1,9})(?:\s*-\s*#?(\d{1,9}))?")
_IDENTIFIER = re.compile(r"\S*[\d_/.:-]\S*")

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "ref": {"type": "string", "description": "A reference such as #12, or a range #12-#15."},
        "query": {"type": "string", "description": "Exact words, ids or paths."},
        "part": {"type": "integer", "minimum": 1, "default": 1},
    },
    "additionalProperties": False,
}


class HistoryReader(Protocol):
    """Whoever can read the history of a conversation."""

    async def get(self, conversation_id: str) -> list[Message]:
        """Return the live history."""
        ...


class Recall:
    """Looks up messages; what was cut into words once is remembered."""

    def __init__(self, sizes: Sizes, texts: CompactionTexts) -> None:
        self._sizes, self._texts = sizes, texts
        self._words: Memo[frozenset[str]] = Memo(20_000)
        self._batches: OrderedDict[str, tuple[str, int]] = OrderedDict()

    def tool(self, memory: HistoryReader) -> Tool:
        """Return the tool on a memory; its calls run one after the other."""

        async def body(args: dict[str, Any], context: ToolContext) -> str:
            history = await memory.get(context.conversation_id or "")
            return self.answer(history, args, context)

        return Tool.from_schema(
            RECALL, self._texts.recall_description, SCHEMA, body, serial=True, idempotent=True
        )

    def answer(self, history: Sequence[Message], args: dict[str, Any], context: ToolContext) -> str:
        """Return the line for the history, or a sentence that says why there is none."""
        key, batch = context.conversation_id or "", context.message_id
        known, done = self._batches.get(key, ("", 0))
        done = done if known == batch else 0
        if done + _this_turn(history) >= MAX_PER_TURN:
            return self._texts.fill("recall_limit", limit=MAX_PER_TURN)
        found = self.look_up(history, args.get("ref"), args.get("query"), args.get("part", 1))
        self._batches[key] = (batch, done + bool(pieces_in(found)))
        self._batches.move_to_end(key)
        while len(self._batches) > REMEMBERED:
            self._batches.popitem(last=False)
        return found

    def look_up(
        self, history: Sequence[Message], ref: str | None, query: str | None, part: int = 1
    ) -> str:
        """Return the line that names what was found; exactly one of `ref` and `query`."""
        view = repair(history, "")[0]
        what = ref or f'"{(query or "")[:80]}"'
        pieces: list[list[Piece]] = []
        if ref and not query:
            pieces = self._by_reference(view, ref)
        elif query and not ref:
            hits = self._by_query(view, query)
            pieces = [hits] if hits else []
        if not 1 <= part <= len(pieces):
            return self._texts.fill("recall_miss", what=what)
        return recall_line(what, part, len(pieces), pieces[part - 1], self._texts)

    def _by_reference(self, view: Sequence[Message], ref: str) -> list[list[Piece]]:
        match = _REF.fullmatch(ref.strip())
        if match is None:
            return []
        first = int(match[1])
        last = int(match[2] or first)
        if not first <= last < first + MAX_RANGE:
            return []
        wanted = [
            (message, number)
            for message, number in zip(view, references(view), strict=True)
            if number is not None and first <= number <= last and is_recallable(message)
        ]
        return list(self._parts(wanted))

    def _parts(self, wanted: Sequence[tuple[Message, int]]) -> Iterator[list[Piece]]:
        """Yield the parts of several messages, each within its tokens."""
        part: list[Piece] = []
        left = PART_TOKENS
        for message, ref in wanted:
            text = whole_text(message, ref)
            start = 0
            while start < len(text):
                end = start + _fitting(text[start:], left, self._sizes.text)
                if end == start:
                    yield part
                    part, left = [], PART_TOKENS
                    continue
                part.append(Piece(message.id or "", start, end))
                left -= self._sizes.text(text[start:end])
                start = end
        if part:
            yield part

    def _by_query(self, view: Sequence[Message], query: str) -> list[Piece]:
        asked = set(words(query))
        docs = [
            (index, message, self._words_of(message))
            for index, message in enumerate(view)
            if message.id is not None and is_recallable(message)
        ]
        spread = Counter(word for _, _, found in docs for word in asked if word in found)
        weights = {w: math.log(1 + len(docs) / spread[w]) for w in sorted(asked) if spread[w]}
        exact = [item.casefold() for item in _IDENTIFIER.findall(query)]
        refs = references(view)
        scored = []
        for index, message, found in docs:
            score = sum(weight for word, weight in weights.items() if word in found)
            if score > 0:
                text = whole_text(message, refs[index]).casefold()
                score += _EXACT * sum(item in text for item in exact)
                scored.append((score, index))
        best = sorted(scored, reverse=True)[:MAX_HITS]
        return [self._around(view[index], refs[index], exact, weights) for _, index in best]

    def _words_of(self, message: Message) -> frozenset[str]:
        digest = self._sizes.digests.stored(message)
        return self._words.get(digest, lambda: frozenset(words(whole_text(message, None))))

    def _around(
        self,
        message: Message,
        ref: int | None,
        exact: Sequence[str],
        weights: dict[str, float],
    ) -> Piece:
        """Return the piece around the best hit: an exact identifier, else the rarest word."""
        text = whole_text(message, ref)
        plain = text.casefold() if len(text.casefold()) == len(text) else text.lower()
        rarest = sorted(weights, key=lambda word: -weights[word])
        at = next((p for item in (*exact, *rarest) if (p := plain.find(item)) >= 0), 0)
        start, end = max(0, at - _AROUND_CHARS), min(len(text), at + _AROUND_CHARS)
        line = text.rfind("\n", start, at)
        start = line + 1 if start and line >= 0 else start
        room = PART_TOKENS // MAX_HITS
        return Piece(
            message.id or "", start, start + _fitting(text[start:end], room, self._sizes.text)
        )


def _this_turn(history: Sequence[Message]) -> int:
    """Count the look-ups since the newest user message that found something."""
    newest = newest_user_messages(history)
    start = newest[0] if newest else 0
    return sum(1 for message in history[start:] if pieces_of(message))


def _fitting(text: str, tokens: int, count: Callable[[str], int]) -> int:
    """Return how much of a text takes at most so many tokens, to a line's end where one is near."""
    length = min(len(text), max(tokens, 0) * 5)
    while length and count(text[:length]) > tokens:
        length = int(length * 0.85)
    if length < len(text):
        line = text.rfind("\n", int(length * 0.8), length)
        length = line + 1 if line >= 0 else length
    return length
