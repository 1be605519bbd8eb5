"""How a run ended, in the words of the wire."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from backscroll.kernel.errors import BackscrollError, FilterError, MaxIterationsExceeded
from backscroll.kernel.turn import PauseItem, TurnResult


@dataclass(frozen=True, slots=True)
class RunEnd:
    """The terminal event of a run before it is written.

    `pending` are calls that wait for the client, `questions` those that people are asked about,
    until `expires_at`; `code`, `message` and `is_retryable` belong to a
    failed run. The question of a blocked run stays out of the history.
    """

    status: Literal["completed", "cancelled", "failed"]
    result: Any = None  # Any: structured output, or the text of return-direct tools
    pending: tuple[str, ...] = ()
    questions: tuple[PauseItem, ...] = ()
    expires_at: float | None = None
    code: str = ""
    message: str = ""
    is_retryable: bool = False
    request_id: str | None = None
    is_blocked: bool = False


CANCELLED = RunEnd("cancelled")

# What an end user is told; a provider's own words stay in the operators' entries.
_SENTENCES: Mapping[str, str] = {
    "network": "The model could not be reached.",
    "timeout": "The model did not answer in time.",
    "rate_limit": "The model is busy right now.",
    "provider": "The model's provider reported a fault.",
    "auth": "The server is not allowed to use this model.",
    "invalid_request": "The model refused the request.",
    "parse": "The model's answer could not be read.",
    "unsupported_content": "The model cannot read a part of this conversation.",
    "context_overflow": "The conversation is too long for the model.",
    "incomplete_stream": "The model's answer broke off before it was complete.",
    "store_error": "The conversation could not be stored.",
    "sink_failed": "The conversation could not be recorded.",
    "run_timeout": "The run took too long and was ended.",
    "worker_lost": "The server was lost while it worked on this.",
    "restarting": "The server is restarting.",
    "pause_unreadable": "What the conversation waited for cannot be read.",
    "internal_error": "Something went wrong on the server.",
}
_RETRYABLE = frozenset({"run_timeout", "worker_lost", "restarting", "store_error", "sink_failed"})


def end_of(result: TurnResult, *, is_stopped: bool = False) -> RunEnd:
    """Return how the run of a turn ends; one that was asked to stop ends cancelled."""
    if is_stopped or result.status == "cancelled":
        return CANCELLED
    if result.status == "error":
        return failed(result.error or BackscrollError())
    pause = result.pause if result.status == "paused" else None
    items = pause.items if pause else ()
    return RunEnd(
        "completed",
        result=result.text if result.return_direct else result.output,
        pending=tuple(item.id for item in items if item.kind == "client"),
        questions=tuple(item for item in items if item.kind != "client"),
        expires_at=pause.expires_at if pause else None,
        is_blocked=result.blocked_by is not None and not result.store,
    )


def failed(error: BackscrollError, request_id: str | None = None) -> RunEnd:
    """Return the end of a run that an error ended, worded for an end user."""
    if isinstance(error, FilterError | MaxIterationsExceeded):
        code, message = error.code, str(error)
    else:
        code = error.code if error.code in _SENTENCES else "internal_error"
        message = _SENTENCES[code]
    return RunEnd(
        "failed",
        code=code,
        message=message,
        is_retryable=error.retryable,
        request_id=request_id,
    )


def failed_with(code: str, request_id: str | None = None) -> RunEnd:
    """Return the end of a run that the server itself ended: its time, its worker, a restart."""
    return RunEnd(
        "failed",
        code=code,
        message=_SENTENCES[code],
        is_retryable=code in _RETRYABLE,
        request_id=request_id,
    )
