"""The bulk of tool results: plain as in examples, or noisy as in real systems."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from functools import partial

WORDS = (
    "queue worker batch retry window shard index cursor token report stage branch build cache "
    "replica metric series bucket region tenant invoice order parcel carrier route ticket label"
).split()

MOST_FORMS = 6
"""How many kinds of lines one noisy result has at most; what stands there twice is no table yet."""

Maker = Callable[[random.Random, int], list[str]]


def plain(rng: random.Random, tokens: int) -> list[str]:
    """Return about so many tokens of logs with few numbers, small rows, or prose."""
    return _some(_PLAIN, rng, tokens)


def noisy(rng: random.Random, tokens: int) -> list[str]:
    """Return lines full of what looks like facts: ids, hashes, paths, versions, settings."""
    return _some(_NOISY, rng, tokens)


def sentence(rng: random.Random) -> str:
    """Return a sentence that says nothing."""
    words = rng.choices(WORDS, k=rng.randint(7, 13))
    return f"The {' '.join(words)} went through as before."


def _some(kinds: Mapping[Maker, int], rng: random.Random, tokens: int) -> list[str]:
    make = rng.choice(tuple(kinds))
    return make(rng, max(2, tokens // kinds[make]))


def _log(rng: random.Random, lines: int) -> list[str]:
    return [
        f"10:{n // 60 % 60:02}:{n % 60:02} INFO {' '.join(rng.choices(WORDS, k=5))}"
        for n in range(lines)
    ]


def _rows(rng: random.Random, lines: int) -> list[str]:
    return [f"{n} | {rng.choice(WORDS)} | {rng.randint(1, 99)} | open" for n in range(lines)]


def _prose(rng: random.Random, lines: int) -> list[str]:
    return [sentence(rng) for _ in range(lines)]


def _access(rng: random.Random, lines: int) -> list[str]:
    return [
        f"10.0.{rng.randint(0, 9)}.{rng.randint(1, 254)} - GET /api/v{rng.randint(1, 3)}/"
        f"{rng.choice(WORDS)}/{rng.randint(1, 99_999)} {rng.choice((200, 204, 304, 404))} "
        f"{rng.randint(1, 900)}ms req={rng.getrandbits(64):016x}"
        for _ in range(lines)
    ]


def _uuids(rng: random.Random, lines: int) -> list[str]:
    return [
        f"{rng.getrandbits(32):08x}-{rng.getrandbits(16):04x}-4{rng.getrandbits(12):03x}-"
        f"a{rng.getrandbits(12):03x}-{rng.getrandbits(48):012x} {rng.choice(WORDS)} "
        f"sha={rng.getrandbits(80):020x}"
        for _ in range(lines)
    ]


def _forms(forms: tuple[str, ...], rng: random.Random, lines: int) -> list[str]:
    """Return lines in a few of the forms, as one file or one program has them."""
    few = rng.sample(forms, rng.randint(1, MOST_FORMS))
    return [rng.choice(few).format(**_names(rng)) for _ in range(lines)]


def _names(rng: random.Random) -> dict[str, str]:
    """Return what the forms of a noisy line are filled with."""
    a, b, c = rng.choices(WORDS, k=3)
    sha = f"{rng.getrandbits(160):040x}"
    version = ".".join(str(rng.randint(0, most)) for most in (9, 30, 9))
    numbers = {"n": str(rng.randint(1, 60_000)), "k": str(rng.randint(2, 99))}
    return {"a": a, "b": b, "c": c, "A": a.upper(), "sha": sha, "v": version, **numbers}


def _config(rng: random.Random, lines: int) -> list[str]:
    return [
        f"{rng.choice(WORDS)}.{rng.choice(WORDS)}_{rng.choice(WORDS)} = {rng.randint(1, 60_000)}"
        for _ in range(lines)
    ]


_CODE = tuple(
    "src/{a}/{b}_{c}.py:{n}: " + code
    for code in (
        "def {a}_{b}(self, {c}: int = {k}) -> None:",
        'return self.{a}[{k}] or "{b}-{sha:.7}"',
        "# {A}-{n}: the {b} keeps its {c}",
        "if {a} >= {k} and {b}.{c} is not None:",
        "from src.{a}.{b} import {c}, {b}",
        '{a} = {b}("{sha:.12}", {c}={k})',
        "for {a}, {b} in {c}.items():",
        "assert {a}.{b}({k}) == [{c}]",
        "await {a}.{b}(f'{c}:{{{a}}}')",
        "@{a}.{b}(retries={k})",
    )
)
_PACKAGES = (
    "{a}-{b}=={v}",
    "{a}-{b} ({v})",
    "{a}-{b} {v} -> {k}.0.0",
    "  {a}_{b}-{v}-py3-none-any.whl  {sha}",
    "{a}/{b}@{v}: {sha:.12}",
    "+ {a}-{b}@{v} (needs {c} >= {k})",
    "{b} {v}, built from {sha:.9}",
)
_EVENTS = tuple(
    "10:{k:>02}:{k:>02} " + event
    for event in (
        "{a} took job_{n} of tenant-{k}, trace {sha:.16}",
        "{b}: stored {sha:.12} as part {k} of {A}-{n}",
        "{c} moved to {b}-{k}.internal:{n}",
        "GET https://{a}-{k}.internal/{b}/{n}?key={sha:.8} 200",
        "{a}/{b} [{sha:.8}] <- {c}_{n} ({k} ms)",
        "{b} {sha:.20} is kept in /srv/{a}/{c}-{k}.db",
        "({a}) ack {A}-{n} / {sha:.10}",
        "{c}_{n}: {a} -> {b}, v{v}",
    )
)
_PLAIN: Mapping[Maker, int] = {_log: 13, _rows: 7, _prose: 17}
_NOISY: Mapping[Maker, int] = {
    _access: 34, _uuids: 40, partial(_forms, _CODE): 25, partial(_forms, _PACKAGES): 19,
    partial(_forms, _EVENTS): 24, _config: 8,
}  # fmt: skip
"""The kinds of each bulk, with the tokens of one line."""

BULK: dict[str, Maker] = {"plain": plain, "noisy": noisy}
