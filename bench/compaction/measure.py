"""What a strategy keeps and what it costs, over all calls of a session."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from backscroll.compaction.canon_forms import canon_sent, references
from backscroll.compaction.recall import Recall
from backscroll.compaction.recalled import pieces_in, recalled_message
from backscroll.compaction.texts import CompactionTexts
from backscroll.compaction.tokens import Sizes
from backscroll.kernel.message import Message
from session import Call, Place, Session
from strategies import Strategy
from wires import broken_pairs, refusals

EVERY, RECALL_EVERY = 20, 6
CACHED, UNCACHED = 0.1, 1.25
OLD = "0-200"
COHORTS = {OLD: (0, 200), "400-600": (400, 600), "800-1000": (800, 1_000)}
DECAY_AT = (250, 500, 750, 1_000, 1_500, 2_000, 2_500)
INSTRUCTIONS = ("constraint", "update", "decision")


@dataclass(slots=True)
class Measured:
    """The figures of one strategy over one session."""

    facts: float = 0.0
    families: dict[str, float] = field(default_factory=dict)
    ages: tuple[float, float, float] = (0.0, 0.0, 0.0)
    stale: int = 0
    recall: float = 0.0
    sent: float = 0.0
    cost: float = 0.0
    extends: float = 0.0
    prefix: float = 0.0
    over_budget: int = 0
    broken: int = 0
    refused: int = 0
    failed: int = 0
    calls: int = 0
    summariser_tokens: int = 0
    ms_p50: float = 0.0
    ms_p95: float = 0.0
    cohorts: dict[str, dict[int, float]] = field(default_factory=dict)
    instructions: dict[int, float] = field(default_factory=dict)


def measure(session: Session, make: Callable[[], Strategy], room: int, ours: bool) -> Measured:
    """Play a session through a strategy; `room` is the budget of its messages, raw.

    What is asked of `ours` alone: what recall finds, and what strict servers refuse.
    """
    run = _Run(session, make(), room, ours)
    for number, call in enumerate(session.calls):
        run.call(number, call)
    return run.result()


class _Run:
    def __init__(self, session: Session, strategy: Strategy, room: int, ours: bool) -> None:
        self._session, self._strategy, self._room = session, strategy, room
        self._ours = ours
        self._sizes = Sizes()
        self._forms: dict[int, tuple[Message, str]] = {}
        self._last: list[str] = []
        self._hits: dict[str, list[bool]] = defaultdict(list)
        self._thirds: tuple[list[bool], list[bool], list[bool]] = ([], [], [])
        self._ms: list[float] = []
        self._sent, self._cached, self._shared = 0, 0, 0
        self._whole = 0
        self._extends = 0
        self._out = Measured(cohorts={name: {} for name in COHORTS})

    def call(self, number: int, call: Call) -> None:
        """Make one call, and look for facts after every twentieth."""
        work = self._strategy.work
        before, aside = time.process_time(), work.aside_ms
        view = self._strategy.view(call.history)
        spent = (time.process_time() - before) * 1_000
        self._ms.append(spent - (work.aside_ms - aside))
        self._count(call.history, view)
        self._out.broken += broken_pairs(view)
        if number % EVERY == EVERY - 1:
            self._probe(call, "\n".join(map(_shown, view)))
            self._out.refused += len(refusals(view)) if self._ours else 0

    def result(self) -> Measured:
        """Return the figures."""
        out, calls, work = self._out, len(self._session.calls), self._strategy.work
        out.facts = _share([hit for hits in self._hits.values() for hit in hits])
        out.families = {family: _share(hits) for family, hits in self._hits.items()}
        first, second, third = map(_share, self._thirds)
        out.ages = (first, second, third)
        out.sent = self._sent / self._whole
        out.calls, out.summariser_tokens, out.failed = work.calls, work.tokens, work.failed
        paid = CACHED * self._cached + UNCACHED * (self._sent - self._cached)
        out.cost = (paid + out.summariser_tokens) / calls
        out.extends = self._extends / (calls - 1)
        out.prefix = self._cached / max(1, self._shared)
        out.ms_p50, out.ms_p95 = quantile(self._ms, 0.5), quantile(self._ms, 0.95)
        out.recall = _recalled(self._session.calls[-1]) if self._ours else 0.0
        return out

    def _count(self, history: Sequence[Message], view: Sequence[Message]) -> None:
        sizes = [self._sizes.message(message) for message in view]
        forms = [self._form(message) for message in view]
        same = 0
        while same < min(len(forms), len(self._last)) and forms[same] == self._last[same]:
            same += 1
        self._extends += bool(self._last) and same == len(self._last)
        self._cached += sum(sizes[:same])
        self._shared += sum(sizes) if self._last else 0
        self._sent += sum(sizes)
        self._whole += self._sizes.messages(history)
        self._out.over_budget += sum(sizes) > self._room
        self._last = forms

    def _form(self, message: Message) -> str:
        found = self._forms.get(id(message))
        if found is None or found[0] is not message:
            found = self._forms[id(message)] = (message, canon_sent(message))
        return found[1]

    def _probe(self, call: Call, shown: str) -> None:
        said, length = call.places, len(call.history)
        newest = {place.fact.subject: place.fact for place in said if place.fact.subject}
        found: list[tuple[Place, bool]] = []
        for place in said:
            fact, hit = place.fact, place.fact.probe in shown
            if fact.subject is not None and newest[fact.subject] is not fact:
                self._out.stale += hit and not _newer_shown(said, place, shown)
                continue
            found.append((place, hit))
            self._hits[fact.family].append(hit)
            self._thirds[min(2, 3 * place.at // length)].append(hit)
        for mark in (mark for mark in DECAY_AT if mark <= length):
            self._decay(found, mark)

    def _decay(self, found: Sequence[tuple[Place, bool]], mark: int) -> None:
        """Note, the first time a mark is passed, what is left of each cohort."""
        if mark in self._out.cohorts[OLD]:
            return
        for name, (low, high) in COHORTS.items():
            if mark >= high:
                inside = [(place, hit) for place, hit in found if low <= place.at < high]
                self._out.cohorts[name][mark] = _share([hit for _, hit in inside])
        old = [hit for p, hit in found if p.at < COHORTS[OLD][1] and _instructs(p)]
        self._out.instructions[mark] = _share(old)


def quantile(values: Sequence[float], share: float) -> float:
    """Return the value that this share of all values does not exceed."""
    return sorted(values)[int(share * (len(values) - 1))]


def _recalled(call: Call) -> float:
    """Return the share of facts that the recall tool finds by exact value or by reference."""
    texts, sizes = CompactionTexts(), Sizes()
    recall, history = Recall(sizes, texts), call.history
    refs = references(history)
    at = {message.id: n for n, message in enumerate(history) if message.id is not None}
    found: list[bool] = []
    for place in call.places[::RECALL_EVERY]:
        asked = [(f"#{refs[place.at]}", None, part) for part in range(1, 20)]
        for ref, query, part in ((None, place.fact.probe, 1), *asked):
            line = recall.look_up(history, ref, query, part)
            text = recalled_message(pieces_in(line), at, history, refs, texts)
            hit = text is not None and place.fact.probe in text.text
            if hit or text is None and ref is not None:
                break
        found.append(hit)
    return _share(found)


def _instructs(place: Place) -> bool:
    return place.fact.family.split()[0] in INSTRUCTIONS


def _newer_shown(said: Sequence[Place], old: Place, shown: str) -> bool:
    """Say whether a newer value of the same thing is shown too, so that the old one is history."""
    return any(
        place.fact.subject == old.fact.subject and place.fact.probe in shown
        for place in said[said.index(old) + 1 :]
    )


def _shown(message: Message) -> str:
    calls = " ".join(call.args_text for call in message.tool_calls)
    return f"{message.text}\n{calls}"


def _share(hits: Sequence[bool]) -> float:
    return sum(hits) / len(hits) if hits else 1.0
