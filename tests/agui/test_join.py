"""Joining a thread: the prelude and the tail together are the whole story."""

from __future__ import annotations

import json
from random import Random
from typing import Any

from agui_checker import assert_valid
from agui_client import Client
from agui_stories import (
    EPOCH,
    TIME,
    Log,
    Story,
    args,
    encoder,
    folded,
    iteration,
    opened,
    played,
    said,
    stories,
    thought,
)
from backscroll.agui.cursor import Cursor
from backscroll.agui.join import (
    Cut,
    LastRun,
    Prelude,
    Visible,
    ended_prelude,
    idle_prelude,
    live_prelude,
    opening_pair,
)
from backscroll.agui.live_run import LiveRun
from backscroll.agui.run_end import failed_with
from backscroll.kernel.content import FilePart
from backscroll.kernel.message import assistant, user
from backscroll.kernel.turn import PauseItem
from hypothesis import given, settings
from hypothesis import strategies as st


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


CUT = Cut(Cursor(57, EPOCH), TIME)


def events(prelude: Prelude) -> list[dict[str, Any]]:
    """Return the events of a prelude, without their timestamps."""
    values = [json.loads(text) for text in prelude.texts]
    assert {value.pop("timestamp") for value in values} == {TIME}
    return values


def test_an_unknown_thread_is_empty_and_well_formed() -> None:
    """protocol-11: RUN_STARTED and RUN_FINISHED with an id of ours, no snapshot."""
    prelude = idle_prelude(Visible("t"), CUT)

    assert_valid(prelude.texts)
    assert [event["type"] for event in events(prelude)] == ["RUN_STARTED", "RUN_FINISHED"]
    assert events(prelude)[0]["runId"] == "backscroll-join" and prelude.cursor == CUT.cursor


def test_an_idle_thread_shows_its_history() -> None:
    """protocol-11: one snapshot with all messages, the state, and the last run's id."""
    history = [user("q", "u1"), assistant("a", id="a1"), user("r", "u2"), assistant("b", id="a2")]
    visible = Visible("t", tuple(history), state={"todos": []})

    started, snapshot, state, finished = events(idle_prelude(visible, CUT, LastRun("r7")))

    assert started["runId"] == finished["runId"] == "r7"
    assert [m["id"] for m in snapshot["messages"]] == ["u1", "a1", "u2", "a2"]
    assert state["snapshot"] == {"todos": []} and finished["outcome"] == {"type": "success"}


def test_opening_a_page_raises_no_error() -> None:
    """A failed or cancelled last run is told in the metadata; pending calls are named."""
    failed = events(idle_prelude(Visible("t"), CUT, LastRun("r7", "error", "provider")))[-1]
    stopped = events(idle_prelude(Visible("t"), CUT, LastRun("r7", "cancelled"), ["c1"]))[-1]

    assert failed["outcome"] == {"type": "success"}
    assert failed["metadata"]["backscroll"]["last_run"] == {"status": "error", "code": "provider"}
    assert stopped["metadata"]["backscroll"]["last_run"] == {"status": "cancelled"}
    assert stopped["outcome"]["pendingToolCallIds"] == ["c1"]


def test_what_is_open_is_restated_whole() -> None:
    """The step, then the text since its start; closed reasoning is in the snapshot."""
    live = folded(played([iteration(0), *thought("m", "Hm"), *said("m", "Let ", "me")]))

    told = events(live_prelude(Visible("t", (user("q", "u1"),)), CUT, live))

    assert [event["type"] for event in told] == [
        "RUN_STARTED",
        "MESSAGES_SNAPSHOT",
        "STEP_STARTED",
        "TEXT_MESSAGE_START",
        "TEXT_MESSAGE_CONTENT",
    ]
    assert told[-1]["delta"] == "Let me" and told[1]["messages"][-1]["content"] == "Hm"


def test_open_calls_and_predictions_are_restated() -> None:
    """Each open call with its arguments so far, after the run's prediction."""
    by = encoder(timeline="full")
    entries = [*by.start(), *by.custom("PredictState", [1])]
    steps = [opened("m", "c1"), opened("m", "c2"), args("m", "c1", "{")]
    live = folded([*entries, *(e for step in steps for e in by.feed(step))])

    told = events(live_prelude(Visible("t"), CUT, live))

    assert [event["type"] for event in told][1:] == [
        "CUSTOM",
        "TOOL_CALL_START",
        "TOOL_CALL_ARGS",
        "TOOL_CALL_START",
    ]


def test_a_run_that_has_ended_shows_its_own_end() -> None:
    """RUN_ERROR included, with the time of the cut."""
    log = Log()
    log.append(encoder("r3").close(failed_with("run_timeout")))
    terminal = log.entries[-1].body

    told = events(ended_prelude(Visible("t", (user("q", "u1"),)), CUT, "r3", terminal))

    assert [event["type"] for event in told] == ["RUN_STARTED", "MESSAGES_SNAPSHOT", "RUN_ERROR"]
    assert told[0]["runId"] == "r3" and told[-1]["code"] == "run_timeout"


LONG = tuple(user("x" * 30_000, f"u{n}") for n in range(8))


def test_a_long_history_is_paged() -> None:
    """Closed runs before the prelude, which then has no snapshot."""
    prelude = idle_prelude(Visible("t", LONG), CUT, LastRun("r7"), max_frame=65_536)

    assert_valid(prelude.texts)
    assert all(len(text) < 65_536 for text in prelude.texts)
    assert events(prelude)[-2]["runId"] == events(prelude)[-1]["runId"] == "r7"
    assert len(Client().apply(*prelude.texts).messages) == 8


def test_a_shortened_history_is_not_paged() -> None:
    """Where shorter texts and media are enough, there is one snapshot."""
    photo = user((FilePart("image/png", data="A" * 200_000),), "u1")

    told = events(idle_prelude(Visible("t", (photo,)), CUT, max_frame=65_536))

    assert told[1]["messages"][0]["content"][0]["text"] == "[image, image/png, 150 kB]"


def test_restated_text_fits_the_reader() -> None:
    """A long open text is restated in several pieces."""
    live = folded(played(said("m", "\x00" * 50_000)))

    prelude = live_prelude(Visible("t"), CUT, live, max_frame=65_536)

    assert all(len(text) < 65_536 for text in prelude.texts)
    assert Client().apply(*prelude.texts).messages[0]["content"] == "\x00" * 50_000


def test_the_opening_pair_puts_a_client_right() -> None:
    """First what it holds, then everything: the new question ends below what it had missed."""
    history = (user("q", "u1"), assistant("a", id="a1"), user("r", "u2"))
    client = Client([{"id": "u2", "role": "user", "content": "r"}])

    pair = opening_pair(Visible("t", history), 1, CUT)

    assert pair.before == () and len(pair.after) == 2
    assert [m["id"] for m in client.apply(*pair.after).messages] == ["u1", "a1", "u2"]


def test_an_opening_pair_may_be_paged() -> None:
    """Pages come before the run starts."""
    pair = opening_pair(Visible("t", LONG), 2, CUT, 65_536)

    assert pair.after == ()
    assert_valid(pair.before)
    assert len(Client().apply(*pair.before).messages) == 8


@given(stories(), st.integers(0, 5), st.randoms(use_true_random=False))
@settings(max_examples=60, deadline=None)
def test_stale_and_foreign_clients_come_right(story: Story, at: int, random: Random) -> None:
    """reconnect-03: a client that holds something else ends with what all others hold.

    Only the reasoning of a dropped reply may stay: a snapshot that knows of none removes none.
    """
    log = story.told()
    watched = Client().apply(*log.events()).shown()
    seq = min(log.head, 2 + at * log.head // 6)
    held = [
        {"id": "x1", "role": "assistant", "content": "foreign"},
        *Client().apply(*(joined(log, max(2, seq // 2)).texts)).messages,
    ]
    random.shuffle(held)

    client = Client(held).apply(*joined(log, seq).texts, *log.events(seq))

    held = [m for m in client.shown() if m in watched or m["role"] != "reasoning"]
    assert sorted(held, key=str) == sorted(watched, key=str)


def test_an_idle_thread_with_open_questions() -> None:
    """They end the prelude, also when the last run failed."""
    item = PauseItem("c1", "approval", "pay", {}, "why", ("approve",))
    last = LastRun("r7", "error", "provider")

    finished = events(idle_prelude(Visible("t"), CUT, last, ["c2"], questions=[item]))[-1]

    assert [i["id"] for i in finished["outcome"]["interrupts"]] == ["c1"]
    assert finished["metadata"]["backscroll"]["last_run"]["status"] == "error"
