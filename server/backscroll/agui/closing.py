"""The end of a run whose worker is gone: everything it left open is closed, then it fails."""

from __future__ import annotations

import json
from collections.abc import Sequence

from ag_ui import core as ag

from backscroll.agui.encode import RunIds
from backscroll.agui.live_run import LiveRun
from backscroll.agui.messages import Shown, result_content
from backscroll.agui.run_end import RunEnd
from backscroll.agui.snapshot import messages_snapshot
from backscroll.agui.wire import event_entry
from backscroll.kernel.message import Message
from backscroll.store.entry import NewEntry

_INCOMPLETE = {"backscroll": {"incomplete": True}}


def close_blocks(live: LiveRun, run: RunIds) -> list[NewEntry]:
    """Return the ends of all open reasoning, text and calls; `live` takes them in."""
    events: list[ag.BaseEvent] = []
    for span in live.reasoning:
        events.append(ag.ReasoningMessageEndEvent(message_id=span))
        events.append(ag.ReasoningEndEvent(message_id=span))
    events += (
        ag.TextMessageEndEvent(message_id=message_id, metadata=_INCOMPLETE)
        for message_id in live.texts
    )
    events += (ag.ToolCallEndEvent(tool_call_id=call_id) for call_id in live.calls)
    for event in events:
        live.apply(json.loads(event.model_dump_json(by_alias=True)))
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
    events: list[ag.BaseEvent] = [
        ag.ToolCallResultEvent(
            message_id=message.id or "",
            tool_call_id=message.tool_call_id or "",
            content=result_content(message, shown),
            role="tool",
            metadata={"backscroll": {"outcome": message.outcome}},
        )
        for message in results
    ]
    snapshot = messages_snapshot(history, shown=shown) if is_corrected else None
    events += [snapshot] if snapshot is not None else []
    events += (
        ag.ActivitySnapshotEvent(
            message_id=activity.id,
            activity_type=activity.kind,
            content={**activity.content, "status": "failed"},
        )
        for activity in live.activities.values()
        if activity.content.get("status") == "running"
    )
    events += (ag.StepFinishedEvent(step_name=name) for name in reversed(live.steps))
    about = {"backscroll": {"retryable": True}} if end.is_retryable else None
    events.append(ag.RunErrorEvent(message=end.message, code=end.code, metadata=about))
    return [event_entry(event, run.run_id) for event in events]
