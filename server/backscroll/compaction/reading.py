"""A history read once for one call: its groups, references, hashes, and how each message may go."""

from __future__ import annotations

import copy
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from backscroll.compaction.budget import Asked, Budget, make_budget
from backscroll.compaction.canon_forms import prefix_hashes, references
from backscroll.compaction.facts import FactReader
from backscroll.compaction.groups import (
    Group,
    GroupFinder,
    always_kept,
    newest_user_messages,
)
from backscroll.compaction.memo import Memo
from backscroll.compaction.micro import LEVEL_MIN, Shape, Shaper
from backscroll.compaction.reasons import Reason
from backscroll.compaction.recalled import pieces_of, recalled_message
from backscroll.compaction.settings import Limits, Settings, limits
from backscroll.compaction.store import EMPTY, CompactionEntry
from backscroll.compaction.stored_summary import as_sent, is_stored_summary
from backscroll.compaction.texts import CompactionTexts
from backscroll.compaction.tokens import Sizes
from backscroll.kernel.content import FilePart
from backscroll.kernel.message import Message, Role
from backscroll.kernel.request import Claim


@dataclass(frozen=True, slots=True)
class Means:
    """The pure functions with a memory that planning uses."""

    sizes: Sizes
    shaper: Shaper
    facts: FactReader
    texts: CompactionTexts = field(default_factory=CompactionTexts)
    recall: bool = False
    groups: GroupFinder = field(default_factory=GroupFinder)
    covered: Memo[tuple[Claim, ...]] = field(default_factory=lambda: Memo(16))


@dataclass(frozen=True, slots=True)
class PlanInput:
    """All that a plan depends on.

    `summariser_window` is what one request to the summariser may hold. `withheld` says why no
    summary may be made in this call. `goal_ratio` and `ceiling` lower the trigger of this call: to
    a share of the budget, and to a number of tokens. `counted` is what the provider counted for the
    request as it was planned before; the ratio follows from it. `manual` is for a summary that
    somebody asked for, whatever the size.
    """

    history: tuple[Message, ...]
    asked: Asked
    means: Means
    settings: Settings = field(default_factory=Settings)
    entry: CompactionEntry = EMPTY
    ratio: float = 1.0
    learned: int | None = None
    pins: frozenset[str] = frozenset()
    pending: frozenset[str] = frozenset()
    summariser_window: int | None = None
    withheld: Reason | None = None
    goal_ratio: float | None = None
    ceiling: int | None = None
    counted: int | None = None
    focus: str = ""
    manual: bool = False


class Reading:
    """What is known of a history before anything is decided about it."""

    def __init__(self, given: PlanInput) -> None:
        self.given = given
        self.history: Sequence[Message] = given.history
        self.budget: Budget = make_budget(
            given.asked, given.settings, given.means.sizes, given.ratio, given.learned
        )
        self.limits: Limits = limits(given.settings, self.budget.size_base, self.budget.available)
        self.groups: tuple[Group, ...] = given.means.groups.find(given.history, given.pending)
        self.kept: Mapping[int, str] = always_kept(given.history, self.groups, given.pins)
        self.refs: tuple[int | None, ...] = references(given.history)
        self.hashes: tuple[str, ...] = prefix_hashes(given.history, given.means.sizes.digests)
        self.newest_users: tuple[int, ...] = newest_user_messages(given.history)
        self.pinned = frozenset(i for i, why in self.kept.items() if why == "pinned")
        self.leading = _leading_systems(given.history)
        self.starts = [group.start for group in self.groups]
        self.stub_media = False
        self._edits: Mapping[int, Shape] = {}
        self._full: dict[int, Shape] = {}
        self._whole: int | None = None
        self._places: dict[str, int] | None = None
        self._whole_pins = self._pins_within_limit()

    def with_limits(self, changed: Limits, *, stub_media: bool = False) -> Reading:
        """Return the same history read with other sizes; older files as stubs if so wanted."""
        other = copy.copy(self)
        other.limits, other.stub_media, other._full = changed, stub_media, {}
        return other

    def with_edits(self, edits: Mapping[int, Shape]) -> Reading:
        """Return the same history with some messages sent in another shape."""
        other = copy.copy(self)
        other._edits = {**self._edits, **edits}
        return other

    def group_of(self, index: int) -> Group:
        """Return the group that holds a message."""
        return self.groups[bisect_right(self.starts, index) - 1]

    def estimate(self, message: Message) -> int:
        """Return the estimate of a message as it is sent."""
        return self.budget.estimate(self.given.means.sizes.message(message))

    def shape(self, index: int, before_mark: bool) -> Shape:
        """Return how a message is sent, before the watermark or behind it."""
        if index in self._edits:
            return self._edits[index]
        if is_stored_summary(self.history[index]):
            return Shape(as_sent(self.history[index]), "rewritten", "a record of earlier messages")
        if before_mark and index not in self.newest_users and index not in self.pinned:
            return self._shortened(index)
        return self._capped(index)

    def recalled(self, index: int) -> Message | None:
        """Return the text that was looked up by a tool message, to be sent behind its group."""
        if not self.given.means.recall:
            return None
        pieces = pieces_of(self.history[index])
        if not pieces:
            return None
        if self._places is None:
            self._places = {m.id: i for i, m in enumerate(self.history) if m.id is not None}
        texts = self.given.means.texts
        return recalled_message(pieces, self._places, self.history, self.refs, texts)

    @property
    def whole(self) -> int:
        """The estimate of the whole history."""
        if self._whole is None:
            self._whole = sum(map(self.estimate, self.history))
        return self._whole

    @property
    def pins_over_budget(self) -> bool:
        """Say whether some pinned groups are capped because all together are too large."""
        return len(self._whole_pins) < len(self._pinned_groups())

    def is_cut(self, index: int) -> bool:
        """Say whether a summary up to this place stands for whole groups, none of them waiting."""
        if not 0 < index < len(self.history) or index > self.groups[-1].start:
            return False
        group = self.group_of(index)
        waits = any(g.is_open and g.start < index for g in self.groups)
        return group.start == index and not waits and self.history[index].role is not Role.TOOL

    def _shortened(self, index: int) -> Shape:
        message, ref = self.history[index], self.refs[index]
        shape = self.given.means.shaper.shortened(message, ref, self.limits)
        return self._capped(index) if shape.fate == "kept" else shape

    def _capped(self, index: int) -> Shape:
        if self._is_tiny(self.history[index]):
            return Shape(self.history[index])
        if index not in self._full:
            group = self.group_of(index)
            span = range(group.start, group.end)
            self._full.update(zip(span, self._capped_group(group), strict=True))
        return self._full[index]

    def _capped_group(self, group: Group) -> Sequence[Shape]:
        span = slice(group.start, group.end)
        messages = self.history[span]
        if group.start in self._whole_pins or self._is_small(messages):
            return [Shape(message) for message in messages]
        shaper = self.given.means.shaper
        shapes = shaper.capped(messages, self.refs[span], self.limits)
        if not self.stub_media or group.end - group.start > 1 or not _has_media(messages[0]):
            return shapes
        if group.start in self.newest_users or messages[0].role is not Role.USER:
            return shapes
        return [shaper.shortened(messages[0], self.refs[group.start], self.limits)]

    def _is_tiny(self, message: Message) -> bool:
        """Say whether no cap goes so low, and no stub can apply, whatever is in its group."""
        least = min(self.limits.tool_cap, self.limits.group_cap, LEVEL_MIN)
        return self.given.means.sizes.message(message) <= least and not self.stub_media

    def _is_small(self, messages: Sequence[Message]) -> bool:
        """Say whether no cap and no stub can apply, as with most groups."""
        if self.stub_media:
            return False
        raw = self.given.means.sizes.message
        return sum(map(raw, messages)) <= min(self.limits.tool_cap, self.limits.group_cap)

    def _pinned_groups(self) -> list[Group]:
        return [group for group in self.groups if group.start in self.pinned]

    def _pins_within_limit(self) -> frozenset[int]:
        """Return the starts of the pinned groups that stay whole: the newest, within the limit."""
        whole: list[int] = []
        total = 0
        for group in reversed(self._pinned_groups()):
            total += sum(self.estimate(m) for m in self.history[group.start : group.end])
            if total > self.limits.pins_max:
                break
            whole.append(group.start)
        return frozenset(whole)


def _leading_systems(history: Sequence[Message]) -> int:
    for index, message in enumerate(history):
        if message.role is not Role.SYSTEM:
            return index
    return len(history)


def _has_media(message: Message) -> bool:
    content = message.for_model()
    return isinstance(content, tuple) and any(isinstance(part, FilePart) for part in content)
