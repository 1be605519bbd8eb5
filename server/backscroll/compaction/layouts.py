"""Which summary a call uses: the smallest that fits easily, else the one that covers most."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from backscroll.compaction.micro import LEVEL_MIN
from backscroll.compaction.reading import Reading
from backscroll.compaction.store import Cache, CompactionEntry, Marks
from backscroll.compaction.summary_text import summary_message
from backscroll.compaction.view import Layout, last_reference

CacheResult = Literal["hit", "miss", "none"]


@dataclass(frozen=True, slots=True)
class Choice:
    """The layout a call starts from, and what became of the stored cache.

    `uncompacted` says that less is left out than the stored entry would leave out.
    """

    layout: Layout
    result: CacheResult
    why: str = ""
    uncompacted: bool = False

    def to_dict(self) -> dict[str, Any]:
        """Return what the record says of the cache."""
        out: dict[str, Any] = {"result": self.result}
        if self.layout.cache is not None:
            out["prefix_n"] = self.layout.cache.prefix_n
            out["prefix_hash"] = self.layout.cache.prefix_hash
        if self.why:
            out["why"] = self.why
        return out


def choose_layout(reading: Reading, entry: CompactionEntry, goal: int) -> Choice:
    """Return the layout to start from, where the view is to take at most `goal` tokens.

    A view that fits easily without shortening is sent so; marks that reach beyond the summary in
    use stay, or the same view would be shortened again a little later. A summary that an operator
    chose is used even where less would do.
    """
    valid = valid_caches(reading, entry)
    chosen = next((cache for cache in valid if cache.chosen and cache == entry.cache), None)
    if chosen is not None:
        valid = valid[valid.index(chosen) :]
    marks = valid_marks(reading, entry.marks)
    last = valid[-1] if valid else None
    easy = min(reading.limits.uncompact, reading.limits.micro, goal)
    for cache in valid if chosen is not None else (None, *valid):
        prefix_n = cache.prefix_n if cache is not None else 0
        if cache is last and cache is not None and _reaches(marks, prefix_n):
            break
        if _fits_whole(reading, cache, easy):
            plain = Layout(cache, prefix_n, prefix_n)
            less = cache is not last or _reaches(marks, prefix_n)
            return Choice(plain, *_result(entry, cache), uncompacted=less)
    prefix_n = last.prefix_n if last is not None else 0
    micro_n, drop_n = (marks.micro_n, marks.drop_n) if marks else (0, 0)
    marked = Layout(last, max(micro_n, prefix_n), max(drop_n, prefix_n))
    return Choice(marked, *_result(entry, last))


def valid_caches(reading: Reading, entry: CompactionEntry) -> list[Cache]:
    """Return the caches that stand for a prefix of this history, shortest first."""
    stored = [entry.cache] if entry.cache is not None else []
    found: dict[str, Cache] = {}
    for cache in (*stored, *entry.ring):
        if not cache.ready and is_valid(reading, cache):
            found.setdefault(cache.prefix_hash, cache)
    return sorted(found.values(), key=lambda cache: cache.prefix_n)


def is_valid(reading: Reading, cache: Cache) -> bool:
    """Say whether a cache stands for a prefix of this history, at a place that is still safe."""
    n = cache.prefix_n
    return n < len(reading.hashes) and reading.hashes[n] == cache.prefix_hash and reading.is_cut(n)


def valid_marks(reading: Reading, marks: Marks | None) -> Marks | None:
    """Return the marks if the history they were set on is a prefix of this one."""
    if marks is None or marks.at_n >= len(reading.hashes):
        return None
    return marks if reading.hashes[marks.at_n] == marks.at_hash else None


def _reaches(marks: Marks | None, prefix_n: int) -> bool:
    return marks is not None and max(marks.micro_n, marks.drop_n) > prefix_n


def _fits_whole(reading: Reading, cache: Cache | None, limit: int) -> bool:
    """Say whether a view with this summary, only capped, takes at most that much.

    It is added up from the newest message, so that a long history is not read to its end.
    """
    prefix_n, total = 0, 0
    if cache is not None:
        means, prefix_n = reading.given.means, cache.prefix_n
        ref = last_reference(reading, prefix_n)
        message = summary_message(cache.summary, ref, means.texts, means.recall)
        total += reading.estimate(message)
        moved = (i for i in reading.kept if i < prefix_n)
        total += sum(reading.estimate(reading.shape(i, False).message) for i in moved)
    raw, estimate = reading.given.means.sizes.message, reading.budget.estimate
    for index in range(len(reading.history) - 1, prefix_n - 1, -1):
        size = raw(reading.history[index])
        # No cap goes below this, so most messages need not be looked at twice.
        if size > LEVEL_MIN:
            size = raw(reading.shape(index, False).message)
        total += estimate(size)
        text = reading.recalled(index)
        if text is not None:
            total += reading.estimate(text)
        if total > limit:
            return False
    return total <= limit


def _result(entry: CompactionEntry, used: Cache | None) -> tuple[CacheResult, str]:
    if entry.cache is None and used is None:
        return "none", ""
    if used is not None:
        return "hit", "" if used == entry.cache else "an older summary"
    n = entry.cache.prefix_n if entry.cache is not None else 0
    return "miss", f"the first {n} messages are not those it was made from"
