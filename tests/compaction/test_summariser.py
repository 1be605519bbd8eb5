"""How a transcript names its entries."""

from __future__ import annotations

from backscroll.compaction.summariser import TRANSCRIPT_HEAD, SummaryDraft, transcript_head


def test_heads_are_read_back() -> None:
    """What begins an entry is written and read in one place."""
    text = transcript_head(118, "tool", "read_file") + "[#1 user] inside\n"
    text += (
        transcript_head(None, "assistant") + "ok\n" + transcript_head(120, "call", "a\nb") + "{}"
    )

    heads = [(m["ref"], m["kind"], m["name"]) for m in TRANSCRIPT_HEAD.finditer(text)]

    assert heads == [("118", "tool", "read_file"), ("-", "assistant", None), ("120", "call", "a b")]


def test_a_draft_claims_nothing() -> None:
    """A draft is text until something else is known of it."""
    draft = SummaryDraft("text")

    assert (draft.has_calls, draft.refused, draft.usage) == (False, False, None)
