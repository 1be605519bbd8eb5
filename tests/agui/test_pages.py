"""Histories that do not fit into one frame."""

from __future__ import annotations

import json

from ag_ui import core as ag
from agui_checker import assert_valid
from agui_client import Client
from backscroll.agui.live_run import Activity
from backscroll.agui.messages import Shown, to_wire_messages
from backscroll.agui.pages import echo_pages, page_events
from backscroll.agui.snapshot import visible_messages
from backscroll.agui.wire import event_json
from backscroll.kernel.message import Message, assistant, tool_call, tool_result, user
from hypothesis import given, settings
from hypothesis import strategies as st

LIMIT = 65_536


def texts_of(history: list[Message], activities: tuple[Activity, ...] = ()) -> list[str]:
    """Return the pages of a history."""
    messages = visible_messages(history, activities=activities)
    return [event_json(event, 7) for event in page_events("t", messages, LIMIT)]


def paged(count: int, size: int = 20_000, activities: tuple[Activity, ...] = ()) -> list[str]:
    """Return the pages of a history of equal messages."""
    return texts_of([user("x" * size, f"u{n}") for n in range(count)], activities)


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


def test_a_message_that_is_too_large_is_shortened() -> None:
    """Its texts first, the arguments of its calls last; it stays as long as it can."""
    call = tool_call("c1", "add", {"a": "x" * 70_000})
    history = [user("你" * 80_000, "u1"), assistant("y" * 9_000, [call], id="a1")]
    client = Client().apply(*texts_of(history))

    first, second = client.messages
    assert 10_000 < len(first["content"]) <= 16_384 and "left out" in first["content"]
    assert len(second["content"]) == 9_000
    assert "left out" in second["toolCalls"][0]["function"]["arguments"]


PIECES = st.sampled_from(["x", "你", "\x01", '"', "🙂"])
LONG = st.builds(lambda piece, count: piece * count, PIECES, st.integers(0, 80_000))
CALLS = st.lists(LONG, max_size=4).map(
    lambda texts: [tool_call(f"c{n}", "add", {"a": text}) for n, text in enumerate(texts)]
)
MESSAGES = st.lists(
    st.one_of(
        st.builds(user, LONG),
        st.builds(lambda text, calls: assistant(text or "-", calls), LONG, CALLS),
        st.builds(lambda text: tool_result("c0", "add", text), LONG),
    ),
    max_size=6,
)


@settings(max_examples=30, deadline=None)
@given(MESSAGES, st.sampled_from([LIMIT, 200_000, 1_000_000]), st.sampled_from(["t", "🙂" * 256]))
def test_every_page_fits_whatever_is_in_it(
    messages: list[Message], limit: int, thread: str
) -> None:
    """Long texts, broad characters and long arguments, in pages of a history or an echo."""
    history = [message.replace(id=f"m{n}") for n, message in enumerate(messages)]
    whole = [wire for message in history for wire in to_wire_messages(message, Shown())]
    room = limit - len(thread.encode()) - 256

    for paged in (page_events, echo_pages):
        told = [event_json(event, 7) for event in paged(thread, whole, limit)]
        assert all(len(text.encode()) <= room for text in told)
        echoed = Client().apply(*told).messages
        assert [m["id"] for m in echoed] == [m.id for m in whole]


def test_activities_of_all_pages_are_replaced_by_the_first() -> None:
    """The first page names their types, whichever page they stand on."""
    texts = paged(5, activities=(Activity("cmp_1", "k", {}, after="u4"),))

    snapshot = json.loads(texts[1])
    assert snapshot["metadata"] == {"@ag-ui/client": {"authoritativeActivityTypes": ["k"]}}
    assert Client().apply(*texts).messages[-1]["id"] == "cmp_1"


def test_nothing_has_no_pages() -> None:
    """An empty history needs none."""
    assert list(page_events("t", [], LIMIT)) == [] and ag.PROTOCOL_VERSION == "1.0"
