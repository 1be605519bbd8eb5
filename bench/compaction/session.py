"""A synthetic session: turns with tool rounds, full of bulk, with facts planted at known places.

At known points a tool is not approved, an answer is made again, and a question is edited: the
history then goes on from an earlier place.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field

from backscroll.kernel.content import FilePart, TextPart
from backscroll.kernel.message import Message, assistant, tool_call, tool_result, user
from bulk import BULK, WORDS, sentence
from families import Family, Planted, Planter, read_families
from families import Place as Said

GOAL = "Goal: move the parcel service to the new queue without losing an order. Ask when in doubt."
DENIED = "The user did not approve this call. Go on without it, or ask."
PNG = FilePart("image/png", data="iVBORw0KGgo=")
MEDIAN_TOKENS, SPREAD, MOST_TOKENS, HUGE_TOKENS = 450, 1.2, 9_000, 30_000
IMAGE_EVERY, DENIED_EVERY, AGAIN_EVERY, EDIT_EVERY = 40, 20, 25, 50
USER_FACTS, ANSWER_FACTS, PATH_FACTS, RESULT_FACTS = 0.28, 0.2, 0.3, 0.2
"""How likely a message says a fact of its place; users and results may say two."""


@dataclass(frozen=True, slots=True)
class Place:
    """A planted fact and the index of the message that says it."""

    fact: Planted
    at: int


@dataclass(frozen=True, slots=True)
class Call:
    """One model call: the history it is made with, and the facts in it."""

    history: tuple[Message, ...]
    places: tuple[Place, ...]


@dataclass(slots=True)
class Session:
    """The history as it stands at the end, and every model call on the way."""

    messages: list[Message] = field(default_factory=list)
    places: list[Place] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)


def make_session(
    seed: int, turns: int, bulk: str, families: tuple[Family, ...] | None = None
) -> Session:
    """Return the session of a seed; the same arguments give the same bytes."""
    return _Maker(seed, turns, bulk, families or read_families()).run()


class _Maker:
    def __init__(self, seed: int, turns: int, bulk: str, families: tuple[Family, ...]) -> None:
        self._rng = random.Random(f"{seed}/{turns}/{bulk}")
        self._planter = Planter(self._rng, families)
        self._bulk, self._turns = bulk, turns
        self._out = Session()
        self._said = 0
        self._huge_due = True

    def run(self) -> Session:
        """Make turn after turn."""
        for turn in range(self._turns):
            start = len(self._out.messages)
            self._turn(turn)
            if turn % AGAIN_EVERY == AGAIN_EVERY // 2:
                self._go_back(len(self._out.messages) - 1)
                self._call()
                self._answer()
            if turn and turn % EDIT_EVERY == EDIT_EVERY // 2:
                self._go_back(start)
                self._turn(turn)
        return self._out

    def _turn(self, turn: int) -> None:
        self._user(turn)
        rounds = self._rng.choices((0, 1, 2, 3, 4), (10, 35, 30, 17, 8))[0]
        for _ in range(rounds):
            self._call()
            self._round(turn)
        self._call()
        self._answer()

    def _go_back(self, to: int) -> None:
        """Forget what came from this message on, as an edit and another answer do."""
        del self._out.messages[to:]
        self._out.places = [place for place in self._out.places if place.at < to]

    def _add(self, message: Message, facts: list[Planted]) -> None:
        at = len(self._out.messages)
        self._said += 1
        self._out.messages.append(message.replace(id=f"m{self._said}"))
        self._out.places += [Place(fact, at) for fact in facts]

    def _call(self) -> None:
        self._out.calls.append(Call(tuple(self._out.messages), tuple(self._out.places)))

    def _facts(self, place: Said, chance: float, most: int = 2) -> list[Planted]:
        count = sum(self._rng.random() < chance for _ in range(most))
        drawn = (self._planter.draw(place) for _ in range(count))
        return [fact for fact in drawn if fact is not None]

    def _user(self, turn: int) -> None:
        facts = self._facts("user", USER_FACTS) if turn else []
        about = " ".join(self._rng.choices(WORDS, k=3))
        first = f"Now look at the {about}." if turn else GOAL
        text = " ".join([first, *(fact.text for fact in facts), "Go on."])
        is_shown = turn % IMAGE_EVERY == 7
        self._add(user((TextPart(text), PNG) if is_shown else text), facts)

    def _answer(self) -> None:
        facts = self._facts("assistant", ANSWER_FACTS, 1)
        text = " ".join([sentence(self._rng), *(fact.text for fact in facts), sentence(self._rng)])
        self._add(assistant(text), facts)

    def _round(self, turn: int) -> None:
        count = self._rng.choices((1, 2, 3), (60, 25, 15))[0]
        written = self._facts("path", PATH_FACTS, 1)
        number = self._said
        calls = [
            tool_call(f"c{number}_{n}", "search", {"query": self._rng.choice(WORDS)})
            for n in range(count)
        ]
        if written:
            body = "\n".join(sentence(self._rng) for _ in range(self._rng.randint(10, 60)))
            arguments = {"path": written[0].text, "content": body}
            calls[0] = tool_call(f"c{number}_0", "write_file", arguments)
        self._add(assistant(None, calls), written)
        for n, call in enumerate(calls):
            is_denied = turn % DENIED_EVERY == 9 and call.name == "search" and n == count - 1
            facts: list[Planted] = []
            text = DENIED if is_denied else "ok"
            if call.name == "search" and not is_denied:
                facts = self._facts("result", RESULT_FACTS)
                is_huge = self._huge_due and turn >= self._turns // 3
                self._huge_due &= not is_huge
                text = self._body(self._tokens(is_huge), facts)
            self._add(tool_result(call.id, call.name, text), facts)

    def _tokens(self, huge: bool) -> int:
        tokens = min(self._rng.lognormvariate(0, SPREAD) * MEDIAN_TOKENS, MOST_TOKENS)
        return int(HUGE_TOKENS if huge else tokens)

    def _body(self, tokens: int, facts: list[Planted]) -> str:
        body = BULK[self._bulk](self._rng, tokens)
        for fact in facts:
            body.insert(self._rng.randint(0, len(body)), fact.text)
        return "\n".join(body)
