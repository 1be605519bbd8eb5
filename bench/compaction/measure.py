"""What a strategy keeps and what it costs, over all calls of a session."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from backscroll.compaction.canon_forms import canon_sent
from backscroll.compaction.groups import find_groups
from backscroll.compaction.tokens import Sizes
from backscroll.kernel.message import Message, Role
from session import Place, Session
from strategies import Strategy

EVERY, WARM = 20, 40
CACHED, UNCACHED = 0.1, 1.25
DECAY_FACTS = 200
DECAY_AT = (250, 500, 750, 1_000, 1_500, 2_000, 2_500)


@dataclass(slots=True)
class Measured:
    """The figures of one strategy over one session."""

    facts: float = 0.0
    families: dict[str, float] = field(default_factory=dict)
    ages: tuple[float, float, float] = (0.0, 0.0, 0.0)
    stale: int = 0
    sent: float = 0.0
    cost: float = 0.0
    extends: float = 0.0
    prefix: float = 0.0
    over_budget: int = 0
    broken: int = 0
    calls: int = 0
    summariser_tokens: int = 0
    ms_p95: float = 0.0
    ms_warm: float = 0.0
    ms_cold: float = 0.0
    decay: dict[int, float] = field(default_factory=dict)


def measure(session: Session, make: Callable[[], Strategy], room: int) -> Measured:
    """Play a session through a strategy; `room` is the budget of its messages, raw."""
    strategy = make()
    run = _Run(session, strategy, room)
    for number, end in enumerate(session.calls):
        run.call(number, session.messages[:end])
    out = run.result()
    whole = session.messages[: session.calls[-1]]
    out.ms_warm = _p95([_ms(strategy, whole) for _ in range(WARM)])
    out.ms_cold = _ms(make(), whole)
    return out


class _Run:
    def __init__(self, session: Session, strategy: Strategy, room: int) -> None:
        self._session, self._strategy, self._room = session, strategy, room
        self._sizes = Sizes()
        self._forms: dict[int, tuple[Message, str]] = {}
        self._last: list[str] = []
        self._hits: dict[str, list[bool]] = defaultdict(list)
        self._thirds: tuple[list[bool], list[bool], list[bool]] = ([], [], [])
        self._ms: list[float] = []
        self._sent, self._cached, self._shared = 0, 0, 0
        self._whole = 0
        self._extends = 0
        self._out = Measured()

    def call(self, number: int, history: Sequence[Message]) -> None:
        """Make one call, and look for facts after every twentieth."""
        before = time.process_time()
        view = self._strategy.view(history)
        self._ms.append((time.process_time() - before) * 1_000)
        self._count(history, view)
        self._out.broken += _broken(view)
        if number % EVERY == EVERY - 1:
            self._probe(history, "\n".join(map(_shown, view)))

    def result(self) -> Measured:
        """Return the figures."""
        out, calls = self._out, len(self._session.calls)
        every = [hit for hits in self._hits.values() for hit in hits]
        out.facts = _share(every)
        out.families = {family: _share(hits) for family, hits in self._hits.items()}
        out.ages = tuple(map(_share, self._thirds))
        out.sent = self._sent / self._whole
        out.calls, out.summariser_tokens = self._strategy.work.calls, self._strategy.work.tokens
        paid = CACHED * self._cached + UNCACHED * (self._sent - self._cached)
        out.cost = (paid + out.summariser_tokens) / calls
        out.extends = self._extends / (calls - 1)
        out.prefix = self._cached / max(1, self._shared)
        out.ms_p95 = _p95(self._ms)
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

    def _probe(self, history: Sequence[Message], shown: str) -> None:
        said = [place for place in self._session.places if place.at < len(history)]
        newest = {place.fact.subject: place.fact for place in said if place.fact.subject}
        old_hits: list[bool] = []
        for place in said:
            fact, hit = place.fact, place.fact.probe in shown
            if fact.subject is not None and newest[fact.subject] is not fact:
                self._out.stale += hit and not _newer_shown(said, place, shown)
                continue
            self._hits[fact.family].append(hit)
            self._thirds[min(2, 3 * place.at // len(history))].append(hit)
            if place.at < DECAY_FACTS:
                old_hits.append(hit)
        for mark in DECAY_AT:
            if mark <= len(history) and mark not in self._out.decay:
                self._out.decay[mark] = _share(old_hits)


def _newer_shown(said: Sequence[Place], old: Place, shown: str) -> bool:
    """Say whether a newer value of the same thing is shown too, so that the old one is history."""
    return any(
        place.fact.subject == old.fact.subject and place.fact.probe in shown
        for place in said[said.index(old) + 1 :]
    )


def _shown(message: Message) -> str:
    calls = " ".join(call.args_text for call in message.tool_calls)
    return f"{message.text}\n{calls}"


def _broken(view: Sequence[Message]) -> int:
    """Count results without a call before them and calls without a result."""
    missing = 0
    for group in find_groups(view):
        messages = view[group.start : group.end]
        calls = sum(len(message.tool_calls) for message in messages)
        results = sum(message.role is Role.TOOL for message in messages)
        missing += abs(calls - results)
    return missing


def _ms(strategy: Strategy, history: Sequence[Message]) -> float:
    """Return the processor time of one plan, which other processes do not disturb much."""
    before = time.process_time()
    strategy.view(history)
    return (time.process_time() - before) * 1_000


def _p95(values: Sequence[float]) -> float:
    return sorted(values)[int(0.95 * (len(values) - 1))]


def _share(hits: Sequence[bool]) -> float:
    return sum(hits) / len(hits) if hits else 1.0
