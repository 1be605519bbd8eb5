"""Reading a provider's refusal: was it about size, and which numbers does it name?"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from backscroll.kernel.errors import Refusal
from backscroll.providers.overflow_rules import (
    BYTES,
    BYTES_CODE,
    HEAL,
    OVERFLOW,
    OVERFLOW_CODES,
    OVERFLOW_STATUSES,
    TPM,
    TPM_CODE,
    TPM_NUMBERS,
    VETO,
    VETO_CODES,
    VETO_STATUSES,
    Wording,
)

MAX_DEPTH = 8
MAX_CHARS = 64 * 1024
MAX_PARSED_CHARS = 2 * 1024 * 1024

_CODE_KEYS = frozenset({"code", "type", "status", "name", "__type", "error_code"})


@dataclass(slots=True)
class _Facts:
    """What a refusal holds, however deep its provider has wrapped it."""

    codes: set[str] = field(default_factory=set)
    numbers: dict[str, int] = field(default_factory=dict)
    texts: list[str] = field(default_factory=list)
    chars: int = 0

    @property
    def text(self) -> str:
        return "\n".join(self.texts)


def recognise(status: int | None, body: Any, event: Any = None) -> Refusal:
    """Return what a refusal is about; never raises, whatever the body holds.

    `body` is the error response, as text, bytes or parsed; `event` an error event of a stream.
    """
    facts = _Facts()
    for source in (body, event):
        _flatten(source, 0, facts)
    return _classify(status, facts)


def _classify(status: int | None, facts: _Facts) -> Refusal:
    text = facts.text
    coded = next((code for code in sorted(facts.codes) if code in OVERFLOW_CODES), None)
    if coded is not None:
        return _overflow(coded, facts)
    if (found := _first(HEAL, text)) is not None:
        return Refusal("heal", rule=found[0])
    if TPM_CODE in facts.codes and TPM.search(text):
        numbers = found[1] if (found := _first(TPM_NUMBERS, text)) else {}
        return Refusal("over_tpm", numbers.get("used"), None, numbers.get("limit"), "over_tpm")
    if (why := _veto(status, facts)) is not None:
        return Refusal("other", rule=why)
    if BYTES_CODE in facts.codes:
        return Refusal("overflow_bytes", rule=BYTES_CODE)
    if (found := _first(BYTES, text)) is not None:
        return Refusal("overflow_bytes", rule=found[0])
    if status in OVERFLOW_STATUSES and (found := _first(OVERFLOW, text)) is not None:
        return _overflow(found[0], facts)
    if status == 413:
        return Refusal("overflow_bytes", rule="status_413")
    return Refusal("other")


def _veto(status: int | None, facts: _Facts) -> str | None:
    """Return what shows that a refusal is about something else than size."""
    if status is not None and (status in VETO_STATUSES or status > 500):
        return f"status_{status}"
    coded = next((code for code in sorted(facts.codes) if code in VETO_CODES), None)
    if coded is not None:
        return coded
    found = _first(VETO, facts.text)
    return None if found is None else found[0]


def _overflow(rule: str, facts: _Facts) -> Refusal:
    numbers = dict(facts.numbers)
    for wording in OVERFLOW:
        if found := _match(wording, facts.text):
            for name, value in found.items():
                numbers.setdefault(name, value)
    used, output, limit = numbers.get("used"), numbers.get("output"), numbers.get("limit")
    if used is not None:
        used += numbers.get("extra", 0)
    fits = None not in (used, output, limit) and used < limit  # type: ignore[operator]  # checked
    return Refusal("sum" if fits else "overflow", used, output, limit, rule)


def _first(wordings: Iterable[Wording], text: str) -> tuple[str, dict[str, int]] | None:
    for wording in wordings:
        found = _match(wording, text)
        if found is not None:
            return wording.name, found
    return None


def _match(wording: Wording, text: str) -> dict[str, int] | None:
    found = wording.pattern.search(text)
    if found is None:
        return None
    groups = {name: value for name, value in found.groupdict().items() if value}
    return {name: int(re.sub(r"\D", "", value)) for name, value in groups.items()}


def _flatten(value: Any, depth: int, facts: _Facts) -> None:
    """Collect codes, numbers and texts; JSON inside a string is opened too."""
    if facts.chars >= MAX_CHARS or depth > MAX_DEPTH:
        return
    if isinstance(value, bytes | bytearray):
        value = bytes(value).decode("utf-8", "replace")
    if isinstance(value, str):
        inner = _opened(value)
        if inner is not None:
            _flatten(inner, depth + 1, facts)
            return
        kept = value[: MAX_CHARS - facts.chars].lower()
        facts.texts.append(kept)
        facts.chars += len(kept) + 1
        return
    for key, item in _members(value):
        _note(key, item, facts)
        _flatten(item, depth + 1, facts)


def _note(key: Any, item: Any, facts: _Facts) -> None:
    if key in _CODE_KEYS and isinstance(item, str | int):
        facts.codes.add(str(item)[:200].lower())
    elif key == "n_ctx" and isinstance(item, int):
        facts.numbers["limit"] = item
    elif key == "n_prompt_tokens" and isinstance(item, int):
        facts.numbers["used"] = item


def _members(value: Any) -> Iterator[tuple[Any, Any]]:
    if isinstance(value, Mapping):
        yield from value.items()
    elif isinstance(value, list | tuple):
        yield from ((None, item) for item in value)


def _opened(text: str) -> Any:
    """Return the object or list that a text is the JSON of, else None."""
    if len(text) > MAX_PARSED_CHARS or text[:64].lstrip()[:1] not in ("{", "["):
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None
