"""The cursor of the wire: `<seq>.<epoch>`, the last number a reader has seen, and of which log."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from backscroll.agui.refusal import Problem, RequestRefused

ResyncReason = Literal["trimmed", "ahead", "epoch"]

_CURSOR = re.compile(r"(0|[1-9][0-9]{0,15})(?:\.([0-9a-z]{4}))?")


@dataclass(frozen=True, slots=True)
class Cursor:
    """A place in a thread's log; `epoch` is empty when a peer sent a bare number."""

    seq: int
    epoch: str = ""

    def __str__(self) -> str:
        return f"{self.seq}.{self.epoch}" if self.epoch else str(self.seq)


START = Cursor(-1)
"""The place before the first entry."""


def parse_cursor(text: str, path: str = "offset") -> Cursor:
    """Read a cursor; raises `invalid_input` naming the member or parameter it came in."""
    if text == "-1":
        return START
    found = _CURSOR.fullmatch(text)
    if found is None:
        raise RequestRefused.of_problems(
            [Problem(path, "must be a cursor, <seq>.<epoch>, a number, or -1")]
        )
    return Cursor(int(found[1]), found[2] or "")


def check_cursor(cursor: Cursor, floor: int, head: int, epoch: str) -> ResyncReason | None:
    """Return why the log cannot be continued from a cursor, or None when it can."""
    if cursor.epoch and cursor.epoch != epoch:
        return "epoch"
    if cursor == START:
        return None if floor == 0 else "trimmed"
    if cursor.seq < floor:
        return "trimmed"
    return "ahead" if cursor.seq > head else None
