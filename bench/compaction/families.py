"""Facts that are planted into sessions, by family: what is said, and what proves that it is there.

The rules of the facts block know most of these families. `changing` is one that they do not know;
its pattern is to be replaced with every release.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Literal

Place = Literal["user", "assistant", "result", "path"]

SERVICES = ("billing", "search", "ledger", "mailer", "gateway", "exporter", "indexer", "planner")
THINGS = ("release branch", "owner of the rollout", "queue host", "default locale", "test window")
THINGS_ZH = ("发布分支", "值班负责人", "队列主机", "默认语言", "测试窗口")
TOWNS = ("Lisbon", "Oslo", "Porto", "Gdansk", "Leuven", "Turku", "Bergen", "Malmo")


@dataclass(frozen=True, slots=True)
class Planted:
    """One fact: where and how it is said, and the text that must be found in a view.

    `subject` names what an update is about; a newer one makes older ones stale.
    """

    family: str
    place: Place
    text: str
    probe: str
    subject: str | None = None


class Planter:
    """Makes facts of all families, each unlike any other of its session."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._number = 0
        self._makers = {
            "constraint": self._constraint,
            "update": self._update,
            "decision": self._decision,
            "artifact": self._artifact,
            "value": self._value,
            "error": self._error,
            "user prose": self._user_prose,
            "tool prose": self._tool_prose,
            "constraint zh": self._constraint_zh,
            "update zh": self._update_zh,
            "decision zh": self._decision_zh,
            "changing": self._changing,
        }

    @property
    def families(self) -> tuple[str, ...]:
        """The names of the families."""
        return tuple(self._makers)

    def make(self, family: str) -> Planted:
        """Return a new fact of a family."""
        self._number += 1
        return self._makers[family]()

    def _mark(self) -> str:
        """Return a word that occurs nowhere else."""
        letters = "".join(self._rng.choices("bcdfghjklmnpqrstvwxz", k=3))
        return f"{letters}{self._number}"

    def _because(self) -> str:
        """Return the reason that people add to what they say."""
        town, service = self._rng.choice(TOWNS), self._rng.choice(SERVICES)
        return self._rng.choice(
            (
                "",
                f", since the team in {town} asked for it",
                f" as {service} needs it to start over on its own",
            )
        )

    def _constraint(self) -> Planted:
        probe = f"restart {self._rng.choice(SERVICES)} before {self._mark()} is drained"
        return Planted("constraint", "user", f"You must never {probe}{self._because()}.", probe)

    def _update(self) -> Planted:
        thing, mark = self._rng.choice(THINGS), self._mark()
        return Planted(
            "update",
            "user",
            f"The {thing} is now {mark}{self._because()}.",
            f"{thing} is now {mark}",
            thing,
        )

    def _decision(self) -> Planted:
        probe = f"go with {self._mark()} for {self._rng.choice(SERVICES)}"
        return Planted("decision", "assistant", f"Agreed, we will {probe}{self._because()}.", probe)

    def _artifact(self) -> Planted:
        path = f"src/{self._rng.choice(SERVICES)}/{self._mark()}.py"
        return Planted("artifact", "path", path, path)

    def _value(self) -> Planted:
        probe = f"{self._rng.choice(SERVICES)}_{self._mark()} = {self._rng.randint(10, 9_999)}"
        return Planted("value", "result", probe, probe)

    def _error(self) -> Planted:
        code = f"E{self._rng.randint(1_000, 9_999)}{self._number}"
        text = f"ERROR {self._rng.choice(SERVICES)}: write refused by shard, code {code}"
        return Planted("error", "result", text, code)

    def _user_prose(self) -> Planted:
        probe = f"the people in {self._rng.choice(TOWNS)} call it {self._mark()}"
        return Planted("user prose", "user", f"By the way, {probe}{self._because()}.", probe)

    def _tool_prose(self) -> Planted:
        probe = f"reviewers from {self._rng.choice(TOWNS)} liked the {self._mark()} layout"
        return Planted("tool prose", "result", f"As a remark, {probe} of last week.", probe)

    def _constraint_zh(self) -> Planted:
        probe = f"不要在 {self._mark()} 完成之前重启 {self._rng.choice(SERVICES)}"
        return Planted("constraint zh", "user", f"请务必记住，{probe}。", probe)

    def _update_zh(self) -> Planted:
        thing, mark = self._rng.choice(THINGS_ZH), self._mark()
        return Planted(
            "update zh", "user", f"{thing}现在是 {mark}。", f"{thing}现在是 {mark}", thing
        )

    def _decision_zh(self) -> Planted:
        probe = f"{self._rng.choice(SERVICES)} 改用 {self._mark()}"
        return Planted("decision zh", "assistant", f"好的，我们决定 {probe}。", probe)

    def _changing(self) -> Planted:
        probe = f"lantern {self._mark()} swings at {self._rng.choice(TOWNS)}"
        return Planted("changing", "result", f"note~~ {probe} ~~", probe)
