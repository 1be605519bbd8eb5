"""A synthetic session: turns with tool rounds, full of bulk, with facts planted at known places."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

from backscroll.kernel.content import FilePart, TextPart
from backscroll.kernel.message import Message, assistant, tool_call, tool_result, user
from bulk import BULK, WORDS, sentence
from families import Planted, Planter

GOAL = "Goal: move the parcel service to the new queue without losing an order. Ask when in doubt."
PNG = FilePart("image/png", data="iVBORw0KGgo=")
MEDIAN_TOKENS, SPREAD, MOST_TOKENS, HUGE_TOKENS = 450, 1.4, 9_000, 30_000
_TOKENS_A_LINE = {"plain": 16, "noisy": 26}

WEIGHTS = {
    "constraint": 8, "update": 6, "decision": 7, "artifact": 14, "value": 20, "error": 12,
    "user prose": 9, "tool prose": 9, "constraint zh": 4, "update zh": 3, "decision zh": 4,
    "changing": 4,
}  # fmt: skip
"""How often each family is planted, in hundredths."""


@dataclass(frozen=True, slots=True)
class Place:
    """A planted fact and the index of the message that says it."""

    fact: Planted
    at: int


@dataclass(slots=True)
class Session:
    """The whole history, where each model call happened, and the facts in it."""

    messages: list[Message] = field(default_factory=list)
    calls: list[int] = field(default_factory=list)
    places: list[Place] = field(default_factory=list)


def make_session(seed: int, turns: int, bulk: str) -> Session:
    """Return the session of a seed; the same arguments give the same bytes."""
    return _Maker(seed, turns, bulk).run()


class _Maker:
    def __init__(self, seed: int, turns: int, bulk: str) -> None:
        self._rng = random.Random(f"{seed}/{turns}/{bulk}")
        self._planter = Planter(self._rng)
        self._bulk, self._turns = bulk, turns
        self._out = Session()

    def run(self) -> Session:
        """Make turn after turn."""
        for turn in range(self._turns):
            self._user(turn)
            rounds = self._rng.choices((0, 1, 2, 3, 4), (10, 35, 30, 17, 8))[0]
            for _ in range(rounds):
                self._call()
                self._round(huge=turn == self._turns // 3)
            self._call()
            self._answer()
        return self._out

    def _add(self, message: Message, facts: list[Planted]) -> None:
        at = len(self._out.messages)
        self._out.messages.append(message.replace(id=f"m{at}"))
        self._out.places += [Place(fact, at) for fact in facts]

    def _call(self) -> None:
        self._out.calls.append(len(self._out.messages))

    def _facts(self, place: str, chance: float, most: int = 2) -> list[Planted]:
        families = [f for f in self._planter.families if _PLACE_OF[f] == place]
        weights = [WEIGHTS[f] for f in families]
        count = sum(self._rng.random() < chance for _ in range(most))
        return [self._planter.make(self._rng.choices(families, weights)[0]) for _ in range(count)]

    def _user(self, turn: int) -> None:
        facts = self._facts("user", 0.42) if turn else []
        said = (
            [GOAL] if turn == 0 else [f"Now look at the {' '.join(self._rng.choices(WORDS, k=3))}."]
        )
        text = " ".join([*said, *(fact.text for fact in facts), "Go on."])
        content = (TextPart(text), PNG) if turn % 40 == 7 else text
        self._add(user(content), facts)

    def _answer(self) -> None:
        facts = self._facts("assistant", 0.28, 1)
        text = " ".join([sentence(self._rng), *(fact.text for fact in facts), sentence(self._rng)])
        self._add(assistant(text), facts)

    def _round(self, huge: bool) -> None:
        count = self._rng.choices((1, 2, 3), (60, 25, 15))[0]
        written = self._facts("path", 0.2, 1)
        at = len(self._out.messages)
        calls = [
            tool_call(f"c{at}_{n}", "search", {"query": self._rng.choice(WORDS)})
            for n in range(count)
        ]
        if written:
            body = "\n".join(sentence(self._rng) for _ in range(self._rng.randint(10, 60)))
            calls[0] = tool_call(
                f"c{at}_0", "write_file", {"path": written[0].text, "content": body}
            )
        self._add(assistant(None, calls), written)
        for number, call in enumerate(calls):
            facts = [] if call.name == "write_file" else self._facts("result", 0.22)
            lines = 1 if call.name == "write_file" else self._lines(huge and number == 0)
            text = "ok" if call.name == "write_file" else self._body(lines, facts)
            self._add(tool_result(call.id, call.name, text), facts)

    def _lines(self, huge: bool) -> int:
        tokens = min(self._rng.lognormvariate(0, SPREAD) * MEDIAN_TOKENS, MOST_TOKENS)
        return max(2, int((HUGE_TOKENS if huge else tokens) / _TOKENS_A_LINE[self._bulk]))

    def _body(self, lines: int, facts: list[Planted]) -> str:
        body = BULK[self._bulk](self._rng, lines)
        for fact in facts:
            body.insert(self._rng.randint(0, len(body)), fact.text)
        return "\n".join(body)


_PLACE_OF = {
    family: Planter(random.Random(0)).make(family).place
    for family in Planter(random.Random(0)).families
}
