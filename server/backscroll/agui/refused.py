"""A refused request on a socket: as the one event that answers it, or as a notice."""

from __future__ import annotations

from typing import Any

from ag_ui import core as ag

from backscroll.agui.refusal import RequestRefused
from backscroll.agui.wire import event_json
from backscroll.kernel.canon import canonical_json

_IDS = ("threadId", "runId")


def refusal_event(refusal: RequestRefused, time: int) -> str:
    """Return the RUN_ERROR that answers a request on a socket which watches nothing."""
    ids, details = _told(refusal)
    about: dict[str, Any] = {"refused": True, **ids}
    if details:
        about["details"] = details
    event = ag.RunErrorEvent(
        message=str(refusal), code=refusal.code, metadata={"backscroll": about}
    )
    return event_json(event, time)


def refusal_notice(refusal: RequestRefused) -> str:
    """Return the notice of a refusal on a socket that watches a thread."""
    ids, details = _told(refusal)
    error = {"code": refusal.code, "message": str(refusal)}
    told = {**error, "details": details} if details else error
    return canonical_json({"type": "refusal", **ids, "error": told})


def _told(refusal: RequestRefused) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the ids of the refused request, and what else its refusal says."""
    details = dict(refusal.details)
    ids = refusal.ids or {name: details.pop(name) for name in _IDS if name in details}
    if refusal.retryable:
        details["retryable"] = True
    return ids, details
