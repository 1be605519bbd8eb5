"""Facts that are planted into sessions, by family: what is said, and what proves that it is there.

The families are data (`families.json`, or a file of your own): `text` and `probe` are templates,
`place` says who says it, `subject` what a newer one replaces, `weight` how often it comes. The
rules of the facts block know most of the committed ones; the pattern of `changing` is one they do
not know, and is replaced with every release.
"""

from __future__ import annotations

import json
import random
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

Place = Literal["user", "assistant", "result", "path"]

FAMILIES = Path(__file__).resolve().parent / "families.json"
SERVICES = ("billing", "search", "ledger", "mailer", "gateway", "exporter", "indexer", "planner")
THINGS = ("release branch", "owner of the rollout", "queue host", "default locale", "test window")
THINGS_ZH = ("发布分支", "值班负责人", "队列主机", "默认语言", "测试窗口")
TOWNS = ("Lisbon", "Oslo", "Porto", "Gdansk", "Leuven", "Turku", "Bergen", "Malmo")
REASONS = (
    "",
    "",
    "",
    "",
    ", since the team in {town} asked for it twice",
    " because {service} would otherwise send every order once more",
)
REASONS_ZH = (
    "",
    "",
    "",
    "",
    "，因为{town}的同事已经两次要求过",
    "，不然{service}会把每个订单再发一遍",
)


@dataclass(frozen=True, slots=True)
class Family:
    """How the facts of one family are made; the templates may use the names of `Planter.make`."""

    name: str
    place: Place
    text: str
    probe: str
    weight: float = 1.0
    subject: str | None = None


@dataclass(frozen=True, slots=True)
class Planted:
    """One fact: how it is said, and the text that must be found in a view.

    `subject` names what an update is about; a newer one makes older ones stale.
    """

    family: str
    place: Place
    text: str
    probe: str
    subject: str | None = None


def read_families(path: Path = FAMILIES) -> tuple[Family, ...]:
    """Return the families of a file."""
    found = json.loads(path.read_text("utf-8"))
    return tuple(Family(name, **values) for name, values in found.items())


class Planter:
    """Makes facts, each unlike any other of its session."""

    def __init__(self, rng: random.Random, families: tuple[Family, ...]) -> None:
        self._rng, self._number = rng, 0
        self._families = families

    def draw(self, place: Place) -> Planted | None:
        """Return a new fact of some family that is said in this place."""
        fitting = [family for family in self._families if family.place == place]
        if not fitting:
            return None
        weights = [family.weight for family in fitting]
        return self.make(self._rng.choices(fitting, weights)[0])

    def make(self, family: Family) -> Planted:
        """Return a new fact of a family."""
        self._number += 1
        names = self._names()
        text, probe = family.text.format(**names), family.probe.format(**names)
        subject = family.subject.format(**names) if family.subject is not None else None
        return Planted(family.name, family.place, text, probe, subject)

    def _names(self) -> dict[str, str]:
        """Return what templates are filled with; `mark` and `code` occur nowhere else."""
        rng = self._rng
        letters = "".join(rng.choices("bcdfghjklmnpqrstvwxz", k=3))
        names = {
            "mark": f"{letters}{self._number}",
            "code": f"E{rng.randint(1_000, 9_999)}{self._number}",
            "number": str(rng.randint(10, 9_999)),
            "service": rng.choice(SERVICES),
            "town": rng.choice(TOWNS),
            "thing": rng.choice(THINGS),
            "thing_zh": rng.choice(THINGS_ZH),
        }
        other = {"service": rng.choice(SERVICES), "town": rng.choice(TOWNS)}
        names["because"] = rng.choice(REASONS).format(**other)
        names["because_zh"] = rng.choice(REASONS_ZH).format(**other)
        return names
