"""One tool call on its way to its result, and the result in the forms it is needed in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from pydantic_core import to_json

from backscroll.kernel.canon import parse_json
from backscroll.kernel.client import failed
from backscroll.kernel.errors import ToolFailure
from backscroll.kernel.message import Message, ToolCall, tool_result
from backscroll.kernel.request import ToolResponse
from backscroll.kernel.texts import Texts
from backscroll.kernel.turn import ToolRecord


@dataclass(slots=True)
class ToolRun:
    """One call on its way to its result; the id of the result's message is known from the start.

    `answer` is a result decided beforehand, `edited_args` are arguments that somebody put in place
    of the model's, `start` says which attempt the first one is. A held result is a failure that
    somebody is asked about first.
    """

    call: ToolCall
    result_id: str
    answer: ToolResponse | None = None
    edited_args: Mapping[str, Any] | None = None
    start: int = 1
    has_begun: bool = False
    is_held: bool = False
    attempts: int = 0
    duration_s: float = 0.0
    response: ToolResponse | None = None

    @property
    def asked(self) -> ToolCall:
        """The call as it is to run."""
        if self.edited_args is None:
            return self.call
        return replace(self.call, args=self.edited_args, raw=None)

    @property
    def done(self) -> ToolResponse:
        """The result; ask only when there is one."""
        assert self.response is not None
        return self.response

    @property
    def writes(self) -> Mapping[str, Any] | None:
        """What it writes to the context; a failed call writes nothing."""
        return None if self.done.error is not None else self.done.writes

    @property
    def message(self) -> Message:
        """The result as the message that is stored."""
        return tool_result(
            self.call.id,
            self.call.name,
            self.done.content,
            id=self.result_id,
            outcome=self.done.outcome,
            writes=_audit(self.writes),
        )

    @property
    def record(self) -> ToolRecord:
        """The result as filters see it."""
        return ToolRecord(
            self.call.id,
            self.call.name,
            self.call.args,
            self.done.content,
            self.done.outcome,
            self.done.error,
            self.start - 1 + self.attempts,
            self.duration_s,
            self.edited_args,
        )


def readable(response: ToolResponse, texts: Texts) -> ToolResponse:
    """Return the response with content that can be stored, whatever a filter made of it."""
    try:
        written = tool_result("", "", response.content).content
    except (ValueError, TypeError, RecursionError) as error:
        return failed(ToolFailure("semantic", f"the result is unreadable: {error}", error), texts)
    return response if written == response.content else response.replace(content=written)


def _audit(writes: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    """Return writes as JSON values, the rest as their words; they are kept for people only."""
    return {name: _json_value(value) for name, value in writes.items()} if writes else None


def _json_value(value: Any) -> Any:
    try:
        written = to_json(value, fallback=repr, inf_nan_mode="null", bytes_mode="base64")
        return parse_json(written)
    except (ValueError, RecursionError):
        return repr(value).encode("utf-8", "replace").decode()
