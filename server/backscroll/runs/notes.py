"""Notes for operators as entries of a log, and how a note is kept once per thread."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from backscroll.agui.refusal import RequestRefused
from backscroll.kernel.canon import canonical_json, clean_text
from backscroll.kernel.request import Note
from backscroll.store.entry import Kind, NewEntry

_IDS = ("threadId", "runId")


def operator_entry(
    kind: Kind, type_: str, body: Mapping[str, Any], run: str, ref: str, preview: str
) -> NewEntry:
    """Return an entry that only operators see."""
    data = clean_text(canonical_json(body)).encode()
    return NewEntry(kind, type_, data, "operator", run, ref, clean_text(preview))


def note_entry(note: Note, run: str = "") -> NewEntry:
    """Return a note as an entry; one of no run belongs to the thread alone."""
    body: dict[str, Any] = {"kind": note.kind, "text": note.text}
    if note.key is not None:
        body["key"] = note.key
    return operator_entry("note", note.kind, {**body, **note.data}, run, "", note.text)


def note_blob(key: str) -> tuple[str, bytes]:
    """Return the blob, by its sha256, whose presence says that a note of this key was written."""
    data = f"note:{key}".encode("utf-8", "surrogatepass")
    return hashlib.sha256(data).hexdigest(), data


def refusal_note(refusal: RequestRefused, run_id: str | None) -> Note:
    """Return what operators are told of a refused request."""
    details = dict(refusal.details)
    if not refusal.ids:
        # Of a request that could not be read, the ids are among the details.
        details = {name: value for name, value in details.items() if name not in _IDS}
    data: dict[str, Any] = {"code": refusal.code}
    if run_id is not None:
        data["refused_run"] = run_id
    if details:
        data["details"] = details
    return Note("refused", str(refusal), data=data)
