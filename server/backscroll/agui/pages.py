"""A history that does not fit into one frame, as pages: each page is a closed run of its own.

The first page is a snapshot, which drops what is stale; the others append by their echoes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ag_ui import core as ag

from backscroll.agui.fit import ENVELOPE_BYTES, fit_message, message_bytes
from backscroll.agui.messages import WireMessage
from backscroll.agui.snapshot import snapshot_of
from backscroll.kernel.canon import canonical_json

_FRAME_OF_EVENT = 512


def page_events(
    thread_id: str, messages: Sequence[WireMessage], max_frame: int
) -> Iterator[ag.BaseEvent]:
    """Yield the runs that bring a client the messages, oldest first, page by page."""
    kinds = sorted({m.activity_type for m in messages if isinstance(m, ag.ActivityMessage)})
    for number, page in enumerate(_pages(messages, _room(thread_id, max_frame)), start=1):
        if number > 1:
            yield from _page(thread_id, number, page)
            continue
        started, finished = _page(thread_id, number, ())
        snapshot = snapshot_of(page, kinds=kinds)
        yield from (started, finished) if snapshot is None else (started, snapshot, finished)


def echo_pages(
    thread_id: str, messages: Sequence[WireMessage], max_frame: int
) -> Iterator[ag.BaseEvent]:
    """Yield the runs that add messages to what a client holds, where one echo would not fit."""
    for number, page in enumerate(_pages(messages, _room(thread_id, max_frame)), start=1):
        yield from _page(thread_id, number, page)


def _page(
    thread_id: str, number: int, echoed: Sequence[WireMessage]
) -> tuple[ag.RunStartedEvent, ag.RunFinishedEvent]:
    run_id = f"backscroll-page-{number}"
    started = ag.RunStartedEvent(
        thread_id=thread_id, run_id=run_id, protocol_version=ag.PROTOCOL_VERSION
    )
    if echoed:
        started.input = ag.RunAgentInput(
            thread_id=thread_id, run_id=run_id, messages=list(echoed), tools=[], context=[]
        )
    finished = ag.RunFinishedEvent(
        thread_id=thread_id, run_id=run_id, outcome=ag.RunFinishedSuccessOutcome()
    )
    return started, finished


def _room(thread_id: str, max_frame: int) -> int:
    """Return how many bytes of messages a page may hold: an echo names the thread twice."""
    named = 2 * len(canonical_json(thread_id).encode())
    return max_frame - ENVELOPE_BYTES - _FRAME_OF_EVENT - named


def _pages(messages: Sequence[WireMessage], room: int) -> Iterator[list[WireMessage]]:
    """Yield the messages in groups that fit, each shortened until it fits alone."""
    page: list[WireMessage] = []
    used = 0
    for whole in messages:
        message = fit_message(whole, room)
        size = message_bytes(message)
        if page and used + size > room:
            yield page
            page, used = [], 0
        page.append(message)
        used += size
    if page:
        yield page
