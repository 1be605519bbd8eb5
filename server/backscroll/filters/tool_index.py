"""Indexes of tools: by keywords, and by a pattern of names."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Protocol

from pydantic_core import SchemaError, SchemaValidator, core_schema

from backscroll.conversation.words import is_latin, words
from backscroll.kernel.tool import ToolSpec

IN_NAME, IN_DESCRIPTION, PARTIAL = 2.0, 1.0, 0.5
PARTIAL_LETTERS = 3


class ToolIndex(Protocol):
    """Finds tools by what is asked for."""

    def rebuild(self, tools: Sequence[ToolSpec]) -> None:
        """Forget all tools and take these."""
        ...

    def search(self, query: str, limit: int) -> list[str]:
        """Return the names of at most `limit` tools, the best first."""
        ...


class KeywordIndex:
    """Finds tools by words of their names and descriptions; rare words count more."""

    def __init__(self) -> None:
        self._tools: dict[str, tuple[frozenset[str], frozenset[str]]] = {}
        self._used: Counter[str] = Counter()

    def rebuild(self, tools: Sequence[ToolSpec]) -> None:
        """Take these tools."""
        self._tools = {
            tool.name: (
                frozenset(words(tool.name, with_singles=True)),
                frozenset(words(tool.description, with_singles=True)),
            )
            for tool in tools
        }
        self._used = Counter(word for sets in self._tools.values() for word in sets[0] | sets[1])

    def search(self, query: str, limit: int) -> list[str]:
        """Return the tools that have any of the words, by score and then by name."""
        asked = [self._known(word) for word in dict.fromkeys(words(query))]
        weights = {word: self._idf(word) for found, _ in asked for word in found}
        if not any(weights.values()):
            # Words that all tools share tell nothing apart, but they are all there is.
            weights = dict.fromkeys(weights, 1.0)
        # Rounded, because sums of the same weights in another order are equal only nearly.
        scores = {name: round(self._score(name, asked, weights), 9) for name in self._tools}
        ranked = sorted((-score, name) for name, score in scores.items() if score > 0)
        return [name for _, name in ranked[:limit]]

    def _known(self, word: str) -> tuple[list[str], float]:
        """Return the words of the index that a word of the query stands for, and their share."""
        if word in self._used:
            return [word], 1.0
        if not is_latin(word) or len(word) < PARTIAL_LETTERS:
            return [], 0.0
        return [other for other in self._used if _is_akin(word, other)], PARTIAL

    def _idf(self, word: str) -> float:
        return math.log((len(self._tools) + 1) / (self._used[word] + 1))

    def _score(
        self,
        name: str,
        asked: Iterable[tuple[list[str], float]],
        weights: dict[str, float],
    ) -> float:
        in_name, in_description = self._tools[name]
        total = 0.0
        for found, share in asked:
            best = 0.0
            for word in found:
                places = IN_NAME * (word in in_name) + IN_DESCRIPTION * (word in in_description)
                best = max(best, weights[word] * places)
            total += share * best
        return total


class RegexIndex:
    """Finds tools whose name matches a pattern, in the order of the catalog."""

    def __init__(self) -> None:
        self._names: tuple[str, ...] = ()

    def rebuild(self, tools: Sequence[ToolSpec]) -> None:
        """Take these tools."""
        self._names = tuple(tool.name for tool in tools)

    def search(self, query: str, limit: int) -> list[str]:
        """Return the tools with such a name; what is no pattern is taken as it is."""
        if not query.strip():
            return []
        # An engine that never backtracks, as a model's pattern could do for hours.
        text = core_schema.str_schema(pattern=f"(?i){query}", regex_engine="rust-regex")
        try:
            matches = SchemaValidator(text).isinstance_python
        except SchemaError:
            return [name for name in self._names if query.lower() in name.lower()][:limit]
        return [name for name in self._names if matches(name)][:limit]


def _is_akin(word: str, other: str) -> bool:
    is_long = is_latin(other) and len(other) >= PARTIAL_LETTERS
    return is_long and (other.startswith(word) or word.startswith(other))
