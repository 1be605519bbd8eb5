"""Notes as entries."""

from __future__ import annotations

import hashlib
import json

from backscroll.agui.refusal import Problem, RequestRefused
from backscroll.kernel.request import Note
from backscroll.runs.notes import note_blob, note_entry, operator_entry, refusal_note


def test_a_note_is_an_operator_entry() -> None:
    """Kind, text, key and data are in the body; the text is the preview."""
    entry = note_entry(Note("repair", "a result was moved", "k", {"id": "m"}), "r1")

    assert (entry.kind, entry.type, entry.audience) == ("note", "repair", "operator")
    assert (entry.run, entry.preview) == ("r1", "a result was moved")
    assert json.loads(entry.body) == {
        "kind": "repair",
        "text": "a result was moved",
        "key": "k",
        "id": "m",
    }


def test_lone_surrogates_do_not_reach_the_log() -> None:
    """E7: what cannot be written as UTF-8 is replaced before it is stored."""
    entry = operator_entry("note", "x", {"text": "a\ud800"}, "", "", "a\ud800")

    assert json.loads(entry.body) == {"text": "a\ufffd"}
    assert entry.preview == "a\ufffd"


def test_the_mark_of_a_key_is_a_blob_of_its_own_hash() -> None:
    """A blob is named by the sha256 of its bytes, that of a note's key too."""
    name, data = note_blob("repair:m1")

    assert name == hashlib.sha256(data).hexdigest()
    assert note_blob("repair:m2")[0] != name


def test_a_refusal_is_told_with_its_code_and_request() -> None:
    """The refused run, which never was one, is named in the body and not as the entry's run."""
    refusal = RequestRefused("thread_busy", "Busy with r1.", {"runId": "r1"})

    note = refusal_note(refusal.for_request("t", "r2"), "r2")

    assert (note.kind, note.text, note.key) == ("refused", "Busy with r1.", None)
    assert note.data == {"code": "thread_busy", "refused_run": "r2", "details": {"runId": "r1"}}
    assert note_entry(note).run == ""


def test_a_refusal_of_what_could_not_be_read() -> None:
    """Its ids are among its details, and are not said twice."""
    refusal = RequestRefused.of_problems([Problem("messages", "is missing")], threadId="t")

    note = refusal_note(refusal, None)

    assert note.data["code"] == "invalid_input"
    assert list(note.data["details"]) == ["problems"]
