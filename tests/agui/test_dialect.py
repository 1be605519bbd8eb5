"""Frames of the three ways to read a thread."""

from __future__ import annotations

import json

import pytest
from ag_ui import core as ag
from agui_client import Client
from agui_stories import EPOCH, Log, encoder
from backscroll.agui.cursor import Cursor
from backscroll.agui.dialect import Dialect, DialectName
from backscroll.agui.join import Prelude
from backscroll.agui.messages import echo
from backscroll.agui.run_end import CANCELLED
from backscroll.agui.wire import event_entry
from backscroll.kernel.message import user
from backscroll.store.entry import Entry

PRELUDE = Prelude("t", Cursor(7, EPOCH), ('{"type":"A"}', '{"type":"B"}'))


def entry(event: ag.BaseEvent | None = None) -> Entry:
    """Return the entry of an event."""
    log = Log()
    log.append([event_entry(event or ag.StepStartedEvent(step_name="iteration-1"), "r1")])
    return log.entries[0]


def dialect(name: DialectName, is_older: bool = False, thread_id: str = "t") -> Dialect:
    """Return a dialect of thread t."""
    return Dialect(name, thread_id, EPOCH, is_older)


def test_bare_frames_are_events() -> None:
    """Nothing but the event object."""
    found = entry()

    assert dialect("bare").frame(found) == found.body.decode()
    assert dialect("bare").prelude(PRELUDE) == list(PRELUDE.texts)


def test_durable_frames_have_an_envelope() -> None:
    """Cursor, thread and event; no member `type`."""
    found = entry()

    frame = json.loads(dialect("durable", thread_id='t"1').frame(found))

    chunk = json.loads(found.body)
    assert frame == {"id": f"1.{EPOCH}", "threadId": 't"1', "chunk": chunk}


def test_a_durable_prelude_ends_with_its_cursor() -> None:
    """Synthetic events are bare, the last one stands in an envelope with the cut."""
    first, last = dialect("durable").prelude(PRELUDE)

    assert first == '{"type":"A"}'
    assert json.loads(last) == {"id": f"7.{EPOCH}", "threadId": "t", "chunk": {"type": "B"}}


def test_sse_has_lines() -> None:
    """An id before what is logged, one data line, an empty line; line feeds only."""
    found = entry()
    sse = dialect("sse")

    assert sse.frame(found) == f"id: 1.{EPOCH}\ndata: {found.body.decode()}\n\n"
    assert sse.prelude(PRELUDE) == [
        'data: {"type":"A"}\n\n',
        f'id: 7.{EPOCH}\ndata: {{"type":"B"}}\n\n',
    ]
    assert sse.synthetic('{"type":"A"}') == 'data: {"type":"A"}\n\n'


@pytest.mark.parametrize("name", ["bare", "durable", "sse"])
def test_older_peers_get_their_own_text(name: DialectName) -> None:
    """From the same entry, under a form of its own."""
    log = Log()
    log.append(encoder().close(CANCELLED))
    new, old = dialect(name), dialect(name, is_older=True)

    assert '"outcome"' in new.frame(log.entries[0])
    assert '"outcome"' not in old.frame(log.entries[0])
    text = log.entries[0].body.decode()
    assert '"outcome"' not in old.synthetic(text)
    assert '"outcome"' not in old.prelude(Prelude("t", Cursor(1, EPOCH), (text,)))[0]


def test_forms_are_shared_only_where_texts_are_equal() -> None:
    """Dialect, epoch and class of the peer make the form."""
    forms = {
        dialect("bare").form,
        dialect("durable").form,
        dialect("sse").form,
        dialect("sse", is_older=True).form,
        Dialect("sse", "t", "aaaa").form,
    }

    assert len(forms) == 5 and dialect("bare").form == dialect("bare").form


def test_large_frames_are_fitted() -> None:
    """Shortened where that helps, None where only a resync does."""
    result = ag.ToolCallResultEvent(message_id="t1", tool_call_id="c", content="x" * 300_000)
    delta = ag.TextMessageContentEvent(message_id="m", delta="x" * 300_000)
    durable = dialect("durable")

    frames = durable.fitted(entry(result), 100_000)

    assert frames is not None and len(frames[0]) <= 100_000
    assert [json.loads(frame)["id"] for frame in frames] == [f"1.{EPOCH}"]
    assert durable.fitted(entry(delta), 100_000) is None
    assert durable.fitted(entry(), 100_000) == [durable.frame(entry())]


@pytest.mark.parametrize("is_older", [False, True])
def test_an_echo_that_does_not_fit_comes_in_pages(is_older: bool) -> None:
    """Closed runs without a cursor, then the start of the run, which echoes nothing more."""
    told = [user("x" * 50_000, f"u{n}") for n in range(5)]
    started = ag.RunStartedEvent(thread_id="t", run_id="r", input=echo("t", "r", told))

    frames = dialect("durable", is_older=is_older).fitted(entry(started), 70_000) or []

    values = [json.loads(frame) for frame in frames]
    assert ["id" in value for value in values] == [False] * 10 + [True]
    events = [value.get("chunk", value) for value in values]
    assert "input" not in events[-1] and events[-1]["runId"] == "r"
    assert [m["id"] for m in Client().apply(*events).messages] == [f"u{n}" for n in range(5)]
    assert all(len(frame) <= 70_000 for frame in frames)
