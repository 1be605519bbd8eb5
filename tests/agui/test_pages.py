"""Histories that do not fit into one frame."""

from __future__ import annotations

import json

from ag_ui import core as ag
from agui_checker import assert_valid
from agui_client import Client
from backscroll.agui.live_run import Activity
from backscroll.agui.pages import page_events
from backscroll.agui.snapshot import visible_messages
from backscroll.agui.wire import event_json
from backscroll.kernel.message import user

LIMIT = 65_536


def paged(count: int, size: int = 20_000, activities: tuple[Activity, ...] = ()) -> list[str]:
    """Return the pages of a history of equal messages."""
    history = [user("x" * size, f"u{n}") for n in range(count)]
    messages = visible_messages(history, activities=activities)
    return [event_json(event, 7) for event in page_events("t", messages, LIMIT)]


def test_each_page_is_a_closed_run() -> None:
    """The first is a snapshot, the others are echoes; together they are the history."""
    texts = paged(7)

    assert_valid(texts)
    runs = [json.loads(text).get("runId") for text in texts]
    assert runs[0] == "backscroll-page-1" and runs[-1] == "backscroll-page-3"
    assert [m["id"] for m in Client().apply(*texts).messages] == [f"u{n}" for n in range(7)]


def test_every_page_fits() -> None:
    """No event is larger than the reader takes."""
    assert all(len(text.encode()) <= LIMIT for text in paged(20))


def test_the_first_page_drops_what_is_stale() -> None:
    """A client that holds something else ends with the history in its order."""
    client = Client([{"id": "x", "role": "user", "content": "stale"}])

    client.apply(*paged(5))

    assert [m["id"] for m in client.messages] == [f"u{n}" for n in range(5)]


def test_a_message_that_is_too_large_has_a_page_alone() -> None:
    """It cannot be made smaller here."""
    texts = paged(2, 80_000)

    assert len([text for text in texts if "RUN_STARTED" in text]) == 2


def test_activities_of_all_pages_are_replaced_by_the_first() -> None:
    """The first page names their types, whichever page they stand on."""
    texts = paged(5, activities=(Activity("cmp_1", "k", {}, after="u4"),))

    snapshot = json.loads(texts[1])
    assert snapshot["metadata"] == {"@ag-ui/client": {"authoritativeActivityTypes": ["k"]}}
    assert Client().apply(*texts).messages[-1]["id"] == "cmp_1"


def test_nothing_has_no_pages() -> None:
    """An empty history needs none."""
    assert list(page_events("t", [], LIMIT)) == [] and ag.PROTOCOL_VERSION == "1.0"
