"""Run our own checks; every finding is one line, and any finding fails."""

from __future__ import annotations

import sys

import docstrings
import imports
import size
import strings
import words
from files import tracked

CHECKS = (size, docstrings, imports, strings, words)


def main() -> int:
    """Return 1 when a check found something."""
    files = tracked()
    findings = [finding for check in CHECKS for finding in check.findings(files)]
    for note in size.notes(files):
        print(f"note: {note}")  # noqa: T201
    for finding in findings:
        print(finding)  # noqa: T201
    print(f"{len(CHECKS)} own checks, {len(files)} files, {len(findings)} findings")  # noqa: T201
    return 1 if findings else 0


sys.exit(main())
