"""The closed list of warnings and reasons."""

from __future__ import annotations

from typing import get_args

from backscroll.compaction.reasons import REASONS, Reason, Warned


def test_every_reason_has_one_sentence() -> None:
    """The sentences and the codes are the same list."""
    assert tuple(REASONS) == get_args(Reason)
    assert all(text.endswith(".") and text.count(". ") == 0 for text in REASONS.values())


def test_a_warning_knows_its_sentence() -> None:
    """A warning carries its numbers, and gives the sentence of its reason."""
    warned = Warned("window_assumed", {"window": 32_768})

    assert warned.text == REASONS["window_assumed"]
    assert warned.data["window"] == 32_768
