"""What an id may look like, on the wire and of our own making."""

from __future__ import annotations

import re

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")
_MINTED = re.compile(r"msg_[0-9A-Za-z]{17}")

LONGEST_ID = 256


def id_problem(value: str) -> str | None:
    """Return what is wrong with an id that a client chose, or None."""
    if not value:
        return "is empty"
    if len(value) > LONGEST_ID:
        return f"is longer than {LONGEST_ID} characters"
    return "has control characters" if _CONTROL.search(value) else None


def reasoning_id(message_id: str) -> str:
    """Return the id of an assistant message's reasoning."""
    return f"{message_id}.r"


def is_minted(message_id: str) -> bool:
    """Say whether a message id looks like one of ours rather than a client's."""
    return _MINTED.fullmatch(message_id) is not None
