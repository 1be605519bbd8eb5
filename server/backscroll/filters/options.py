"""Checks of what filters are made with; they raise when the filter is made."""

from __future__ import annotations

from collections.abc import Collection

from backscroll.kernel.errors import AssemblyError
from backscroll.kernel.texts import placeholders


def check_counts(least: int = 1, **counts: object) -> None:
    """Raise `invalid_option` for a number that is not whole, or below the least."""
    for name, value in counts.items():
        if not isinstance(value, int) or isinstance(value, bool) or value < least:
            message = f"{name}: expected a whole number, {least} or more, got {value!r}"
            raise AssemblyError("invalid_option", message, name)


def check_choice(name: str, value: object, *allowed: object) -> None:
    """Raise `invalid_option` for a value that is not one of those allowed."""
    if value not in allowed:
        words = " or ".join(repr(item) for item in allowed)
        raise AssemblyError("invalid_option", f"{name}: expected {words}, got {value!r}", name)


def check_template(name: str, template: str | None, names: Collection[str]) -> None:
    """Raise `invalid_text` for a template with a placeholder that is not filled here."""
    if template is None:
        return
    try:
        unknown = sorted(placeholders(template) - set(names))
    except ValueError as error:
        raise AssemblyError("invalid_text", f"{name}: {error}", name) from error
    if unknown:
        message = f"{name}: unknown placeholder {{{unknown[0]}}}"
        raise AssemblyError("invalid_text", message, name)
