"""The steps that make a view smaller without a summary: shorten, drop, trim."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from backscroll.compaction.micro import Shape, watermark, watermark_pays
from backscroll.compaction.reading import Reading
from backscroll.compaction.view import View, render
from backscroll.kernel.message import Role

FORCED_KEEP = 1
FORCED_CAP = 1_000
TRIM_KEEPS = (4, 2, 1, 0)
CUT_LEAST = 120
CUT_SLACK = 40
DIGEST_TRIES = 8


def move_micro(reading: Reading, view: View) -> View:
    """Move the watermark to its candidate if that pays, else return the view as it is."""
    target = watermark(reading.history, reading.groups, reading.given.settings.keep_tool_groups)
    if target <= view.layout.micro_n:
        return view
    moved = render(reading, view.layout.moved(micro_n=target))
    return moved if watermark_pays(view.tokens, moved.tokens, reading.limits) else view


def force_micro(reading: Reading, view: View) -> tuple[Reading, View]:
    """Shorten all but the newest tool group, cap results hard, and send older files as stubs."""
    caps = reading.limits.replace(tool_cap=min(reading.limits.tool_cap, FORCED_CAP))
    harder = reading.with_limits(caps, stub_media=True)
    target = watermark(reading.history, reading.groups, FORCED_KEEP)
    layout = view.layout.moved(micro_n=max(view.layout.micro_n, target))
    return harder, render(harder, layout)


def drop(reading: Reading, view: View, goal: int) -> View:
    """Leave whole groups out from the front, never kept ones, until the view is at the goal."""
    digest, last_n, step = 0, 0, 0
    for _ in range(DIGEST_TRIES):
        drop_n = _drop_to(reading, view, goal - digest)
        if drop_n <= view.layout.start:
            return view
        dropped = render(reading, view.layout.moved(drop_n=drop_n))
        if dropped.tokens <= goal or _drop_to(reading, view, 0) <= drop_n:
            return dropped
        # The digest grows with what it stands for, so a little more must go than was reckoned; and
        # more again, where that little was not yet a group.
        step = max(dropped.tokens - goal, 2 * step if drop_n == last_n else 0)
        digest, last_n = digest + step, drop_n
    return dropped


def _drop_to(reading: Reading, view: View, goal: int) -> int:
    """Return how far to drop so that the rest, without a digest, is at the goal."""
    sizes = {item.index: item.after for item in view.items if item.index is not None}
    left = view.tokens - sum(item.after for item in view.items if item.what == "digest")
    drop_n = view.layout.start
    for group in reading.groups:
        if left <= goal:
            break
        if group.start < view.layout.start:
            continue
        free = [sizes[i] for i in range(group.start, group.end) if i not in reading.kept]
        if free:
            left -= sum(free)
            drop_n = group.end
    return drop_n


def trim(reading: Reading, view: View, room: int) -> tuple[Reading, View]:
    """Make a view fit the hard limit: smaller caps, then the largest messages cut."""
    cap = reading.limits.tool_cap
    for keep in TRIM_KEEPS:
        cap = max(cap // 2, CUT_LEAST)
        group_cap = min(reading.limits.group_cap, max(4 * cap, CUT_LEAST))
        caps = reading.limits.replace(tool_cap=cap, group_cap=group_cap)
        reading = reading.with_limits(caps, stub_media=reading.stub_media)
        target = watermark(reading.history, reading.groups, keep)
        layout = view.layout.moved(micro_n=max(view.layout.micro_n, target))
        view = render(reading, layout)
        if view.tokens <= room:
            return reading, view
    for matches in _CUT_ORDER:
        reading, view = _cut_largest(reading, view, room, matches)
        if view.tokens <= room:
            break
    return reading, view


@dataclass(frozen=True, slots=True)
class Contributor:
    """One of the largest messages of a view."""

    ref: int | None
    role: str
    tokens: int


def contributors(reading: Reading, view: View, most: int = 5) -> list[Contributor]:
    """Return the largest messages of a view, for a warning."""
    largest = sorted(view.items, key=lambda item: -item.after)[:most]
    return [
        Contributor(
            reading.refs[item.index] if item.index is not None else None,
            item.what or item.message.role.value,
            item.after,
        )
        for item in largest
    ]


def _cut_largest(
    reading: Reading, view: View, room: int, matches: Callable[[Reading, int], bool]
) -> tuple[Reading, View]:
    """Cut messages of one kind, the largest first, until the view fits."""
    sizes = sorted(
        ((item.after, item.index) for item in view.items if item.index is not None),
        key=lambda pair: (-pair[0], pair[1]),
    )
    over = view.tokens - room
    for size, index in sizes:
        if over <= 0 or size <= CUT_LEAST:
            break
        if not matches(reading, index):
            continue
        message = reading.shape(index, index < view.layout.micro_n).message
        wanted = max(size - over - CUT_SLACK, CUT_LEAST)
        allowed = int(wanted / max(reading.budget.ratio, 0.1))
        shape = reading.given.means.shaper.cut(message, reading.refs[index], allowed)
        saved = size - reading.estimate(shape.message)
        if saved > 0:
            edit = Shape(shape.message, "truncated", "cut so that the request fits the window")
            reading = reading.with_edits({index: edit})
            over -= saved
    return reading, render(reading, view.layout)


def _is_result(reading: Reading, index: int) -> bool:
    return reading.history[index].role is Role.TOOL


def _is_older_user(reading: Reading, index: int) -> bool:
    return reading.history[index].role is Role.USER and index not in reading.newest_users


def _is_assistant_text(reading: Reading, index: int) -> bool:
    message = reading.history[index]
    return message.role is Role.ASSISTANT and message.blocks is None


def _is_newest_user(reading: Reading, index: int) -> bool:
    return index in reading.newest_users


_CUT_ORDER = (_is_result, _is_older_user, _is_assistant_text, _is_newest_user)


def changed_indexes(before: View, after: View) -> Iterator[int]:
    """Yield what of the history is sent otherwise, or no longer, in the second view."""
    was = {item.index: item.message for item in before.items if item.index is not None}
    now = {item.index: item.message for item in after.items if item.index is not None}
    for index, message in was.items():
        if index not in now or now[index] != message:
            yield index
