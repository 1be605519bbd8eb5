"""Text cut into the words it is searched by, in any script."""

from __future__ import annotations

import re
import unicodedata

# Han with its extensions, kana, Hangul, and the marks that repeat or lengthen them.
_CJK = (
    "\u1100-\u11ff\u3005\u3007\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff"
    "\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\U00020000-\U0003ffff"
)
_RUN = re.compile(rf"[{_CJK}]+|\d+|[^\W\d_{_CJK}]+")
_HUMP = re.compile(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_IS_CJK = re.compile(rf"[{_CJK}]")


def words(text: str, with_singles: bool = False) -> list[str]:
    """Return the words of a text in order, repeated ones too.

    Width and case make no difference; camelCase, snake_case and digits are cut apart. A run of
    CJK gives its pieces of two characters, and `with_singles` each character as well.
    """
    found: list[str] = []
    for run in _RUN.findall(unicodedata.normalize("NFKC", text)):
        if _IS_CJK.match(run):
            found += _pieces(run, with_singles)
        else:
            found += [part.casefold() for part in _HUMP.split(run)]
    return found


def is_latin(word: str) -> bool:
    """Say whether a word is of letters that are written in words."""
    return word.isalpha() and not _IS_CJK.match(word)


def _pieces(run: str, with_singles: bool) -> list[str]:
    if len(run) == 1:
        return [run]
    pairs = [run[at : at + 2] for at in range(len(run) - 1)]
    return [*pairs, *run] if with_singles else pairs
