"""The piece estimator: tokens of any text by one regular expression, without a vocabulary."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

_UNIT = 10_000
_PART = 65_536
_LONGEST_REMEMBERED = 24
_MOST_REMEMBERED = 65_536

# Characters with a row of their own in the table; a run of others ends before them.
_BLANK = r" \t\x0b\x0c\x1c-\x1f\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"
_MARKS = (
    r"!-/:-@\[-\^`{-\x7f\x00-\x08\x0e-\x1b"
    r"\xa1-\xa9\xab-\xb4\xb6-\xb9\xbb-\xbf\xd7\xf7\u200b-\u2027\u202a-\u202e\u2030-\u205e"
    r"\u2060-\u2bff\u2e00-\u2e7f\u3001-\u3004\u3008-\u3040\ufe00-\ufe6f\ufeff"
    r"\uff00-\uff0f\uff1a-\uff20\uff3b-\uff40\uff5b-\uff65\uffe0-\uffff"
)
_KANA = r"\u3041-\u30ff\u31f0-\u31ff\uff66-\uff9f"
_HANGUL = r"\u3130-\u318f\uac00-\ud7ff\uffa0-\uffdf"
# Han, and the letters of any other script up here, which vocabularies split as finely.
_HAN = (
    r"\u2e80-\u2fff\u3005-\u3007\u3100-\u312f\u3190-\u31ef\u3200-\uabff\ud800-\ufdff"
    r"\ufe70-\ufefe\uff10-\uff19\uff21-\uff3a\uff41-\uff5a"
)
_BEYOND = r"\U00010000-\U0010ffff"


def _word(length: int) -> int:
    if length <= 2:
        return 11_200
    return 10_300 if length <= 7 else _UNIT + (length - 7) * 2_000


def _capitals(length: int) -> int:
    return _word(1) if length == 1 else -(-length // 3) * _UNIT


def _marks(length: int) -> int:
    return 8_500 if length == 1 else 8_000 + 4_000 * length


_TABLE: tuple[tuple[str, Callable[[int], int]], ...] = (
    (r"[A-Z]?[a-z]+", _word),
    (r"[A-Z]+(?![a-z])", _capitals),
    (r"[0-9]{1,3}", lambda _: 10_500),
    (r"[\r\n]+", lambda _: 6_000),
    (rf"[{_BLANK}]+", lambda length: 6_000 if length > 1 else 0),
    (r"_", lambda _: 5_000),
    (rf"[{_MARKS}]+", _marks),
    (rf"[{_HAN}]", lambda _: _UNIT),
    (rf"[{_KANA}{_HANGUL}]", lambda _: 9_000),
    (rf"[{_BEYOND}]", lambda _: 22_000),
    (
        rf"[^\x00-\x7f{_BLANK}{_MARKS}{_HAN}{_KANA}{_HANGUL}{_BEYOND}]+",
        lambda length: length * 3_125,
    ),
)
"""Kinds of pieces in the order they are tried, each with its weight, in 1/10,000 of a token."""

_PIECES = re.compile("|".join(pattern for pattern, _ in _TABLE))
_KINDS = tuple((re.compile(pattern), weigh) for pattern, weigh in _TABLE)


class _Weights(dict[str, int]):
    """The weight of each piece, worked out once for those that are short enough to come again."""

    def __missing__(self, piece: str) -> int:
        weight = next(weigh(len(piece)) for kind, weigh in _KINDS if kind.fullmatch(piece))
        if len(piece) <= _LONGEST_REMEMBERED:
            if len(self) >= _MOST_REMEMBERED:
                self.clear()
            self[piece] = weight
        return weight


class PieceCounter:
    """Counts by pieces of text with fixed weights: no vocabulary, one pass."""

    name = "pieces"

    def __init__(self) -> None:
        self._weights = _Weights()

    def count(self, text: str) -> int:
        """Return the estimate, rounded up."""
        # Whole numbers, so that the sum does not depend on where a text was split.
        weigh = self._weights.__getitem__
        total = sum(sum(map(weigh, pieces)) for pieces in _parts(text))
        return -(-total // _UNIT)


def _parts(text: str, length: int = _PART) -> Iterator[list[str]]:
    """Yield the pieces of a text part by part: between two, other threads have their turn."""
    start, size = 0, length
    while start < len(text):
        end = start + size
        pieces = _PIECES.findall(text, start, end)
        if end < len(text):
            # The last piece may go on behind the end, so it is read again with what follows it.
            end -= len(pieces.pop())
        if not pieces:
            size *= 2
            continue
        start, size = end, length
        yield pieces
