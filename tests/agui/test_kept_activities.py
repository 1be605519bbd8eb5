"""Activities as they are kept with their thread."""

from __future__ import annotations

from backscroll.agui.kept_activities import LARGEST, read_activities, write_activities
from backscroll.agui.live_run import Activity


def test_they_come_back_where_they_appeared() -> None:
    """Those without a place get the one that is given; those whose place is gone are left out."""
    wanted = [
        Activity("c1", "k", {"status": "done", "x": "会话"}, "u1"),
        Activity("c2", "k", {"status": "done"}),
        Activity("c3", "k", {}, "gone"),
    ]

    found = read_activities(write_activities(wanted, "u2"), {"u1", "u2"})

    assert found == (wanted[0], Activity("c2", "k", {"status": "done"}, "u2"))


def test_what_is_too_large_loses_its_text_or_is_left_out() -> None:
    """The numbers of a long summary stay."""
    large = "x" * LARGEST
    kept = write_activities(
        [
            Activity("c1", "k", {"status": "done", "text": large}, "u1"),
            Activity("c2", "k", {"status": large}, "u1"),
        ],
        None,
    )

    assert read_activities(kept, {"u1"}) == (Activity("c1", "k", {"status": "done"}, "u1"),)
