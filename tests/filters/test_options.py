"""What filters are made with is checked when they are made."""

from __future__ import annotations

from typing import Any

import pytest
from backscroll.filters.options import check_choice, check_counts, check_template
from backscroll.kernel.errors import AssemblyError


@pytest.mark.parametrize("wrong", [0, -1, "3", 2.5, True, None])
def test_counts(wrong: Any) -> None:
    """A count is a whole number, not below the least."""
    with pytest.raises(AssemblyError, match="window: expected a whole number, 1 or more"):
        check_counts(window=wrong)
    check_counts(0, window=0, recent=5)


def test_choices() -> None:
    """A choice names what may be chosen."""
    check_choice("on_error", "fail", "fail", "skip")
    with pytest.raises(AssemblyError, match="expected 'fail' or 'skip', got 'stop'"):
        check_choice("on_error", "stop", "fail", "skip")


def test_templates() -> None:
    """TXT2: a placeholder that is never filled, or a broken template, is refused."""
    check_template("template", None, ())
    check_template("template", "{question} {{}}", {"question"})
    with pytest.raises(AssemblyError, match="unknown placeholder {nmae}"):
        check_template("template", "{nmae}", {"question"})
    with pytest.raises(AssemblyError, match="template: "):
        check_template("template", "{", {"question"})
