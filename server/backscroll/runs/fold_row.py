"""A folded row, and the small rules by which entries become rows."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

PREVIEW_CHARS = 160

_PREFIXES = (
    ("RUN_", "run"),
    ("STEP_", "step"),
    ("TEXT_MESSAGE_", "text"),
    ("TOOL_CALL_", "tool"),
    ("REASONING_", "reasoning"),
    ("STATE_", "state"),
    ("MESSAGES_SNAPSHOT", "state"),
    ("ACTIVITY_", "activity"),
    ("SUBAGENT_", "activity"),
)
_OWN_KINDS = ("message", "call", "compaction", "note")
_BLANKS = re.compile(r"[ \t\r\n]+")

EntryHead = Mapping[str, Any]
"""An entry as the operator API shows it; `body` is optional and parsed."""


@dataclass(slots=True)
class Row:
    """One thing that happened: a run, a step, a message, a call. It changes while entries join."""

    row: int
    level: int
    family: str
    seq: list[int]
    title: str
    subject: str
    started: int
    parent: int | None = None
    run: str | None = None
    ref: str | None = None
    worker: str | None = None
    entries: int = 1
    preview: str = ""
    ended: int | None = None
    status: str = "running"
    bytes: int = 0
    flags: list[str] = field(default_factory=list)

    def flag(self, word: str) -> None:
        """Put a flag on the row, once."""
        if word not in self.flags:
            self.flags.append(word)

    def unflag(self, word: str) -> None:
        """Take a flag off the row."""
        if word in self.flags:
            self.flags.remove(word)

    def to_dict(self) -> dict[str, Any]:
        """Return the row as the operator API shows it; what is absent is left out."""
        members = {
            "row": self.row,
            "level": self.level,
            "parent": self.parent,
            "family": self.family,
            "seq": list(self.seq),
            "entries": self.entries,
            "run": self.run,
            "title": self.title,
            "subject": self.subject,
            "preview": self.preview,
            "ref": self.ref,
            "started": self.started,
            "ended": self.ended,
            "status": self.status,
            "bytes": self.bytes,
            "worker": self.worker,
            "flags": list(self.flags),
        }
        return {name: value for name, value in members.items() if value is not None}


def family_of(kind: str, type: str) -> str:
    """Return the family an entry belongs to, by its kind and the beginning of its type."""
    if kind != "event":
        return kind if kind in _OWN_KINDS else "custom"
    return next((family for prefix, family in _PREFIXES if type.startswith(prefix)), "custom")


def ref_of(entry: EntryHead) -> str | None:
    """Return what an entry is about: its ref, or what its body names."""
    if entry.get("ref") is not None:
        return str(entry["ref"])
    body = body_of(entry)
    for name in ("toolCallId", "messageId", "stepName", "name"):
        if isinstance(body.get(name), str):
            return str(body[name])
    return None


def body_of(entry: EntryHead) -> Mapping[str, Any]:
    """Return an entry's parsed body, or an empty one."""
    body = entry.get("body")
    return body if isinstance(body, Mapping) else {}


def inside(value: Any, *names: str) -> Any:
    """Return the member at a path of names, or None where it ends early."""
    for name in names:
        if not isinstance(value, Mapping):
            return None
        value = value.get(name)
    return value


def join_preview(preview: str, piece: str) -> str:
    """Return a preview with one more piece: one line, at most 160 characters."""
    if len(preview) == PREVIEW_CHARS and preview.endswith("…"):
        return preview
    joined = _BLANKS.sub(" ", preview + piece[:2000]).removeprefix(" ")
    return joined if len(joined) <= PREVIEW_CHARS else joined[: PREVIEW_CHARS - 1] + "…"


def outcome_status(outcome: Any) -> str:
    """Return the status of a tool row whose result has this outcome."""
    if outcome in (None, "ok", "replied"):
        return "ok"
    return "error" if outcome in ("error", "unknown") else "cancelled"


def run_status(entry: EntryHead) -> str:
    """Return the status a run's terminal event gives it."""
    if entry["type"] == "RUN_ERROR":
        return "error"
    outcome = body_of(entry).get("outcome")
    if inside(outcome, "type") == "cancelled":
        return "cancelled"
    waits = inside(outcome, "type") == "interrupt" or inside(outcome, "pendingToolCallIds")
    return "waiting" if waits else "ok"
