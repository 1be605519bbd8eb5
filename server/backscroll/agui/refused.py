"""A refused request on a socket: as the one event that answers it, or as a notice."""

from __future__ import annotations

from typing import Any

from ag_ui import core as ag

from backscroll.agui.refusal import RequestRefused, error_member
from backscroll.agui.wire import event_json
from backscroll.kernel.canon import canonical_json

_IDS = ("threadId", "runId")


def refusal_event(refusal: RequestRefused, time: int) -> str:
    """Return the RUN_ERROR that answers a request on a socket which watches nothing."""
    details = {key: value for key, value in refusal.details.items() if key not in _IDS}
    about: dict[str, Any] = {"refused": True}
    about.update((name, refusal.details[name]) for name in _IDS if name in refusal.details)
    if refusal.retryable:
        details["retryable"] = True
    if details:
        about["details"] = details
    event = ag.RunErrorEvent(
        message=str(refusal), code=refusal.code, metadata={"backscroll": about}
    )
    return event_json(event, time)


def refusal_notice(refusal: RequestRefused) -> str:
    """Return the notice of a refusal on a socket that watches a thread."""
    member = error_member(refusal)
    details = member.pop("details", {})
    ids = {name: details.pop(name) for name in _IDS if name in details}
    error = {**member, "details": details} if details else member
    return canonical_json({"type": "refusal", **ids, "error": error})
