"""What one message gives to the facts block: instructions, ledger lines, other words."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from backscroll.compaction.canon_forms import SUMMARY_ORIGIN
from backscroll.compaction.fact_lines import ENTRIES, Hit, best_of, window
from backscroll.compaction.fact_rules import CLASSES, FactClass, FactRule, Share
from backscroll.compaction.recalled import pieces_of
from backscroll.compaction.tags import clean_line
from backscroll.kernel.message import Message, Role

SENTENCE_CHARS = 240
OTHER_CHARS = 400
GOAL_HEAD_CHARS, GOAL_TAIL_CHARS = 400, 150
PASTED_FROM_CHARS, PASTED_READ_CHARS, PASTED_SENTENCES = 4_000, 1_000, 8
_ARGUMENT_DEPTH = 3

_SENTENCE_END = re.compile(r"(?<=[.!?])\s+|(?<=[。！？；])\s*|\s*\n\s*")
_WRITING = re.compile(
    r"(?:^|[_-])(?:write|edit|create|save|update|append|delete|remove|move|rename|patch|put|"
    r"replace|insert|mkdir|copy|touch|apply|upload|add)",
    re.IGNORECASE,
)
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])")
_DETERMINER = re.compile(r"^(?:the|our|my|a|an|this|that|and|so)\s+", re.IGNORECASE)
_FACTS_PART = re.compile(r"<facts>\n(.*)\n</facts>", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Found:
    """One fact of a message; entries of equal `key` replace each other, the newer wins.

    `handed_on` lines come from a stored summary and are printed as they are.
    """

    rule: str
    cls: FactClass
    key: tuple[str, ...]
    text: str
    share: Share | None = None
    wrote: bool = False
    handed_on: bool = False


def scan(
    message: Message,
    rules: Sequence[FactRule],
    headings: Sequence[str],
    read: Callable[[str], Sequence[Hit]] | None = None,
) -> tuple[Found, ...]:
    """Return the facts of a message, read from what was said and never from what was rewritten.

    `read` gives the best hits of a result, where somebody remembers them.
    """
    if message.origin == SUMMARY_ORIGIN:
        return tuple(_handed_on(message.text, headings))
    if message.role is Role.USER and message.origin is None:
        return tuple(_said_by_user(message.text, rules))
    if message.role is Role.ASSISTANT:
        ledger = _from_arguments(message, rules)
        return (*_standing(message.text, "assistant", rules), *ledger[:ENTRIES])
    if message.role is Role.TOOL and not pieces_of(message):
        hits = read(message.text) if read is not None else best_of(message.text, rules)
        return (*_from_result(message, hits), *_from_writes(message, rules))
    return ()


def goal_text(text: str) -> str:
    """Return the beginning and the end of the first user message, as one line."""
    if len(text) <= GOAL_HEAD_CHARS + GOAL_TAIL_CHARS:
        return clean_line(text)
    return clean_line(f"{text[:GOAL_HEAD_CHARS]} … {text[-GOAL_TAIL_CHARS:]}")


def sentences(text: str) -> list[str]:
    """Return the sentences of a text, each as one clean line."""
    return [line for part in split_sentences(text) if (line := clean_line(part))]


def split_sentences(text: str) -> list[str]:
    """Return the sentences of a text, word for word."""
    return [part.strip() for part in _SENTENCE_END.split(text) if part.strip()]


def match_sentence(sentence: str, source: str, rules: Sequence[FactRule]) -> Found | None:
    """Return the fact that the best rule makes of a sentence."""
    for rule in sorted(rules, key=lambda rule: rule.rank):
        match = rule.pattern.search(sentence) if source in rule.sources else None
        if match is None:
            continue
        room = max(0, SENTENCE_CHARS - (match.end() - match.start())) // 2
        text = sentence
        if len(sentence) > SENTENCE_CHARS:
            text = window(sentence, match.start(), match.end(), room, room)[:SENTENCE_CHARS]
        return Found(rule.name, rule.cls, _key(rule, match, text), text, rule.share)
    return None


def _said_by_user(text: str, rules: Sequence[FactRule]) -> Iterator[Found]:
    found = _sentences_read(text)
    read = "\n".join(found)
    rules = [rule for rule in rules if "user" in rule.sources and rule.may_hit(read)]
    left = OTHER_CHARS
    rest: list[str] = []
    for sentence in found:
        standing = match_sentence(sentence, "user", rules)
        if standing is not None:
            yield standing
        elif left > 0:
            rest.append(sentence[:left])
            left -= len(sentence)
    if rest:
        joined = " ".join(rest)
        yield Found("user_words", "other", ("other", joined.lower()), joined)


def _sentences_read(text: str) -> list[str]:
    """Return what is read of a user message; a very long one is taken for pasted material."""
    if len(text) <= PASTED_FROM_CHARS:
        return sentences(text)
    half = PASTED_SENTENCES // 2
    head = sentences(text[:PASTED_READ_CHARS])[:half]
    return head + sentences(text[-PASTED_READ_CHARS:])[-half:]


def _standing(text: str, source: str, rules: Sequence[FactRule]) -> Iterator[Found]:
    wanted = [rule for rule in rules if source in rule.sources and rule.may_hit(text)]
    for sentence in sentences(text) if wanted else ():
        found = match_sentence(sentence, source, wanted)
        if found is not None:
            yield found


def _key(rule: FactRule, match: re.Match[str], text: str) -> tuple[str, ...]:
    subject = next((v for k, v in match.groupdict().items() if k.startswith("key") and v), None)
    if subject is None:
        return (rule.cls, text.lower())
    stripped = subject.strip().lower()
    while (shorter := _DETERMINER.sub("", stripped)) != stripped:
        stripped = shorter
    return (rule.name, stripped)


def _from_arguments(message: Message, rules: Sequence[FactRule]) -> list[Found]:
    wanted = sorted((r for r in rules if "argument" in r.sources), key=lambda rule: rule.rank)
    out: list[Found] = []
    for call in message.tool_calls:
        for name, value in _walk(call.args or {}):
            found = _argument(call.name, name, value, wanted)
            if found is not None:
                out.append(found)
    return out


def _argument(tool: str, name: str, value: str, rules: Sequence[FactRule]) -> Found | None:
    for rule in rules:
        if rule.argument is None or not rule.argument.fullmatch(name):
            continue
        match = rule.pattern.search(value)
        if match is not None:
            return _ledger(rule, match, value, tool)
    return None


def _walk(value: Any, name: str = "", depth: int = 0) -> Iterator[tuple[str, str]]:
    """Yield the texts in arguments with the name each stands under."""
    if isinstance(value, str):
        yield name, value
    elif isinstance(value, Mapping) and depth < _ARGUMENT_DEPTH:
        for key, item in value.items():
            yield from _walk(item, str(key), depth + 1)
    elif isinstance(value, list | tuple) and depth < _ARGUMENT_DEPTH:
        for item in value:
            yield from _walk(item, name, depth + 1)


def _from_result(message: Message, hits: Sequence[Hit]) -> Iterator[Found]:
    for hit in hits:
        match = hit.rule.pattern.search(hit.line)
        if match is not None:
            yield _ledger(hit.rule, match, hit.line, message.name or "")


def _from_writes(message: Message, rules: Sequence[FactRule]) -> Iterator[Found]:
    wanted = [rule for rule in rules if "writes" in rule.sources]
    if not wanted or not message.writes:
        return
    for _, name in _walk(message.writes):
        for rule in wanted:
            match = rule.pattern.match(name)
            if match is not None:
                yield _ledger(rule, match, name, message.name or "")


def _ledger(rule: FactRule, match: re.Match[str], line: str, tool: str) -> Found:
    """Return the ledger line of a hit."""
    share = rule.share or "value"
    if rule.printed == "operation":
        path = clean_line(match.group("key"))[:SENTENCE_CHARS]
        wrote = _WRITING.search(_CAMEL.sub("_", tool)) is not None
        text = f"{'wrote' if wrote else 'read'} {path}"
        return Found(rule.name, rule.cls, (rule.name, path), text, share, wrote)
    if rule.printed == "start":
        text = clean_line(line)[: rule.width].strip()
    else:
        text = clean_line(window(line, match.start(), match.end(), rule.width, rule.width))
    return Found(rule.name, rule.cls, _key(rule, match, text), text, share)


def _handed_on(text: str, headings: Sequence[str]) -> Iterator[Found]:
    """Yield the lines of a stored summary's own facts block."""
    part = _FACTS_PART.search(text)
    cls: FactClass = "ledger"
    for line in part.group(1).splitlines() if part else ():
        if line in headings:
            cls = CLASSES[headings.index(line)]
        elif line.strip():
            shown = line.strip()
            share: Share = "path" if shown.startswith(("wrote ", "read ")) else "value"
            yield Found("handed_on", cls, (cls, shown), shown, share, handed_on=True)
