"""A pause as JSON values, version 1, and back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from backscroll.kernel.canon import canonical_json, clean_text, parse_json
from backscroll.kernel.content import content_from_json, content_to_json
from backscroll.kernel.errors import (
    BackscrollError,
    ResumeProblem,
    ResumeRefused,
    ToolFailure,
)
from backscroll.kernel.message import ToolCall, call_to_dict
from backscroll.kernel.request import ToolResponse
from backscroll.kernel.tool import ToolSpec
from backscroll.kernel.turn import Pause, PauseItem, ToolRecord
from backscroll.kernel.usage import CallUsage, Usage

VERSION = 1


def json_context(context: Mapping[str, Any]) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return the part of a context that are JSON values, and the names of the rest."""
    kept: dict[str, Any] = {}
    left_out: list[str] = []
    for name, value in context.items():
        try:
            kept[name] = parse_json(clean_text(canonical_json(value)))
        except (TypeError, ValueError, RecursionError):
            left_out.append(name)
    return kept, tuple(left_out)


def pause_to_json(pause: Pause) -> dict[str, Any]:
    """Return a pause as JSON values; its context must be such already."""
    return {
        "version": VERSION,
        "id": pause.id,
        "conversation_id": pause.conversation_id,
        "items": [
            {
                "id": item.id,
                "kind": item.kind,
                "tool": item.tool,
                "args": dict(item.args),
                "reason": item.reason,
                "answers": list(item.answers),
            }
            for item in pause.items
        ],
        "created_at": pause.created_at,
        "expires_at": pause.expires_at,
        "calls": [call_to_dict(call) for call in pause.calls],
        "message_id": pause.message_id,
        "remaining": pause.remaining,
        "records": [_record_to_json(record) for record in pause.records],
        "usage": [_usage_to_json(use) for use in pause.usage],
        "decided": {name: _response_to_json(r) for name, r in pause.decided.items()},
        "held": [_record_to_json(record) for record in pause.held],
        "context": dict(pause.context),
        "tools": [
            {"name": spec.name, "description": spec.description, "schema": dict(spec.schema)}
            for spec in pause.tools
        ],
        "is_ephemeral": pause.is_ephemeral,
    }


def pause_from_json(value: Any) -> Pause:
    """Read a pause; raises `pause_unreadable` for a newer version or anything that is none."""
    try:
        if value["version"] != VERSION:
            raise ValueError(f"expected version {VERSION}, got {value['version']!r}")
        return _read(value)
    except (KeyError, TypeError, ValueError, AttributeError, BackscrollError) as error:
        reason = str(error) or type(error).__name__
        problem = ResumeProblem("pause_unreadable", f"the stored pause cannot be read: {reason}")
        raise ResumeRefused([problem]) from error


def write_pause(pause: Pause) -> str:
    """Return a pause as JSON text."""
    return canonical_json(pause_to_json(pause))


def read_pause(text: str | bytes) -> Pause:
    """Read a pause from JSON text; raises `pause_unreadable`."""
    try:
        value = parse_json(text)
    except ValueError as error:
        problem = ResumeProblem("pause_unreadable", f"the stored pause is not JSON: {error}")
        raise ResumeRefused([problem]) from error
    return pause_from_json(value)


def _read(value: Mapping[str, Any]) -> Pause:
    return Pause(
        value["id"],
        value["conversation_id"],
        tuple(
            PauseItem(i["id"], i["kind"], i["tool"], i["args"], i["reason"], tuple(i["answers"]))
            for i in value["items"]
        ),
        float(value["created_at"]),
        value["expires_at"],
        tuple(ToolCall(c["id"], c["name"], c.get("args"), c.get("raw")) for c in value["calls"]),
        value["message_id"],
        value["remaining"],
        tuple(_record_from_json(record) for record in value["records"]),
        tuple(_usage_from_json(use) for use in value["usage"]),
        {name: _response_from_json(r) for name, r in value["decided"].items()},
        tuple(_record_from_json(record) for record in value["held"]),
        value["context"],
        tuple(ToolSpec(t["name"], t["description"], t["schema"]) for t in value["tools"]),
        value["is_ephemeral"],
    )


def _record_to_json(record: ToolRecord) -> dict[str, Any]:
    return {
        "call_id": record.call_id,
        "name": record.name,
        "args": None if record.args is None else dict(record.args),
        "content": content_to_json(record.content),
        "outcome": record.outcome,
        "failure": _failure_to_json(record.failure),
        "attempts": record.attempts,
        "duration_s": record.duration_s,
        "edited_args": None if record.edited_args is None else dict(record.edited_args),
    }


def _record_from_json(value: Mapping[str, Any]) -> ToolRecord:
    read = {
        "content": content_from_json(value["content"]),
        "failure": _failure_from_json(value["failure"]),
    }
    return ToolRecord(**{**value, **read})


def _response_to_json(response: ToolResponse) -> dict[str, Any]:
    return {
        "content": content_to_json(response.content),
        "outcome": response.outcome,
        "failure": _failure_to_json(response.error),
    }


def _response_from_json(value: Mapping[str, Any]) -> ToolResponse:
    content, failure = content_from_json(value["content"]), _failure_from_json(value["failure"])
    return ToolResponse(content, error=failure, outcome=value["outcome"])


def _failure_to_json(failure: ToolFailure | None) -> dict[str, str] | None:
    return None if failure is None else {"kind": failure.kind, "message": failure.message}


def _failure_from_json(value: Mapping[str, Any] | None) -> ToolFailure | None:
    return None if value is None else ToolFailure(value["kind"], value["message"])


def _usage_to_json(use: CallUsage) -> dict[str, Any]:
    usage = None if use.usage is None else use.usage.to_dict()
    return {"provider": use.provider, "model": use.model, "usage": usage}


def _usage_from_json(value: Mapping[str, Any]) -> CallUsage:
    usage = None if value["usage"] is None else Usage(**value["usage"])
    return CallUsage(value["provider"], value["model"], usage)
