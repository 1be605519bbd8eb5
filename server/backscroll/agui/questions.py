"""Questions on the wire: how each is asked, and what an answer to it says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from ag_ui import core as ag

from backscroll.agent.answers import (
    Approve,
    GiveUp,
    PauseAnswer,
    Reject,
    Reply,
    Retry,
    check_answers,
)
from backscroll.agui.input import ResumeEntry
from backscroll.agui.plan import Waiting
from backscroll.agui.refusal import Problem
from backscroll.kernel.canon import canonical_json
from backscroll.kernel.turn import PauseItem

_APPROVAL: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "approved": {"type": "boolean"},
        "editedArgs": {"type": "object"},
        "reason": {"type": "string"},
        "result": {},
    },
}
_ENVIRONMENT: Mapping[str, Any] = {
    "type": "object",
    "properties": {"retry": {"type": "boolean"}},
    "required": ["retry"],
}


def interrupts(
    items: Sequence[PauseItem], expires_at: float | None = None
) -> ag.RunFinishedInterruptOutcome:
    """Return the outcome of a run that waits for answers to these items."""
    expires = None
    if expires_at is not None:
        expires = datetime.fromtimestamp(expires_at, UTC).isoformat(timespec="seconds")
        expires = expires.replace("+00:00", "Z")
    return ag.RunFinishedInterruptOutcome(
        interrupts=[
            ag.Interrupt(
                id=item.id,
                reason="tool_call" if item.kind == "approval" else f"backscroll.{item.kind}",
                message=item.reason or None,
                tool_call_id=item.id,
                response_schema=dict(_APPROVAL if item.kind == "approval" else _ENVIRONMENT),
                expires_at=expires,
                metadata={"kind": item.kind, "toolName": item.tool, "input": dict(item.args)},
            )
            for item in items
        ]
    )


def answer_to(item: PauseItem, entry: ResumeEntry) -> PauseAnswer | None:
    """Return what an entry answers to an item, None when it does not say."""
    payload = entry.payload
    told = payload if isinstance(payload, dict) else {}
    reason = told.get("reason")
    reject = Reject(reason if isinstance(reason, str) and reason.strip() else None)
    if entry.status == "cancelled":
        return GiveUp() if item.kind == "environment" else reject
    if item.kind == "environment":
        retry = _truth(told.get("retry"))
        return None if retry is None else Retry() if retry else GiveUp()
    if "result" in told:
        return Reply(_text(told["result"]), is_error=told.get("error") is True)
    if item.kind == "client":
        return None
    approved = _truth(told.get("approved", payload))
    if approved is None:
        return None
    return Approve(told.get("editedArgs")) if approved else reject


def problem_of(at: str, item: PauseItem, entry: ResumeEntry, waiting: Waiting) -> Problem | None:
    """Return why an entry is no answer to an open item; `at` is where the entry stands."""
    pause = waiting.record.pause
    answer = answer_to(item, entry)
    if answer is None or pause is None:
        message = f"does not answer {item.kind} {item.id}, which takes {', '.join(item.answers)}"
        return Problem(_path(at, "payload"), message, "interrupt_invalid")
    found = check_answers(pause, {item.id: answer}, waiting.tools, waiting.now)
    own = [problem for problem in found if problem.item_id == item.id]
    if not own:
        return None
    code = own[0].code
    place = "payload.editedArgs" if code == "invalid_arguments" else "payload"
    return Problem(_path(at, place), f"is refused: {own[0].message}", code)


def _truth(value: Any) -> bool | None:
    return value if isinstance(value, bool) else None


def _text(value: Any) -> str:
    """Return a result that somebody gives as the model reads it."""
    if value is None:
        return ""
    return value if isinstance(value, str) else canonical_json(value)


def _path(at: str, name: str) -> str:
    return f"{at}.{name}" if at else name
