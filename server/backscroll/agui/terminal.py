"""The one way a run ends: what is still to be said, in order, and the terminal event last."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ag_ui import core as ag

from backscroll.agui.live_run import Activity
from backscroll.agui.messages import Shown, result_content
from backscroll.agui.questions import interrupts
from backscroll.agui.run_end import RunEnd
from backscroll.kernel.message import Message
from backscroll.kernel.usage import Usage


@dataclass(frozen=True, slots=True)
class Ending:
    """What a run still has to say when everything in its lane is closed.

    `results` are stored results that no client was sent; `snapshot` puts right what clients saw
    otherwise; `steps` are open, innermost last; `usage` is by provider and model.
    """

    end: RunEnd
    results: Sequence[Message] = ()
    snapshot: ag.MessagesSnapshotEvent | None = None
    activities: Sequence[Activity] = ()
    steps: Sequence[str] = ()
    usage: Mapping[tuple[str, str], Usage] = field(default_factory=dict)


def ending_events(thread_id: str, run_id: str, ending: Ending, shown: Shown) -> list[ag.BaseEvent]:
    """Return the last events of a run; the terminal event is the last of them."""
    events: list[ag.BaseEvent] = [result_event(message, shown) for message in ending.results]
    if ending.snapshot is not None:
        events.append(ending.snapshot)
    events += (
        activity_event(after.id, after.kind, after.content)
        for before, after in zip(
            ending.activities, settled(ending.activities, ending.end), strict=True
        )
        if after is not before
    )
    events += (ag.StepFinishedEvent(step_name=name) for name in reversed(ending.steps))
    usage = _usage(ending.usage)
    if ending.end.status == "failed":
        return [*events, _error(ending.end, usage)]
    return [*events, _finished(thread_id, run_id, ending.end, usage)]


def settled(activities: Iterable[Activity], end: RunEnd) -> list[Activity]:
    """Return activities as they are after the end of their run; those that ended stay the same."""
    status = "cancelled" if end.status == "cancelled" else "failed"
    return [
        replace(activity, content={**activity.content, "status": status})
        if activity.content.get("status") == "running"
        else activity
        for activity in activities
    ]


def result_event(message: Message, shown: Shown) -> ag.BaseEvent:
    """Return the result of a call; an outcome other than success is named."""
    is_plain = message.outcome in (None, "ok", "replied")
    return ag.ToolCallResultEvent(
        message_id=message.id or "",
        tool_call_id=message.tool_call_id or "",
        content=result_content(message, shown),
        role="tool",
        metadata=None if is_plain else {"backscroll": {"outcome": message.outcome}},
    )


def activity_event(message_id: str, kind: str, content: Mapping[str, Any]) -> ag.BaseEvent:
    """Return an activity, stated whole."""
    return ag.ActivitySnapshotEvent(
        message_id=message_id, activity_type=kind, content=dict(content)
    )


def _error(end: RunEnd, usage: list[ag.TokenUsage] | None) -> ag.BaseEvent:
    about: dict[str, Any] = {"retryable": True} if end.is_retryable else {}
    if end.request_id:
        about["request_id"] = end.request_id
    return ag.RunErrorEvent(
        message=end.message,
        code=end.code,
        usage=usage,
        metadata={"backscroll": about} if about else None,
    )


def _finished(
    thread_id: str, run_id: str, end: RunEnd, usage: list[ag.TokenUsage] | None
) -> ag.BaseEvent:
    outcome: (
        ag.RunFinishedSuccessOutcome
        | ag.RunFinishedCancelledOutcome
        | ag.RunFinishedInterruptOutcome
    )
    if end.status == "cancelled":
        outcome = ag.RunFinishedCancelledOutcome()
    elif end.questions:
        outcome = interrupts(end.questions, end.expires_at)
    else:
        outcome = ag.RunFinishedSuccessOutcome(pending_tool_call_ids=list(end.pending) or None)
    return ag.RunFinishedEvent(
        thread_id=thread_id, run_id=run_id, result=end.result, outcome=outcome, usage=usage
    )


def _usage(used: Mapping[tuple[str, str], Usage]) -> list[ag.TokenUsage] | None:
    return [
        ag.TokenUsage(provider=provider or None, model=model or None, **known)
        for (provider, model), usage in used.items()
        if (known := usage.to_dict())
    ] or None
