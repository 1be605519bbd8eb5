"""Why a request or a connection is refused: codes, what HTTP and close codes they mean, one shape.

RequestRefused                  one of the codes in REFUSALS
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from backscroll.kernel.errors import BackscrollError


@dataclass(frozen=True, slots=True)
class Status:
    """What a code means to a peer: HTTP status, close code if there is one, when to come back."""

    http: int
    close: int | None = None
    retryable: bool = False
    retry_after_s: int | None = None


REFUSALS: Mapping[str, Status] = {
    "not_json": Status(400),
    "unsupported_version": Status(400),
    "invalid_input": Status(422),
    "interrupt_invalid": Status(422),
    "invalid_arguments": Status(422),
    "tool_gone": Status(422),
    "duplicate_tool": Status(422),
    "unknown_tool_call": Status(422),
    "nothing_to_run": Status(422),
    "unauthenticated": Status(401, 4401),
    "forbidden": Status(403, 4403),
    "bad_origin": Status(403),
    "bad_host": Status(403),
    "not_found": Status(404, 1008),
    "method_not_allowed": Status(405),
    "thread_busy": Status(409, retryable=True),
    "run_conflict": Status(409),
    "agent_mismatch": Status(409),
    "message_conflict": Status(409),
    "awaiting_resume": Status(409),
    "interrupt_incomplete": Status(409),
    "interrupt_unknown": Status(409),
    "not_paused": Status(409),
    "interrupt_expired": Status(409),
    "already_answered": Status(409),
    "summary_changed": Status(409),
    "pins_over_budget": Status(422),
    "one_stream": Status(409),
    "read_only": Status(409),
    "too_many_feeds": Status(409, retryable=True),
    "too_large": Status(413, 1009),
    "rate_limited": Status(429, 1008, retryable=True, retry_after_s=60),
    "queue_full": Status(429, retryable=True),
    "quota_exceeded": Status(429),
    "pause_unreadable": Status(500),
    "internal_error": Status(500, 1011),
    "draining": Status(503, 1012, retryable=True, retry_after_s=1),
    "unavailable": Status(503, 1013, retryable=True, retry_after_s=5),
}
"""Every code a refusal can have; the same word is the code of a RUN_ERROR made from it."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing wrong with a request: the path of the bad member, and what is wrong with it."""

    path: str
    message: str
    code: str = "invalid_input"

    def __str__(self) -> str:
        return f"{self.path} {self.message}"

    def to_dict(self) -> dict[str, str]:
        """Return the JSON values of the problem."""
        return {"path": self.path, "message": self.message}


class RequestRefused(BackscrollError):
    """A request is refused before anything of it has happened.

    `ids` names the request, as threadId and runId; `details` may name another run.
    """

    def __init__(
        self,
        code: str,
        message: str,
        details: Mapping[str, Any] | None = None,
        *,
        retry_after_s: int | None = None,
    ) -> None:
        self.code = code
        self.status = REFUSALS[code]
        self.retryable = self.status.retryable
        self.retry_after_s = retry_after_s or self.status.retry_after_s
        self.details: dict[str, Any] = dict(details or {})
        self.ids: dict[str, str] = {}
        super().__init__(message)

    @classmethod
    def of_problems(cls, problems: Sequence[Problem], **details: Any) -> RequestRefused:
        """Make the refusal that names every problem; the first one gives code and message."""
        listed = [problem.to_dict() for problem in problems]
        return cls(problems[0].code, str(problems[0]), {"problems": listed, **details})

    def about(self, **details: Any) -> RequestRefused:
        """Return the same refusal with more details; those that are None are left out."""
        known = {name: value for name, value in details.items() if value is not None}
        made = RequestRefused(
            self.code, str(self), {**self.details, **known}, retry_after_s=self.retry_after_s
        )
        made.ids = self.ids
        return made

    def for_request(self, thread_id: str, run_id: str) -> RequestRefused:
        """Return the same refusal as the answer to one request."""
        made = self.about()
        made.ids = {"threadId": thread_id, "runId": run_id}
        told = made.details.items()
        made.details = {name: value for name, value in told if made.ids.get(name) != value}
        return made


def error_member(error: BackscrollError, **details: Any) -> dict[str, Any]:
    """Return the member `error` of a JSON answer: code, message, details where there are any."""
    known = {**error.ids, **error.details} if isinstance(error, RequestRefused) else {}
    known.update((name, value) for name, value in details.items() if value is not None)
    if error.retryable:
        known["retryable"] = True
    shape: dict[str, Any] = {"code": error.code, "message": str(error)}
    return {**shape, "details": known} if known else shape


def error_body(error: BackscrollError, **details: Any) -> dict[str, Any]:
    """Return the one JSON shape of an error answer, with `request_id` and the like as details."""
    return {"error": error_member(error, **details)}


def http_status(error: BackscrollError) -> Status:
    """Return what an error means to a peer; one that is no refusal is a server fault."""
    return error.status if isinstance(error, RequestRefused) else REFUSALS["internal_error"]
