"""A history that does not fit into one frame, as pages: each page is a closed run of its own.

The first page is a snapshot, which drops what is stale; the others append by their echoes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ag_ui import core as ag

from backscroll.agui.fit import ENVELOPE_BYTES
from backscroll.agui.messages import WireMessage
from backscroll.agui.snapshot import snapshot_of

_FRAME_OF_EVENT = 1024


def page_events(
    thread_id: str, messages: Sequence[WireMessage], max_frame: int
) -> Iterator[ag.BaseEvent]:
    """Yield the runs that bring a client the messages, oldest first, page by page."""
    room = max_frame - ENVELOPE_BYTES - _FRAME_OF_EVENT
    kinds = sorted({m.activity_type for m in messages if isinstance(m, ag.ActivityMessage)})
    for number, page in enumerate(_pages(messages, room), start=1):
        run_id = f"backscroll-page-{number}"
        started = ag.RunStartedEvent(
            thread_id=thread_id, run_id=run_id, protocol_version=ag.PROTOCOL_VERSION
        )
        if number == 1:
            yield started
            snapshot = snapshot_of(page, kinds=kinds)
            if snapshot is not None:
                yield snapshot
        else:
            started.input = ag.RunAgentInput(
                thread_id=thread_id, run_id=run_id, messages=page, tools=[], context=[]
            )
            yield started
        yield ag.RunFinishedEvent(
            thread_id=thread_id, run_id=run_id, outcome=ag.RunFinishedSuccessOutcome()
        )


def _pages(messages: Sequence[WireMessage], room: int) -> Iterator[list[WireMessage]]:
    """Yield the messages in groups that fit; one that is too large alone has a page alone."""
    page: list[WireMessage] = []
    used = 0
    for message in messages:
        size = len(message.model_dump_json(by_alias=True).encode()) + 1
        if page and used + size > room:
            yield page
            page, used = [], 0
        page.append(message)
        used += size
    if page:
        yield page
