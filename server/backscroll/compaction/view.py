"""A view: what of a history is sent, in which shape, with its fate and its reason."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass

from backscroll.compaction.facts import first_user
from backscroll.compaction.reading import Reading
from backscroll.compaction.recalled import pieces_of
from backscroll.compaction.store import Cache
from backscroll.compaction.summary_text import digest_message, summary_message
from backscroll.kernel.message import Message
from backscroll.kernel.request import Claim, Fate

BY = "compaction"
COVERED = "before the safe cut"
DROPPED = "oldest part, left out because it does not fit"


@dataclass(frozen=True, slots=True)
class Layout:
    """What stands in place of what: the summary in use, and how far is shortened and dropped."""

    cache: Cache | None = None
    micro_n: int = 0
    drop_n: int = 0

    @property
    def prefix_n(self) -> int:
        """How many messages the summary stands for."""
        return self.cache.prefix_n if self.cache is not None else 0

    @property
    def start(self) -> int:
        """Where the messages begin that are sent one by one."""
        return max(self.prefix_n, self.drop_n)

    def moved(self, *, micro_n: int | None = None, drop_n: int | None = None) -> Layout:
        """Return a copy with a mark moved."""
        micro = self.micro_n if micro_n is None else micro_n
        dropped = self.drop_n if drop_n is None else drop_n
        return dataclasses.replace(self, micro_n=micro, drop_n=dropped)


@dataclass(frozen=True, slots=True)
class ViewItem:
    """One message of a view; `index` is that of its original, None for what compaction wrote."""

    message: Message
    index: int | None
    fate: Fate
    why: str
    before: int
    after: int
    what: str | None = None
    of: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class View:
    """The messages of one call in order, and what of the history is not among them, by index."""

    layout: Layout
    items: tuple[ViewItem, ...]
    summarised: tuple[int, ...] = ()
    dropped: tuple[int, ...] = ()

    @property
    def messages(self) -> tuple[Message, ...]:
        """What is sent."""
        return tuple(item.message for item in self.items)

    @property
    def tokens(self) -> int:
        """The estimate of what is sent."""
        return sum(item.after for item in self.items)

    def count(self, *fates: Fate) -> int:
        """Return how many messages of the history have one of these fates."""
        found = sum(item.fate in fates and item.index is not None for item in self.items)
        found += len(self.summarised) if "summarised" in fates else 0
        return found + (len(self.dropped) if "dropped" in fates else 0)


def render(reading: Reading, layout: Layout) -> View:
    """Return the view of a layout."""
    start = max(layout.start, reading.leading)
    span = range(reading.leading, start)
    lead = [_item(reading, index, layout) for index in range(reading.leading)]
    moved = [_item(reading, index, layout, moved=True) for index in span if index in reading.kept]
    rest = list(_rest(reading, layout, start))
    made = list(_made(reading, layout))
    covered, kept = range(reading.leading, layout.prefix_n), reading.kept
    behind = range(max(reading.leading, layout.prefix_n), start)
    return View(
        layout,
        (*lead, *made, *moved, *rest),
        tuple(index for index in covered if index not in kept),
        tuple(index for index in behind if index not in kept),
    )


def _rest(reading: Reading, layout: Layout, start: int) -> Iterator[ViewItem]:
    """Yield the messages sent one by one, with looked-up text behind the group that asked."""
    if not reading.given.means.recall:
        for index in range(start, len(reading.history)):
            yield _item(reading, index, layout)
        return
    waiting: list[ViewItem] = []
    for index in range(start, len(reading.history)):
        yield _item(reading, index, layout)
        text = reading.recalled(index) if index >= layout.micro_n else None
        if text is not None:
            ref = reading.refs[index]
            tokens = reading.estimate(text)
            found = pieces_of(reading.history[index])
            of = tuple(dict.fromkeys(piece.message_id for piece in found))
            why = f"looked up by #{ref}"
            waiting.append(ViewItem(text, None, "injected", why, 0, tokens, "recall", of))
        if index + 1 == reading.group_of(index).end:
            yield from waiting
            waiting.clear()


def claims(view: View, reading: Reading) -> tuple[Claim, ...]:
    """Return what the view says of each message, sent ones first and in order."""
    digest = reading.given.means.sizes.digests.sent
    history = reading.history
    sent = [
        Claim(
            item.fate,
            item.why,
            BY,
            item.index,
            history[item.index].id if item.index is not None else None,
            item.what,
            digest(item.message),
            (item.before, item.after),
            item.of,
        )
        for item in view.items
    ]
    gone = [Claim("dropped", DROPPED, BY, i, history[i].id) for i in view.dropped]
    return (*sent, *_covered(view, reading), *gone)


def _covered(view: View, reading: Reading) -> tuple[Claim, ...]:
    """Return the claims of what a summary stands for; they are the same from call to call."""
    ids = tuple(reading.history[index].id for index in view.summarised)
    return reading.given.means.covered.get(
        (view.summarised, ids),
        lambda: tuple(
            Claim("summarised", COVERED, BY, index, message_id)
            for index, message_id in zip(view.summarised, ids, strict=True)
        ),
    )


def _item(reading: Reading, index: int, layout: Layout, moved: bool = False) -> ViewItem:
    message = reading.history[index]
    shape = reading.shape(index, index < layout.micro_n)
    before = reading.estimate(message)
    after = before if shape.message is message else reading.estimate(shape.message)
    why = shape.why
    if moved and shape.fate == "kept":
        why = f"moved, {reading.kept[index]}"
    return ViewItem(shape.message, index, shape.fate, why, before, after)


def _made(reading: Reading, layout: Layout) -> Iterator[ViewItem]:
    """Yield the summary and the digest, where the layout has them."""
    means = reading.given.means
    if layout.cache is not None:
        ref = last_reference(reading, layout.prefix_n)
        message = summary_message(layout.cache.summary, ref, means.texts, means.recall)
        tokens = reading.estimate(message)
        yield ViewItem(message, None, "injected", "stands for what is summarised", 0, tokens,
                       "summary")  # fmt: skip
    span = [i for i in range(layout.prefix_n, layout.drop_n) if i not in reading.kept]
    if span:
        message = _digest(reading, layout, span)
        tokens = reading.estimate(message)
        yield ViewItem(message, None, "injected", "says what was left out", 0, tokens, "digest")


def _digest(reading: Reading, layout: Layout, span: list[int]) -> Message:
    means, limits = reading.given.means, reading.limits
    first, last = layout.prefix_n, layout.drop_n
    most = limits.facts_max if layout.cache is None else limits.digest_max
    goal = first_user(reading.history)
    facts = means.facts.block(
        reading.history[first:last],
        reading.refs[first:last],
        most,
        goal - first if goal is not None and first <= goal < last else None,
    )
    raw = sum(means.sizes.message(reading.history[i]) for i in span)
    refs = [reading.refs[i] for i in span if reading.refs[i] is not None] or [None]
    return digest_message(
        (refs[0], refs[-1]), len(span), raw, facts.text, means.texts, means.recall
    )


def last_reference(reading: Reading, prefix_n: int) -> int | None:
    """Return the reference of the last message a summary of this length stands for."""
    refs = reading.refs[:prefix_n]
    return next((ref for ref in reversed(refs) if ref is not None), None)
