"""The piece estimator: tokens of any text by one regular expression, without a vocabulary."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

_UNIT = 10_000
_PART = 65_536
_LONGEST_REMEMBERED = 40
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

# No piece goes on from a word into a gap, so a text weighs what its words and its gaps weigh.
_GAPS = re.compile(rf"[\r\n]+|[{_BLANK}]{{2,}}")
# Two and more: beginning with two makes the search fast.
_WIDE_GAPS = re.compile("   *")
_EMPTY_LINES = re.compile("\n\n+")
_RARE_BLANK = re.compile(r"[^\S\x00-\x7f]")
_TO_GAP = re.compile(r"\s*\S+")

# ASCII characters that no row tells apart become one: words of one form are remembered as one.
_FORMS = (
    ("[a-z]", b"a"),
    ("[A-Z]", b"A"),
    ("[0-9]", b"0"),
    (r"[\r\n]", b"\n"),
    (rf"[{_BLANK}]", b" "),
    ("_", b"_"),
    (rf"[{_MARKS}]", b"."),
)
_FORM = bytes.maketrans(
    bytes(range(128)),
    b"".join(next(b for kind, b in _FORMS if re.match(kind, chr(n))) for n in range(128)),
)


class _Weights(dict[str, int]):
    """The weights of words and of their pieces; threads may share it.

    Kept are those of words short enough to come again.
    """

    def __missing__(self, word: str) -> int:
        weight = 0
        for pieces in _parts(word):
            weight += _by_table(word) if pieces == [word] else sum(map(self.__getitem__, pieces))
        if len(word) <= _LONGEST_REMEMBERED:
            if len(self) >= _MOST_REMEMBERED:
                self.clear()
            self[word] = weight
        return weight


class PieceCounter:
    """Counts by pieces of text with fixed weights: no vocabulary, one pass."""

    name = "pieces"

    def __init__(self) -> None:
        self._weights = _Weights()

    def count(self, text: str) -> int:
        """Return the estimate, rounded up."""
        # Whole numbers, so that the sum does not depend on where a text was split.
        return -(-sum(map(self._weigh, _spans(text))) // _UNIT)

    def _weigh(self, text: str) -> int:
        weigh = self._weights.__getitem__
        # By way of bytes, which is fast for every script and leaves what is not ASCII as it is.
        form = text.encode("utf-8", "surrogatepass").translate(_FORM)
        text = form.decode("utf-8", "surrogatepass")
        total = sum(map(weigh, text.split()))
        if not text.isascii() and _RARE_BLANK.search(text):
            return total + sum(map(weigh, _GAPS.findall(text)))
        wide = len(_WIDE_GAPS.findall(text))
        ends = text.count("\n") - sum(len(run) - 1 for run in _EMPTY_LINES.findall(text))
        return total + wide * weigh("  ") + ends * weigh("\n")


def _by_table(piece: str) -> int:
    return next(weigh(len(piece)) for kind, weigh in _KINDS if kind.fullmatch(piece))


def _spans(text: str, length: int = _PART) -> Iterator[str]:
    """Yield a text span by span, each up to a gap: between two, other threads have their turn."""
    start = 0
    while start < len(text):
        found = _TO_GAP.match(text, start + length) if len(text) - start > length else None
        end = found.end() if found else len(text)
        yield text[start:end]
        start = end


def _parts(word: str, length: int = _PART) -> Iterator[list[str]]:
    """Yield the pieces of a word part by part, for the same reason."""
    start, size = 0, length
    while len(word) - start > size:
        pieces = _PIECES.findall(word, start, start + size)
        # The last piece may go on behind the end, so it is read again with what follows it.
        last = pieces.pop()
        if not pieces:
            size *= 2
            continue
        yield pieces
        start, size = start + size - len(last), length
    yield _PIECES.findall(word, start)
