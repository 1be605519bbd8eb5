"""The bulk of tool results: plain as in examples, or noisy as in real systems."""

from __future__ import annotations

import random
from collections.abc import Callable

WORDS = (
    "queue worker batch retry window shard index cursor token report stage branch build cache "
    "replica metric series bucket region tenant invoice order parcel carrier route ticket label"
).split()


def plain(rng: random.Random, lines: int) -> list[str]:
    """Return lines of logs with few numbers, small rows, or prose."""
    return rng.choice(_PLAIN)(rng, lines)


def noisy(rng: random.Random, lines: int) -> list[str]:
    """Return lines full of what looks like facts: ids, hashes, paths, versions, settings."""
    return rng.choice(_NOISY)(rng, lines)


def sentence(rng: random.Random) -> str:
    """Return a sentence that says nothing."""
    words = rng.choices(WORDS, k=rng.randint(7, 13))
    return f"The {' '.join(words)} went through as before."


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


def _grep(rng: random.Random, lines: int) -> list[str]:
    return [
        f"src/{rng.choice(WORDS)}/{rng.choice(WORDS)}_{rng.choice(WORDS)}.py:{rng.randint(1, 900)}"
        f": {rng.choice(('def', 'class', 'return', 'await'))} {' '.join(rng.choices(WORDS, k=3))}"
        for _ in range(lines)
    ]


def _versions(rng: random.Random, lines: int) -> list[str]:
    return [
        f"{rng.choice(WORDS)}-{rng.choice(WORDS)}=="
        f"{rng.randint(0, 9)}.{rng.randint(0, 30)}.{rng.randint(0, 9)}"
        for _ in range(lines)
    ]


def _config(rng: random.Random, lines: int) -> list[str]:
    return [
        f"{rng.choice(WORDS)}.{rng.choice(WORDS)}_{rng.choice(WORDS)} = {rng.randint(1, 60_000)}"
        for _ in range(lines)
    ]


Maker = Callable[[random.Random, int], list[str]]
_PLAIN: tuple[Maker, ...] = (_log, _rows, _prose)
_NOISY: tuple[Maker, ...] = (_access, _uuids, _grep, _versions, _config)
BULK: dict[str, Maker] = {"plain": plain, "noisy": noisy}
