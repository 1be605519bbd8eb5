"""What the rules find in a tool result: its lines, which of them are rows, and the hits."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from backscroll.compaction.fact_rules import RULES, FactRule
from backscroll.compaction.line_shapes import shapes
from backscroll.compaction.memo import Memo
from backscroll.compaction.tags import clean_line

ROWS_FROM = 3
ROWS_OF_ONE_SHAPE = 2
ENTRIES = 6
SALIENT_LINES = 4
SALIENT_WIDTH = 160
_LONG_LINE = 120
_JSON_STEPS = re.compile(r"(?<=[,{}\[\]])(?=[\"{\[])")


@dataclass(frozen=True, slots=True)
class Hit:
    """A line of a result in which a rule found something, at line[start:end]."""

    rule: FactRule
    line: str
    start: int
    end: int
    number: int


def split_lines(body: str) -> list[str]:
    """Return the lines of a result; JSON written on one line is taken member by member."""
    lines: list[str] = []
    for line in body.splitlines():
        if len(line) > _LONG_LINE and line.lstrip()[:1] in ("{", "["):
            lines += [step.strip("{}[],") for step in _JSON_STEPS.split(line)]
        else:
            lines.append(line.strip())
    return lines


def result_hits(body: str, rules: Sequence[FactRule]) -> list[Hit]:
    """Return the lines of a result that rules of source `result` match, each by its best rule.

    Rows are left out, but for rules that read rows. Order is that of the lines.
    """
    rules = [rule for rule in rules if "result" in rule.sources and rule.may_hit(body)]
    rules.sort(key=lambda rule: rule.rank)
    row_rules = [rule for rule in rules if rule.rows]
    lines = split_lines(body)
    if not lines:
        return []
    line_shapes = shapes(lines)
    counts = Counter(line_shapes)
    taken: Counter[str] = Counter()
    hits: list[Hit] = []
    for number, (line, shape) in enumerate(zip(lines, line_shapes, strict=True)):
        read = row_rules if counts[shape] >= ROWS_FROM else rules
        hit = _first_hit(line, number, read) if line and read else None
        if hit is None or (hit.rule.rows and taken[shape] >= ROWS_OF_ONE_SHAPE):
            continue
        taken[shape] += hit.rule.rows
        hits.append(hit)
    return hits


def best_hits(hits: Sequence[Hit], limit: int) -> list[Hit]:
    """Return the hits of best rank, up to a limit, in their old order."""
    best = sorted(hits, key=lambda hit: (hit.rule.rank, hit.number))[:limit]
    return sorted(best, key=lambda hit: hit.number)


def window(line: str, start: int, end: int, left: int, right: int) -> str:
    """Return the part of a line around a hit, cut at blanks where there are some."""
    low, high = max(0, start - left), min(len(line), end + right)
    if low > 0:
        blank = line.find(" ", low - 1, start)
        low = blank + 1 if blank >= 0 else low
    if high < len(line):
        blank = line.rfind(" ", end, high + 1)
        high = blank if blank >= 0 else high
    return line[low:high].strip()


@dataclass(frozen=True, slots=True)
class Salient:
    """A line that is kept of a shortened result, and its rank; 1 is the best."""

    text: str
    rank: int


class ResultReader:
    """Reads each result once, for the facts of a history and for the lines kept of its results."""

    def __init__(self, rules: Sequence[FactRule] = RULES) -> None:
        self._rules = tuple(rules)
        self._best: Memo[tuple[Hit, ...]] = Memo(20_000)

    def best(self, body: str) -> tuple[Hit, ...]:
        """Return the hits of best rank, at most as many as a message gives to the facts."""
        key = hashlib.sha256(body.encode("utf-8", "surrogatepass")).digest()
        return self._best.get(key, lambda: best_of(body, self._rules))


def best_of(body: str, rules: Sequence[FactRule]) -> tuple[Hit, ...]:
    """Return what a `ResultReader` with these rules finds."""
    return tuple(best_hits(result_hits(body, rules), ENTRIES))


def salient_lines(hits: Sequence[Hit]) -> tuple[Salient, ...]:
    """Return the few lines worth keeping of a result, in their old order."""
    out: list[Salient] = []
    for hit in best_hits(hits, SALIENT_LINES):
        room = max(0, SALIENT_WIDTH - (hit.end - hit.start)) // 2
        text = clean_line(window(hit.line, hit.start, hit.end, room, room))[:SALIENT_WIDTH]
        if text:
            out.append(Salient(text, hit.rule.rank))
    return tuple(out)


def _first_hit(line: str, number: int, rules: Sequence[FactRule]) -> Hit | None:
    for rule in rules:
        match = rule.pattern.search(line)
        if match is not None:
            return Hit(rule, line, match.start(), match.end(), number)
    return None
