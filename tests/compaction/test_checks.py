"""The last look at a view."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import pytest
from backscroll.compaction.checks import violation
from backscroll.compaction.reading import Reading
from backscroll.compaction.view import Layout, View, ViewItem, render
from backscroll.kernel.message import Message, system
from compaction.histories import SIGNED, a, t, u
from compaction.planning import given, talk

HISTORY: list[Message] = [
    *talk(2),
    system("rules", "s1"),
    a(90, "I think", "c9").replace(blocks=SIGNED),
    t(91, "c9"),
    u(92, "and now?"),
]


def whole() -> tuple[Reading, View]:
    """Return a reading and a view with nothing wrong."""
    reading = Reading(given(HISTORY))
    return reading, render(reading, Layout())


def changed(view: View, at: int, change: Callable[[Message], Message]) -> View:
    """Return the view with one message changed behind its back."""
    items = list(view.items)
    items[at] = dataclasses.replace(items[at], message=change(items[at].message))
    return dataclasses.replace(view, items=tuple(items))


def without(view: View, *indexes: int) -> View:
    """Return the view without some messages."""
    kept = tuple(item for item in view.items if item.index not in indexes)
    return dataclasses.replace(view, items=kept)


def test_a_view_as_it_is_rendered_passes() -> None:
    """Also one that leaves out whole groups, and a system message inside a dropped group."""
    reading, view = whole()
    assert violation(reading, view) is None
    assert violation(reading, render(reading, Layout(None, 8, 8))) is None
    inside = [u(1), a(2, None, "c1"), system("s", "s1"), t(3, "c1"), u(4), a(5), u(6)]
    other = Reading(given(inside))
    assert violation(other, render(other, Layout(None, 0, 4))) is None


@pytest.mark.parametrize(
    ("break_it", "why"),
    [
        (lambda v: dataclasses.replace(v, items=v.items[::-1]), "out of order"),
        (lambda v: dataclasses.replace(v, items=(*v.items, v.items[0])), "out of order"),
        (lambda v: without(v, 8), "must be kept"),
        (lambda v: without(v, 11), "must be kept"),
        (lambda v: without(v, 2), "was split"),
        (lambda v: changed(v, 1, lambda m: m.replace(tool_calls=())), "lost its role"),
        (lambda v: changed(v, 2, lambda m: m.replace(tool_call_id="x")), "lost its role"),
        (lambda v: changed(v, 11, lambda m: m.replace(content="x")), "newest user message"),
        (lambda v: changed(v, 9, lambda m: m.replace(content="x")), "has blocks"),
    ],
)
def test_what_is_wrong_is_found(break_it: Callable[[View], View], why: str) -> None:
    """Order, what must be kept, whole groups, ids, word for word, bytes."""
    reading, view = whole()
    found = violation(reading, break_it(view))
    assert found is not None and why in found


def test_the_newest_user_message_may_be_cut_by_trimming() -> None:
    """Step 4 says so by its fate."""
    reading, view = whole()
    item = view.items[11]
    cut = ViewItem(u(92, "and"), item.index, "truncated", "cut", item.before, 2)
    assert violation(reading, dataclasses.replace(view, items=(*view.items[:11], cut))) is None
