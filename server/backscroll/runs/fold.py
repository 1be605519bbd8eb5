"""Entries into rows: one row per thing that happened.

The console's `fold.js` does the same for the live tail and states the rules; both pass the files
in tests/data/fold. A row never loses an entry: what joins nothing is a row of its own.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from backscroll.runs.fold_row import (
    EntryHead,
    Row,
    body_of,
    family_of,
    inside,
    join_preview,
    outcome_status,
    ref_of,
    run_status,
)

_LEVELS = {"run": 0, "step": 1}
_BLOCKS = {
    "text": (
        "text message",
        ("TEXT_MESSAGE_START",),
        "TEXT_MESSAGE_CONTENT",
        ("TEXT_MESSAGE_END",),
    ),
    "reasoning": (
        "reasoning",
        ("REASONING_START", "REASONING_MESSAGE_START"),
        "REASONING_MESSAGE_CONTENT",
        ("REASONING_MESSAGE_END", "REASONING_END"),
    ),
}
_TOOL_TYPES = ("TOOL_CALL_START", "TOOL_CALL_ARGS", "TOOL_CALL_END", "TOOL_CALL_RESULT")
_CALL_ENDS = {"finished": "ok", "failed": "error", "cancelled": "cancelled"}
_RESULTS = {"failed": "error", "cancelled": "cancelled"}
_ACTIVITIES = {"running": "running", "failed": "error", "cancelled": "cancelled"}


@dataclass(slots=True)
class _Run:
    row: Row | None = None
    step: Row | None = None
    ended: bool = False


class Fold:
    """Folds the entries of one thread, in order; `rows` grows and its last rows change."""

    def __init__(self, floor: int = 0) -> None:
        self.rows: list[Row] = []
        self.head = 0
        self._floor = floor
        self._runs: dict[str | None, _Run] = {}
        self._open: dict[tuple[str, str], Row] = {}
        self._with_deltas: set[int] = set()
        self._removed: dict[str, Row] = {}

    def add(self, entry: EntryHead) -> None:
        """Take one entry in; a seq not above the last one is ignored."""
        if entry["seq"] <= self.head:
            return
        self.head = entry["seq"]
        family = family_of(entry["kind"], entry["type"])
        row = self._place(entry, family) or self._plain(entry, family)
        run = self._runs.get(entry.get("run"))
        if entry["kind"] == "event" and family != "run" and run is not None and run.ended:
            row.flag("late")

    def extend(self, entries: Iterable[EntryHead]) -> None:
        """Take several entries in."""
        for entry in entries:
            self.add(entry)

    def _place(self, entry: EntryHead, family: str) -> Row | None:
        if family in _BLOCKS:
            return self._block(entry, family)
        place = getattr(self, f"_{family}", None)
        found: Row | None = place(entry) if place is not None else None
        return found

    def _run(self, entry: EntryHead) -> Row | None:
        starts = entry["type"] == "RUN_STARTED"
        ends = entry["type"] in ("RUN_FINISHED", "RUN_ERROR")
        if not starts and not ends:
            return None
        run = self._runs.setdefault(entry.get("run") or ref_of(entry), _Run())
        again = run.row is not None if starts else run.ended
        known = run.row
        row = self._join(known, entry) if known else self._new(entry, "run", "run", _of_run(entry))
        if again:
            row.flag("duplicate")
        elif not starts and known is None:
            row.flag("out of order")
        run.row = row
        if starts and not again:
            row.preview = entry.get("preview", "")
        if not ends or again:
            return row
        run.ended, run.step = True, None
        if entry["type"] == "RUN_ERROR":
            row.preview = entry.get("preview", "")
        status = run_status(entry)
        self._end_open(entry, status)
        return _close(row, entry, status)

    def _step(self, entry: EntryHead) -> Row | None:
        name = ref_of(entry) or ""
        key = ("step", f"{entry.get('run')}:{name}")
        found = self._open.get(key)
        run = self._runs.get(entry.get("run"))
        if entry["type"] == "STEP_STARTED":
            row = self._join(found, entry) if found else self._new(entry, "step", "step", name, key)
            if found:
                row.flag("duplicate")
            elif run is not None:
                run.step = row
            return row
        if entry["type"] != "STEP_FINISHED":
            return None
        row = self._join(found, entry) if found else self._new(entry, "step", "step", name)
        if not found:
            row.flag("out of order")
        self._open.pop(key, None)
        if run is not None and run.step is row:
            run.step = None
        return _close(row, entry, "ok")

    def _block(self, entry: EntryHead, family: str) -> Row | None:
        title, starts, delta, ends = _BLOCKS[family]
        type_ = entry["type"]
        if type_ not in starts and type_ not in ends and type_ != delta:
            return None
        ref = ref_of(entry) or ""
        key = (family, ref)
        found = self._open.get(key)
        row = self._join(found, entry) if found else self._new(entry, family, title, ref, key)
        if not found and type_ != starts[0]:
            row.flag("out of order")
        if found and type_ == starts[0]:
            row.flag("duplicate")
        if type_ == delta:
            self._delta(row, entry)
        marked = inside(body_of(entry), "metadata", "backscroll", "incomplete")
        if type_ in ends and marked is True:
            row.flag("incomplete")
        if type_ != ends[-1]:
            return row
        self._open.pop(key, None)
        if found:
            self._check_deltas(row)
        return _close(row, entry, "cancelled" if "incomplete" in row.flags else "ok")

    def _tool(self, entry: EntryHead) -> Row | None:
        type_ = entry["type"]
        if type_ not in _TOOL_TYPES:
            return None
        ref = ref_of(entry) or ""
        key = ("tool", ref)
        starts = type_ == "TOOL_CALL_START"
        name = body_of(entry).get("toolCallName", entry.get("preview", "")) if starts else ""
        found = self._open.get(key)
        row = (
            self._join(found, entry) if found else self._new(entry, "tool", "tool call", name, key)
        )
        if not found and not starts:
            row.flag("out of order")
        if found and starts:
            row.flag("duplicate")
        if type_ == "TOOL_CALL_ARGS":
            self._delta(row, entry)
        if type_ == "TOOL_CALL_END" and found:
            self._check_deltas(row)
        if type_ != "TOOL_CALL_RESULT":
            return row
        if row.status not in ("running", "waiting") and "incomplete" not in row.flags:
            row.flag("duplicate")
            return row
        row.unflag("incomplete")
        outcome = inside(body_of(entry), "metadata", "backscroll", "outcome")
        return _close(row, entry, outcome_status(outcome))

    def _call(self, entry: EntryHead) -> Row | None:
        ref = ref_of(entry) or ""
        key = ("call", ref)
        found = self._open.get(key)
        if entry["type"] == "started":
            if found is not None and found.status == "running":
                self._abandon(found, entry, "cancelled")
            row = self._new(entry, "call", "model call", ref, key)
            row.preview = entry.get("preview", "")
            return row
        status = _CALL_ENDS.get(entry["type"])
        if status is None:
            return None
        row = self._join(found, entry) if found else self._new(entry, "call", "model call", ref)
        if not found:
            row.flag("out of order")
        row.preview = " · ".join(p for p in (row.preview, entry.get("preview")) if p)
        row.unflag("incomplete")
        self._open.pop(key, None)
        return _close(row, entry, status)

    def _activity(self, entry: EntryHead) -> Row | None:
        if not entry["type"].startswith("ACTIVITY_"):
            return None
        key = ("activity", f"{entry.get('run')}:{ref_of(entry) or ''}")
        found = self._open.get(key)
        row = (
            self._join(found, entry) if found else self._new(entry, "activity", "activity", "", key)
        )
        row.subject = body_of(entry).get("activityType", row.subject)
        row.preview = entry.get("preview", "")
        status = _ACTIVITIES.get(inside(body_of(entry), "content", "status"), "ok")
        if status != "running":
            return _close(row, entry, status)
        row.ended, row.status = None, "running"
        return row

    def _message(self, entry: EntryHead) -> Row:
        row = self._plain(entry, "message")
        row.title = f"message {entry['type']}"
        lender = self._removed.pop(entry.get("ref", ""), None)
        if lender is not None:
            lender.preview = entry.get("preview", "")
        call_id = body_of(entry).get("tool_call_id")
        tool = self._open.get(("tool", call_id)) if call_id else None
        if tool is not None and tool.status == "waiting":
            _close(tool, entry, outcome_status(body_of(entry).get("outcome")))
        return row

    def _compaction(self, entry: EntryHead) -> Row:
        row = self._plain(entry, "compaction")
        done = entry["type"] == "done"
        row.title = "compaction" if done else f"compaction {entry['type']}"
        row.status = _RESULTS.get(entry["type"], "ok")
        return row

    def _note(self, entry: EntryHead) -> Row:
        row = self._plain(entry, "note")
        row.title, row.subject = "note", entry["type"]
        return row

    def _plain(self, entry: EntryHead, family: str) -> Row:
        """Make a row of its own, closed."""
        type_ = entry["type"]
        known = family != "custom" or type_ in ("CUSTOM", "RAW")
        event = entry["kind"] == "event"
        title = type_.lower().replace("_", " ") if known else "unknown entry"
        subject = (ref_of(entry) or "") if known else f"{entry['kind']} {type_}"
        if not known and event:
            title, subject = "unknown event", type_
        row = self._new(entry, family, title, subject)
        row.preview = entry.get("preview", "")
        return _close(row, entry, "ok")

    def _new(
        self,
        entry: EntryHead,
        family: str,
        title: str,
        subject: str,
        key: tuple[str, str] | None = None,
    ) -> Row:
        run = self._runs.get(entry.get("run"))
        parent = None
        if family != "run" and run is not None:
            parent = run.row if family == "step" else run.step or run.row
        row = Row(
            len(self.rows) + 1,
            _LEVELS.get(family, 2),
            family,
            [entry["seq"], entry["seq"]],
            title,
            subject,
            entry["time"],
            parent.row if parent else None,
            entry.get("run"),
            ref_of(entry),
            entry.get("worker"),
            bytes=entry.get("bytes", 0),
            flags=["operator"] if entry.get("audience") == "operator" else [],
        )
        self.rows.append(row)
        if key is not None:
            self._open[key] = row
        return row

    def _join(self, row: Row, entry: EntryHead) -> Row:
        row.seq[1] = entry["seq"]
        row.entries += 1
        row.bytes += entry.get("bytes", 0)
        return row

    def _delta(self, row: Row, entry: EntryHead) -> None:
        self._with_deltas.add(row.row)
        row.preview = join_preview(
            row.preview, body_of(entry).get("delta", entry.get("preview", ""))
        )

    def _check_deltas(self, row: Row) -> None:
        """Mark a complete row whose deltas were removed; its stored message lends its preview."""
        had = row.row in self._with_deltas
        self._with_deltas.discard(row.row)
        if had or row.seq[0] > self._floor:
            return
        row.flag("deltas removed")
        if row.family == "text" and row.ref is not None:
            self._removed[row.ref] = row

    def _end_open(self, entry: EntryHead, status: str) -> None:
        """End what a run left open."""
        for key, row in list(self._open.items()):
            if row.run != entry.get("run") or row.family == "run":
                continue
            if row.status == "running":
                self._abandon(row, entry, status)
            if row.family not in ("tool", "call"):
                del self._open[key]

    def _abandon(self, row: Row, entry: EntryHead, status: str) -> None:
        self._with_deltas.discard(row.row)
        waits = row.family == "tool" and status in ("ok", "waiting")
        _close(row, entry, "waiting" if waits else "cancelled")
        if waits:
            row.ended = None
        else:
            row.flag("incomplete")


def _close(row: Row, entry: EntryHead, status: str) -> Row:
    row.status, row.ended = status, entry["time"]
    return row


def _of_run(entry: EntryHead) -> str:
    return str(entry.get("run") or "")
