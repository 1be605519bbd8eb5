"""The rules of the facts block, as data: what counts as a fact, in which class, how it prints."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

FactClass = Literal["standing", "ledger", "other"]
Share = Literal["path", "error", "value", "id"]
Source = Literal["user", "assistant", "argument", "result", "writes"]


@dataclass(frozen=True, slots=True)
class FactRule:
    """One rule."""

    name: str
    cls: FactClass
    sources: frozenset[Source]
    pattern: re.Pattern[str]
    rank: int


RULES: tuple[FactRule, ...] = ()
