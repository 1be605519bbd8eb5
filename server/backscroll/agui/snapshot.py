"""The visible history as one MESSAGES_SNAPSHOT: what a client should hold at some place."""

from __future__ import annotations

from collections.abc import Sequence

from ag_ui import core as ag

from backscroll.agui.ids import reasoning_id
from backscroll.agui.live_run import Activity, LiveRun
from backscroll.agui.messages import Shown, WireMessage, to_wire_messages
from backscroll.conversation.history import pair
from backscroll.kernel.message import Message


def visible_messages(
    history: Sequence[Message],
    live: LiveRun | None = None,
    *,
    shown: Shown | None = None,
    activities: Sequence[Activity] = (),
) -> list[WireMessage]:
    """Return the stored history with what a live run has sent whole, oldest first.

    The results of one batch come in call order, reasoning before its message, an activity behind
    the message it first appeared after.
    """
    shown = shown or Shown()
    unstored = live.unstored(history) if live else []
    ordered = in_call_order([*history, *unstored])
    # A run that has ended since the cut may have its own both ways.
    own = {a.id: a for a in [*activities, *(live.activities.values() if live else ())]}
    waiting: dict[str | None, list[WireMessage]] = {}
    for activity in own.values():
        waiting.setdefault(activity.after, []).append(
            ag.ActivityMessage(
                id=activity.id, activity_type=activity.kind, content=dict(activity.content)
            )
        )
    made = live.made() if live else set()
    out: list[WireMessage] = []
    for message in ordered:
        if message.id in made:
            out += waiting.pop(None, ())
        out += to_wire_messages(message, shown)
        out += waiting.pop(message.id, ())
    return [*out, *(item for items in waiting.values() for item in items)]


def messages_snapshot(
    history: Sequence[Message],
    live: LiveRun | None = None,
    *,
    shown: Shown | None = None,
    activities: Sequence[Activity] = (),
    stale_reasoning: Sequence[str] = (),
) -> ag.MessagesSnapshotEvent | None:
    """Return the snapshot event, None when there is nothing to show.

    `stale_reasoning` names reasoning that clients may hold in another form: a snapshot without
    any reasoning would let them keep it, so one of them is stated empty.
    """
    messages = visible_messages(history, live, shown=shown, activities=activities)
    return snapshot_of(messages, [*(live.spans if live else ()), *stale_reasoning])


def snapshot_of(
    messages: Sequence[WireMessage],
    stale_reasoning: Sequence[str] = (),
    kinds: Sequence[str] = (),
) -> ag.MessagesSnapshotEvent | None:
    """Return the snapshot event of messages, None when there is nothing to show.

    Activities of the given `kinds`, and of those present, are replaced on the client.
    """
    listed = _stale(list(messages), stale_reasoning)
    if not listed:
        return None
    present = {m.activity_type for m in listed if isinstance(m, ag.ActivityMessage)}
    replaced = sorted({*kinds, *present})
    metadata = {"@ag-ui/client": {"authoritativeActivityTypes": replaced}} if replaced else None
    return ag.MessagesSnapshotEvent(messages=listed, metadata=metadata)


def in_call_order(messages: Sequence[Message]) -> list[Message]:
    """Return messages with each result behind the message that asked, in the order of its calls."""
    answers = pair(messages).answers
    moved = {at for row in answers.values() for at in row}
    out: list[Message] = []
    for at, message in enumerate(messages):
        if at not in moved:
            out.append(message)
            out += (messages[answer] for answer in answers.get(at, ()) if answer is not None)
    return out


def _stale(messages: list[WireMessage], names: Sequence[str]) -> list[WireMessage]:
    """Return the messages with one of the reasoning blocks stated empty, at its place."""
    if not names or any(isinstance(message, ag.ReasoningMessage) for message in messages):
        return messages
    owners = [at for at, message in enumerate(messages) if reasoning_id(message.id) == names[0]]
    at = owners[0] if owners else len(messages)
    return [*messages[:at], ag.ReasoningMessage(id=names[0], content=""), *messages[at:]]
