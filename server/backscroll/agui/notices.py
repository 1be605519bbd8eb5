"""What the server says beside events: refusals, resyncs, answers to control frames."""

from __future__ import annotations

from typing import Any

from ag_ui import core as ag

from backscroll.agui.cursor import Cursor, ResyncReason
from backscroll.agui.refusal import error_member
from backscroll.agui.wire import event_json
from backscroll.kernel.canon import canonical_json
from backscroll.kernel.errors import BackscrollError

PING = canonical_json({"type": "ping"})
PONG = canonical_json({"type": "pong"})
KEEP = ": keep\n\n"
"""What keeps a silent SSE answer open."""


def refusal_event(
    error: BackscrollError, time: int, thread_id: str | None = None, run_id: str | None = None
) -> str:
    """Return a refusal as the only event of a run that never began."""
    told: dict[str, Any] = {"refused": True, **_named(thread_id, run_id)}
    member = error_member(error)
    if "details" in member:
        told["details"] = member["details"]
    event = ag.RunErrorEvent(
        message=member["message"], code=member["code"], metadata={"backscroll": told}
    )
    return event_json(event, time)


def refusal_notice(
    error: BackscrollError, thread_id: str | None = None, run_id: str | None = None
) -> str:
    """Return a refusal for a socket that watches a thread, whose stream it must not enter."""
    named = _named(thread_id, run_id)
    return canonical_json({"type": "refusal", **named, "error": error_member(error)})


def resync_notice(thread_id: str, offset: Cursor | None, head: Cursor, reason: ResyncReason) -> str:
    """Return what announces a prelude in the midst of a feed."""
    start = {} if offset is None else {"from": str(offset)}
    notice = {"type": "resync", "threadId": thread_id, **start, "head": str(head)}
    return canonical_json({**notice, "reason": reason})


def resync_comment(head: Cursor | None = None) -> str:
    """Return the same for SSE, where it is a comment."""
    return ": resync\n\n" if head is None else f": resync head={head}\n\n"


def unwatched_notice(thread_id: str) -> str:
    """Return the answer to the end of a watch."""
    return canonical_json({"type": "unwatched", "threadId": thread_id})


def _named(thread_id: str | None, run_id: str | None) -> dict[str, str]:
    given = {"threadId": thread_id, "runId": run_id}
    return {name: value for name, value in given.items() if value is not None}
