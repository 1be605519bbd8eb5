"""Whether a summariser's answer may be used: judged by structure, never by words in the text."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from backscroll.compaction.summariser import SummaryDraft
from backscroll.kernel.usage import FinishReason

UNVERIFIED = " [unverified]"
CLIP_AT = 1.2
MIN_TOKENS, MIN_TOKENS_ABOVE = 40, 2_000
MAX_UNGROUNDED, MAX_UNGROUNDED_SHARE = 2, 0.3

# What must have been in the material: an invented one would be acted upon.
_IDENTIFIER = re.compile(
    r"""
    (?P<uuid>[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12})
  | (?P<path>(?<![\w/])(?:~|\.{1,2})?/[\w.@+-]+(?:/[\w.@+-]+)*/?
      | [\w.@+-]+(?:/[\w.@+-]+){2,}
      | [\w.@+-]+/[\w@+-]+\.\w{1,8})
  | (?P<hash>(?<![\w-])(?=[0-9a-f]*[0-9])(?=[0-9a-f]*[a-f])[0-9a-f]{7,64}(?![\w-]))
  | (?P<id>(?<![\w-])[A-Za-z][A-Za-z0-9]*(?:[-_][A-Za-z0-9]+)*[-_](?=[A-Za-z]*[0-9])[A-Za-z0-9]+)
  | (?P<number>(?<![\w.])[0-9]{1,3}(?:[,'\u2019\u00a0\u202f_][0-9]{3})+(?!\w)
      | (?<!\w)[0-9]{4,}(?!\w))
    """,
    re.VERBOSE,
)
_GROUPED = re.compile(r"(?<=[0-9])[,'\u2019\u00a0\u202f_](?=[0-9]{3}(?![0-9]))")
_CLOSING = ".,;:!?"


@dataclass(frozen=True, slots=True)
class Accepted:
    """An answer that may be used, with unverified identifiers marked."""

    text: str
    clipped: bool = False
    ungrounded: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Rejected:
    """An answer that counts as a failure, and why."""

    why: str
    ungrounded: tuple[str, ...] = ()


def accept(
    draft: SummaryDraft,
    material: str,
    source_tokens: int,
    max_tokens: int,
    count: Callable[[str], int],
    max_shrink: float = 0.8,
) -> Accepted | Rejected:
    """Judge an answer to `material`, which stands for `source_tokens` of the conversation."""
    text = draft.text.strip()
    tokens = count(text)
    why = _refusal(draft, text) or _size_problem(tokens, source_tokens, max_shrink)
    if why is not None:
        return Rejected(why)
    clipped = draft.finish_reason is FinishReason.MAX_TOKENS
    if clipped:
        text = text[: text.rfind("\n")].rstrip() if "\n" in text else text
    if count(text) > CLIP_AT * max_tokens:
        text, clipped = clip(text, max_tokens, count), True
    if not text:
        return Rejected("nothing is left after cutting it to its limit")
    marked, total, ungrounded = ground(text, material)
    if len(ungrounded) > MAX_UNGROUNDED and len(ungrounded) > MAX_UNGROUNDED_SHARE * total:
        return Rejected(
            f"{len(ungrounded)} of {total} identifiers are not in the material", ungrounded
        )
    return Accepted(marked, clipped, ungrounded)


def clip(text: str, max_tokens: int, count: Callable[[str], int]) -> str:
    """Return the text cut at the end of a section, else of a line, within the limit."""
    lines = text.split("\n")
    total, end, section_end = 0, 0, 0
    for number, line in enumerate(lines):
        if line.startswith("#") and number:
            section_end = number
        total += count(line + "\n")
        if total > max_tokens:
            break
        end = number + 1
    kept = section_end if 2 * section_end >= end else end
    return "\n".join(lines[:kept]).rstrip()


def ground(text: str, material: str) -> tuple[str, int, tuple[str, ...]]:
    """Mark what is not in the material; returns the text, how many were found, and which not."""
    known = _plain(material)
    seen: dict[str, bool] = {}
    out: list[str] = []
    at = 0
    for start, end in _identifiers(text):
        item = text[start:end]
        if item not in seen:
            seen[item] = _occurs(_plain(item), known)
        out.append(text[at:end] if seen[item] else text[at:end] + UNVERIFIED)
        at = end
    out.append(text[at:])
    return "".join(out), len(seen), tuple(item for item, found in seen.items() if not found)


def _refusal(draft: SummaryDraft, text: str) -> str | None:
    if draft.has_calls:
        return "it asks for a tool call"
    if draft.refused:
        return "the provider refused"
    if not text:
        return "it is blank"
    if text.startswith("{") and _is_error_object(text):
        return "it is an error object"
    return None


def _size_problem(tokens: int, source_tokens: int, max_shrink: float) -> str | None:
    if tokens >= max_shrink * source_tokens:
        return f"it has {tokens} tokens and its source {source_tokens}: not smaller"
    if source_tokens > MIN_TOKENS_ABOVE and tokens < MIN_TOKENS:
        return f"it has only {tokens} tokens for a source of {source_tokens}"
    return None


def _is_error_object(text: str) -> bool:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return False
    return isinstance(value, dict) and "error" in value


def _identifiers(text: str) -> Iterator[tuple[int, int]]:
    for match in _IDENTIFIER.finditer(text):
        end = match.end()
        while end > match.start() and text[end - 1] in _CLOSING:
            end -= 1
        if end > match.start():
            yield match.start(), end


def _plain(text: str) -> str:
    return _GROUPED.sub("", text).casefold()


def _occurs(item: str, text: str) -> bool:
    """Say whether the item stands in the text by itself, not inside a longer word or number."""
    at = text.find(item)
    while at >= 0:
        before, after = text[at - 1 : at], text[at + len(item) : at + len(item) + 1]
        if not (_wordy(before) and _wordy(item[0])) and not (_wordy(after) and _wordy(item[-1])):
            return True
        at = text.find(item, at + 1)
    return False


def _wordy(char: str) -> bool:
    return char.isascii() and char.isalnum()
