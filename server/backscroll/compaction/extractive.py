"""A summariser without a model: it picks lines by score, so equal input gives equal bytes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest

from backscroll.compaction.fact_lines import result_hits, window
from backscroll.compaction.fact_rules import RULES, FactRule
from backscroll.compaction.fact_scan import match_sentence, split_sentences
from backscroll.compaction.pieces import PieceCounter
from backscroll.compaction.summariser import (
    TRANSCRIPT_HEAD,
    SummaryDraft,
    SummaryPart,
)
from backscroll.compaction.tags import clean_line
from backscroll.kernel.usage import FinishReason

SECTIONS = (
    "Goal",
    "Constraints and preferences",
    "Decisions and why",
    "Done",
    "Open",
    "Errors and fixes",
    "Artifacts",
    "Key values",
)
"""The headings of a summary, in order; the prompt of the model summariser names them too."""

STANDING_SCORE, USER_SCORE = 6.0, 1.0
SCORES = {"error": 4.0, "path": 3.0, "id": 3.0, "value": 2.0}
LEAST_SCORE, LEAST_LINES = 0.5, 6
CALL_CHARS, LINE_CHARS = 120, 400
_SECTION_OF = {
    "constraint": "Constraints and preferences",
    "decision": "Decisions and why",
    "update": "Decisions and why",
    "error": "Errors and fixes",
    "path": "Artifacts",
    "command": "Done",
}

_DEFAULT_SECTION = {"user": "Goal", "assistant": "Done", "call": "Done"}
_STANDING_SOURCES = {"user": "user", "assistant": "assistant", "notes": "user"}
_OPERATIONS = ("wrote ", "read ")


@dataclass(frozen=True, slots=True)
class _Line:
    """A line that may be taken: a piece of the material, word for word."""

    text: str
    section: str
    score: float
    at: int
    key: tuple[str, ...]


class ExtractiveSummariser:
    """Writes notes made of lines of the material, never of anything else."""

    kind = "extractive"
    window_tokens: int | None = None

    def __init__(self, rules: Sequence[FactRule] = RULES) -> None:
        self._rules = tuple(rules)

    async def summarise(self, part: SummaryPart) -> SummaryDraft:
        """Return the chosen lines under the headings of a summary."""
        return SummaryDraft(extract(part, self._rules), FinishReason.STOP)


def extract(part: SummaryPart, rules: Sequence[FactRule] = RULES) -> str:
    """Return lines of the material, the best by score and the newest first, within the limit."""
    counter = PieceCounter()
    left = part.max_tokens
    taken: list[_Line] = []
    sections: set[str] = set()
    # Where the facts say everything already, saying it again is better than saying nothing.
    found = _candidates(part, rules) or _candidates(replace(part, covered=frozenset()), rules)
    for line in sorted(found, key=lambda line: (-line.score, -line.at)):
        if len(taken) >= LEAST_LINES and line.score <= LEAST_SCORE:
            break
        cost = counter.count(f"- {line.text}\n")
        if line.section not in sections:
            cost += counter.count(f"## {line.section}\n")
        if cost <= left:
            left -= cost
            taken.append(line)
            sections.add(line.section)
    return _write(taken)


def _write(lines: Sequence[_Line]) -> str:
    out: list[str] = []
    for section in SECTIONS:
        inside = sorted((x for x in lines if x.section == section), key=lambda line: line.at)
        if inside:
            out += [f"## {section}", *(f"- {line.text}" for line in inside)]
    return "\n".join(out)


def _candidates(part: SummaryPart, rules: Sequence[FactRule]) -> list[_Line]:
    """Return one line per key, the newest; what the facts block says is not among them."""
    said = {key for text in part.covered for key in (("text", text), _key(text, rules))}
    paths = {text.partition(" ")[2] for text in part.covered if text.startswith(_OPERATIONS)}
    newest: dict[tuple[str, ...], _Line] = {}
    pieces = [*_from_notes(part.notes), *_from_transcript(part.transcript, rules)]
    for at, (text, source, section) in enumerate(pieces):
        key = _key(text, rules)
        if key in said or ("text", clean_line(text)) in said:
            continue
        if source == "call" and any(path in text for path in paths):
            continue
        newest[key] = _line(text, source, section, at, key, rules)
    return list(newest.values())


def _line(
    text: str, source: str, section: str, at: int, key: tuple[str, ...], rules: Sequence[FactRule]
) -> _Line:
    standing = match_sentence(text, _STANDING_SOURCES.get(source, ""), rules)
    score = STANDING_SCORE if standing else 0.0
    shares = {
        rule.share for rule in rules if "result" in rule.sources and rule.pattern.search(text)
    }
    score += sum(SCORES.get(share or "", 0.0) for share in shares)
    score += USER_SCORE if source == "user" else 0.0
    # Rounded, so that a few letters more do not weigh more than being newer.
    score = round(score - min(2.0, len(text) / 400), 1)
    if not section:
        names = [standing.rule] if standing else [name for name in SCORES if name in shares]
        section = next((_SECTION_OF[name] for name in names if name in _SECTION_OF), "")
    return _Line(text, section or _DEFAULT_SECTION.get(source, "Key values"), score, at, key)


def _from_notes(notes: str) -> Iterator[tuple[str, str, str]]:
    """Yield the lines of the notes so far, each with the heading it stood under."""
    section = ""
    for line in notes.splitlines():
        heading = line.strip().lstrip("#").strip()
        if line.startswith("#"):
            section = heading if heading in SECTIONS else section
        elif line.strip():
            yield line.strip().removeprefix("- ")[:LINE_CHARS], "notes", section


def _from_transcript(transcript: str, rules: Sequence[FactRule]) -> Iterator[tuple[str, str, str]]:
    """Yield pieces of a transcript: sentences, lines of results that are no rows, calls."""
    heads = list(TRANSCRIPT_HEAD.finditer(transcript))
    for head, following in zip_longest(heads, heads[1:]):
        text = transcript[head.end() : following.start() if following else None]
        kind = head["kind"]
        if kind == "call":
            yield f"{head['name'] or ''} {text[:CALL_CHARS].strip()}".strip(), kind, ""
        elif kind == "tool":
            for hit in result_hits(text, rules):
                room = (LINE_CHARS - (hit.end - hit.start)) // 2
                yield window(hit.line, hit.start, hit.end, room, room), kind, ""
        else:
            for sentence in split_sentences(text):
                yield sentence[:LINE_CHARS], kind, ""


def _key(text: str, rules: Sequence[FactRule]) -> tuple[str, ...]:
    """Return what makes two lines one: the subject of an update, else the words."""
    found = match_sentence(clean_line(text), "user", rules)
    return found.key if found else ("line", clean_line(text).lower())
