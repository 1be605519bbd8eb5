"""Joining a thread: the prelude and the tail together are the whole story."""

from __future__ import annotations

from agui_checker import assert_valid
from agui_client import Client
from agui_stories import EPOCH, TIME, Log, Story, stories
from backscroll.agui.cursor import Cursor
from backscroll.agui.join import Cut, Prelude, Visible, idle_prelude, live_prelude
from backscroll.agui.live_run import LiveRun
from hypothesis import given, settings


def joined(log: Log, seq: int) -> Prelude:
    """Return the prelude of a log's live run at a cut."""
    cut = Cut(Cursor(seq, EPOCH), TIME + seq)
    live = LiveRun.of(log.entries[:seq])
    visible = Visible("t", log.messages(seq))
    if live.run_id and live.terminal is None:
        return live_prelude(visible, cut, live)
    return idle_prelude(visible, cut)


@given(stories())
@settings(max_examples=150, deadline=None)
def test_prelude_and_tail_give_the_same_for_every_cut(story: Story) -> None:
    """reconnect-03: whenever a client joins a live run, it ends with what all others hold."""
    log = story.told()
    watched = Client().apply(*log.events()).shown()

    for seq in range(2, log.head + 1):
        prelude = joined(log, seq)
        assert Client().apply(*prelude.texts, *log.events(seq)).shown() == watched


@given(stories())
@settings(max_examples=50, deadline=None)
def test_every_joined_stream_is_valid(story: Story) -> None:
    """A prelude followed by its tail passes the checker, whatever the cut."""
    log = story.told()

    for seq in range(2, log.head):
        assert_valid([*joined(log, seq).texts, *log.events(seq)])
