"""The shapes of lines: what rows of one log or table have in common."""

from __future__ import annotations

import re
from collections.abc import Sequence

_BATCH = 2_000
_LONGEST_REMEMBERED, _MOST_REMEMBERED = 40, 16_384

# A shape tells numbers, words with digits and words apart, and takes a run of words for one word.
# Letters become `a` and digits `0` first, which keeps the patterns simple and the search fast.
_MASK = str.maketrans(
    {chr(n): "a" for n in range(128) if chr(n).isalpha() or chr(n) in "_/@~"}
    | {str(n): "0" for n in range(10)}
    | {"+": "-", "\t": " "}
)
_WORD = r"a.\-\x80-\U0010ffff"
_TOKEN = rf"[{_WORD}0]"
_NUMBERS = re.compile(rf"(?<!{_TOKEN})-?0{{1,6}}(?:[.,:]0++)*+%?(?!{_TOKEN})")
_MIXED = re.compile(rf"(?<!{_TOKEN})[{_WORD}]*+0{_TOKEN}*+")
_WORDS = re.compile(rf"{_TOKEN}++")
# A run of plain words becomes one before each word is looked at, which saves most of the work.
_PLAIN_WORDS = re.compile(" a++(?: a++(?= ))++")
_WORD_RUNS = re.compile("\x02(?:[ ,]++\x02)++")
# Two blanks and more: beginning with two makes the search fast.
_BLANKS = re.compile("   *+")
_MEMBER = re.compile(r'"[^"\n]{1,80}":')


def shapes(lines: Sequence[str]) -> list[str]:
    """Return the shape of each line."""
    found: list[str] = []
    # Many at once, which is fast; not all at once, which would let no other thread run meanwhile.
    for start in range(0, len(lines), _BATCH):
        found += _shapes(lines[start : start + _BATCH])
    return found


class _Masks(dict[str, str]):
    """The masks of words, kept of those short enough to come again; threads may share it."""

    def __missing__(self, word: str) -> str:
        mask = _NUMBERS.sub("\x00", word)
        mask = _MIXED.sub("\x01", mask)
        mask = _WORDS.sub("\x02", mask)
        if len(word) <= _LONGEST_REMEMBERED:
            if len(self) >= _MOST_REMEMBERED:
                self.clear()
            self[word] = mask
        return mask


_MASKS = _Masks()


def _shapes(lines: Sequence[str]) -> list[str]:
    # With blanks around it, a line end is a word too.
    text = "\n".join(lines).translate(_MASK).replace("\n", " \n ")
    words = _PLAIN_WORDS.sub(" a", text).split(" ")
    text = " ".join(map(_MASKS.__getitem__, words)).replace(" \n ", "\n")
    masked = _BLANKS.sub(" ", _WORD_RUNS.sub("\x02", text)).split("\n")
    # What tells a member of a JSON object from a row of a table is its key.
    keys = (_MEMBER.match(line) for line in lines)
    return [key[0] + shape if key else shape for key, shape in zip(keys, masked, strict=True)]
