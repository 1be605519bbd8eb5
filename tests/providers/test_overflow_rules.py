"""The table of refusals: its form, and that ordinary sentences match nothing."""

from __future__ import annotations

import pytest
from backscroll.providers import overflow_rules as rules

TABLES = (rules.HEAL, rules.TPM_NUMBERS, rules.VETO, rules.BYTES, rules.OVERFLOW)

ORDINARY = (
    "the model is loading, this takes a moment",
    "temperature exceeds maximum value 2",
    "max_tokens is too large: 40000. this model supports at most 16384 completion tokens",
    "invalid schema for function 'x': 'context' is not of type 'object'",
    "context deadline exceeded",
    "the window function is not defined",
    "unrecognized request argument supplied: input_length",
)


def test_codes_are_lower_case() -> None:
    """Codes are compared in lower case, so the table holds nothing else."""
    codes = {*rules.OVERFLOW_CODES, *rules.VETO_CODES, rules.TPM_CODE, rules.BYTES_CODE}

    assert all(code == code.lower() for code in codes)
    assert not rules.OVERFLOW_CODES & rules.VETO_CODES


def test_patterns_are_lower_case_and_name_only_known_numbers() -> None:
    """Text is searched in lower case; numbers are used, limit, output and extra."""
    for wording in (wording for table in TABLES for wording in table):
        literal = wording.pattern.pattern.replace(r"\D", "").replace(r"(?P<", "")
        assert literal == literal.lower(), wording.name
        assert set(wording.pattern.groupindex) <= {"used", "limit", "output", "extra"}


@pytest.mark.parametrize("text", ORDINARY)
def test_ordinary_sentences_match_nothing_about_size(text: str) -> None:
    """OVF1: no false positive."""
    tables = (rules.HEAL, rules.BYTES, rules.OVERFLOW)

    assert [w.name for table in tables for w in table if w.pattern.search(text)] == []
