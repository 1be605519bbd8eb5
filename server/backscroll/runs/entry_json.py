"""Entries as the operator API and the console socket show them."""

from __future__ import annotations

import json
from typing import Any

from backscroll.store.entry import Entry

CUT_CHARS = 65_536
SMALL_BYTES = 2_000

# Only these bodies matter to the fold; parsing the others would cost more than folding them.
_FOLDED = frozenset(
    {
        "TEXT_MESSAGE_CONTENT",
        "TEXT_MESSAGE_END",
        "REASONING_MESSAGE_CONTENT",
        "REASONING_MESSAGE_END",
        "REASONING_END",
        "TOOL_CALL_START",
        "TOOL_CALL_ARGS",
        "TOOL_CALL_RESULT",
        "ACTIVITY_SNAPSHOT",
        "ACTIVITY_DELTA",
        "RUN_FINISHED",
    }
)


def entry_head(entry: Entry) -> dict[str, Any]:
    """Return an entry without its body; what is empty is left out."""
    head: dict[str, Any] = {"seq": entry.seq, "time": entry.time}
    if entry.run:
        head["run"] = entry.run
    head.update(kind=entry.kind, type=entry.type, audience=entry.audience)
    if entry.ref:
        head["ref"] = entry.ref
    head.update(preview=entry.preview, bytes=entry.bytes, worker=entry.worker)
    return head


def entry_full(entry: Entry) -> dict[str, Any]:
    """Return an entry with its body; long texts in it are cut to head and tail, and named."""
    cuts: list[dict[str, Any]] = []
    body = _cut(read_body(entry), "", cuts)
    full = {**entry_head(entry), "body": body}
    if cuts:
        full["cut"] = cuts
    return full


def entry_live(entry: Entry) -> dict[str, Any]:
    """Return an entry for the console socket: with its body where that is small."""
    if entry.bytes > SMALL_BYTES:
        return entry_head(entry)
    return {**entry_head(entry), "body": read_body(entry)}


def entry_for_fold(entry: Entry) -> dict[str, Any]:
    """Return an entry as the fold needs it: with its body where the fold looks into it."""
    head = entry_head(entry)
    if entry.kind == "message" or entry.type in _FOLDED:
        head["body"] = read_body(entry)
    return head


def read_body(entry: Entry) -> Any:
    """Return the body as JSON values, or as text where it is none."""
    try:
        return json.loads(entry.body)
    except ValueError:
        return entry.body.decode("utf-8", "replace")


def _cut(value: Any, path: str, cuts: list[dict[str, Any]]) -> Any:
    if isinstance(value, str):
        if len(value) <= CUT_CHARS:
            return value
        cuts.append({"path": path, "chars": len(value)})
        half = CUT_CHARS // 2
        left_out = len(value) - 2 * half
        return f"{value[:half]}\n[… {left_out:,} characters left out …]\n{value[-half:]}"
    if isinstance(value, dict):
        return {k: _cut(v, f"{path}.{k}" if path else k, cuts) for k, v in value.items()}
    if isinstance(value, list):
        return [_cut(v, f"{path}[{n}]", cuts) for n, v in enumerate(value)]
    return value
