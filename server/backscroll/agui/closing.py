"""The end of a run whose worker is gone: everything it left open is closed, then it ends."""

from __future__ import annotations

import json
from collections.abc import Sequence

from ag_ui import core as ag

from backscroll.agui.encode import RunIds
from backscroll.agui.live_run import LiveRun
from backscroll.agui.messages import Shown
from backscroll.agui.run_end import RunEnd
from backscroll.agui.snapshot import messages_snapshot
from backscroll.agui.terminal import Ending, ending_events
from backscroll.agui.wire import event_entry, event_json
from backscroll.kernel.message import Message
from backscroll.store.entry import NewEntry

_INCOMPLETE = {"backscroll": {"incomplete": True}}


def close_blocks(live: LiveRun, run: RunIds) -> list[NewEntry]:
    """Return the ends of all open reasoning, text and calls; `live` takes them in."""
    events: list[ag.BaseEvent] = [
        *(ag.ReasoningMessageEndEvent(message_id=span) for span in live.reasoning),
        *(ag.ReasoningEndEvent(message_id=span) for span in live.spans),
        *(
            ag.TextMessageEndEvent(message_id=message_id, metadata=_INCOMPLETE)
            for message_id in live.texts
        ),
        *(ag.ToolCallEndEvent(tool_call_id=call_id) for call_id in live.calls),
    ]
    for event in events:
        live.apply(json.loads(event_json(event, 0)))
    return [event_entry(event, run.run_id) for event in events]


def close_run(
    live: LiveRun,
    run: RunIds,
    end: RunEnd,
    history: Sequence[Message],
    results: Sequence[Message],
    *,
    is_corrected: bool,
    shown: Shown | None = None,
) -> list[NewEntry]:
    """Return what ends a run after its blocks: results, a correction, steps, the terminal event.

    `results` were made up for calls that had none. `is_corrected` asks for a snapshot of `history`,
    because clients were sent something else.
    """
    shown = shown or Shown()
    snapshot = None
    if is_corrected:
        stale = live.reasoning_sent()
        snapshot = messages_snapshot(history, shown=shown, stale_reasoning=stale)
    ending = Ending(end, results, snapshot, list(live.activities.values()), live.steps)
    events = ending_events(run.thread_id, run.run_id, ending, shown)
    return [event_entry(event, run.run_id) for event in events]
