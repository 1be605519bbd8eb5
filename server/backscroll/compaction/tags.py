"""Text from elsewhere made safe to stand inside the blocks that compaction writes."""

from __future__ import annotations

import re
import unicodedata

RESERVED = (
    "earlier-conversation",
    "earlier-messages-left-out",
    "recalled",
    "facts",
    "transcript",
    "notes",
)
"""The names of our own tags; there is one real pair of each in a view."""

_OPENING = re.compile(rf"<(?=[\s/]*(?:{'|'.join(RESERVED)})\b)", re.IGNORECASE)
_ANGLES = str.maketrans("", "", "<>")
_BLANKS = re.compile(r"\s+")


def escape_tags(text: str) -> str:
    """Return the text with `&lt;` for every `<` that begins one of our tags."""
    return _OPENING.sub("&lt;", text) if "<" in text else text


def clean_line(text: str) -> str:
    """Return one line without angle brackets and control characters, blanks joined."""
    text = _BLANKS.sub(" ", text.translate(_ANGLES)).strip()
    if text.isascii() and text.isprintable():
        return text
    return "".join(char for char in text if unicodedata.category(char)[0] != "C")
