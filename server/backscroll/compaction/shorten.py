"""A text cut to a number of tokens: its head and tail, a marker, and salient lines between."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from backscroll.compaction.fact_lines import Salient
from backscroll.compaction.tokens import TokenCounter

HEAD_SHARE = 0.6
LINE_END_WITHIN = 0.2
_PIECE_CHARS = 600
_TRIES = 12


@dataclass(frozen=True, slots=True)
class Ends:
    """What is kept of a text, and what lay between."""

    head: str
    tail: str
    middle: str


def take_ends(text: str, allowed: int, counter: TokenCounter) -> Ends:
    """Return head and tail of at most `allowed` tokens, cut at line ends where one is near."""
    head = text[: _fitting(text, int(allowed * HEAD_SHARE), counter)]
    at = head.rfind("\n", int(len(head) * (1 - LINE_END_WITHIN)))
    head = head[:at] if at > 0 else head
    rest = text[len(head) :]
    length = _fitting(rest, allowed - counter.count(head), counter, from_end=True)
    tail = rest[len(rest) - length :]
    at = tail.find("\n", 0, int(len(tail) * LINE_END_WITHIN) + 1)
    tail = tail[at + 1 :] if at >= 0 else tail
    return Ends(head, tail, rest[: len(rest) - len(tail)])


def fit_lines(lines: Sequence[Salient], allowed: int, counter: TokenCounter) -> tuple[Salient, ...]:
    """Return the lines that fit, in order; the worst rank gives way first, of equals the last."""
    kept = list(lines)
    while kept and sum(counter.count(line.text) + 1 for line in kept) > allowed:
        worst = max(range(len(kept)), key=lambda i: (kept[i].rank, i))
        del kept[worst]
    return tuple(kept)


def _fitting(text: str, allowed: int, counter: TokenCounter, from_end: bool = False) -> int:
    """Return how many characters, from one end, take at most `allowed` tokens."""
    # How dense a text is shows in a piece of it; the first guess is then near.
    piece = text[-_PIECE_CHARS:] if from_end else text[:_PIECE_CHARS]
    dense = len(piece) / max(1, counter.count(piece))
    length = min(len(text), int(max(0, allowed) * dense * 0.98))
    best = 0
    for _ in range(_TRIES):
        part = text[len(text) - length :] if from_end else text[:length]
        tokens = counter.count(part)
        if tokens <= allowed:
            best = max(best, length)
            if length == len(text) or tokens >= 0.95 * allowed:
                break
            grown = int(length * min(2.0, 0.98 * allowed / max(1, tokens)))
            length = min(len(text), max(length + 1, grown))
        else:
            length = min(length - 1, int(length * 0.98 * allowed / tokens))
        if length <= best:
            break
    return best
