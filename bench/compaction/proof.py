"""Random histories through the ladder: what every request must be, on both wires.

Half are drawn by hypothesis (parallel, missing and swapped calls, reused ids, system messages,
blocks, media), half are cut from sessions of the generator. Each is planned under a random window,
with a summary made, refused or failed, then once more after a refusal for its size.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path

from backscroll.compaction.fact_lines import ResultReader
from backscroll.compaction.facts import FactReader
from backscroll.compaction.micro import Shaper
from backscroll.compaction.plan import Plan, PlanInput, force, plan, settle
from backscroll.compaction.reading import Means
from backscroll.compaction.summary_run import SummaryOutcome, skipped
from backscroll.compaction.tokens import Sizes
from backscroll.kernel.errors import Refusal
from backscroll.kernel.message import Message, Role
from hypothesis import HealthCheck, Phase, Verbosity, given, settings
from hypothesis import seed as seeded
from session import make_session
from setting import asked
from wires import broken_pairs, refusals, repaired

sys.path.append(str(Path(__file__).resolve().parents[2] / "tests"))

from compaction.histories import histories  # the tests' own

WINDOWS = (1_000, 2_000, 4_000, 8_000, 16_384, 32_768, 131_072)
CORE = "## Goal\n- a summary of what was said so far, made for this purpose and no other"
PARTS, SESSION_TURNS, LONGEST = 8, 30, 160


@dataclass(slots=True)
class Proof:
    """How many histories and requests were looked at, and what was wrong with any."""

    histories: int = 0
    requests: int = 0
    compacted: int = 0
    unfit: int = 0
    hopeless: int = 0
    wrong: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        """Return the figures in a sentence, with the first things that were wrong."""
        told = "; ".join(self.wrong[:5])
        return (
            f"{self.histories} random histories, {self.requests} requests on each wire, "
            f"{self.compacted} of them compacted, {self.unfit} said to be too large whatever is "
            f"done, {self.hopeless} histories that servers refuse as they are: "
            f"{len(self.wrong)} over budget, split, orphaned or refused {told}"
        ).rstrip()

    def add(self, other: Proof) -> None:
        """Add the figures of another part."""
        self.histories += other.histories
        self.requests += other.requests
        self.compacted += other.compacted
        self.unfit += other.unfit
        self.hopeless += other.hopeless
        self.wrong += other.wrong


def prove(count: int) -> Proof:
    """Look at so many histories, in several processes."""
    whole = Proof()
    shares = [count // PARTS + (n < count % PARTS) for n in range(PARTS)]
    with ProcessPoolExecutor() as pool:
        for part in pool.map(prove_part, range(PARTS), shares):
            whole.add(part)
    return whole


def prove_part(number: int, count: int) -> Proof:
    """Look at one part of the histories; the same arguments give the same ones."""
    proof, rng = Proof(), random.Random(number)
    sizes, results = Sizes(), ResultReader()
    shaper = Shaper(sizes, results=results)
    means = Means(sizes, shaper, FactReader(sizes, results=results))

    def look(history: Sequence[Message]) -> None:
        _look(repaired(history), rng, means, proof)

    drawn = count // 2
    _draw(number, drawn, look)
    for history in _cut_from_sessions(number, rng, count - drawn):
        look(history)
    return proof


def _draw(number: int, count: int, look: Callable[[Sequence[Message]], None]) -> None:
    if not count:
        return

    @seeded(number)
    @settings(
        max_examples=count, deadline=None, database=None, phases=(Phase.generate,),
        suppress_health_check=list(HealthCheck), verbosity=Verbosity.quiet,
    )  # fmt: skip
    @given(histories())
    def each(history: list[Message]) -> None:
        look(_sendable(history))

    each()


def _sendable(history: Sequence[Message]) -> list[Message]:
    """Return the history without what servers refuse whatever is done with it."""
    out: list[Message] = []
    for message in history:
        calls = {call.id: call for call in message.tool_calls}
        if message.role in (Role.USER, Role.SYSTEM) and not message.text.strip():
            message = message.replace(content="and then?")
        out.append(message.replace(tool_calls=tuple(calls.values())))
    return out


def _cut_from_sessions(number: int, rng: random.Random, count: int) -> Iterator[Sequence[Message]]:
    """Yield runs of messages of sessions, as a conversation may have begun and gone on."""
    calls = [
        call.history
        for bulk in ("plain", "noisy")
        for call in make_session(100 + number, SESSION_TURNS, bulk).calls
    ]
    for _ in range(count):
        history = rng.choice(calls)
        yield history[max(0, len(history) - rng.randint(1, LONGEST)) :]


def _look(history: tuple[Message, ...], rng: random.Random, means: Means, proof: Proof) -> None:
    proof.histories += 1
    base = refusals(history)
    proof.hopeless += bool(base)
    withheld = rng.choice((None, None, None, "no_summariser"))
    given_ = PlanInput(history, asked(rng.choice(WINDOWS)), means, withheld=withheld)
    first = _settled(plan(given_), rng)
    _judge(first, base, proof)
    refusal = Refusal("overflow", limit=rng.choice((None, 4_000)))
    second = force(first, refusal)
    if second.reaction is not None and second.reaction.kind != "none":
        _judge(_settled(second, rng), base, proof)
    grown = replace(given_, entry=first.entry)
    _judge(_settled(plan(grown), rng), base, proof)


def _settled(planned: Plan, rng: random.Random) -> Plan:
    if planned.job is None:
        return planned
    kind = rng.choice(("made", "made", "failed", "skipped"))
    if kind == "skipped":
        return settle(planned, skipped("lease_wait_over"))
    if kind == "failed":
        return settle(planned, SummaryOutcome("failed", "summariser_failed", "nobody answers"))
    made = SummaryOutcome("done", core=CORE, cut=planned.job.cut, kind="model")
    return settle(planned, made)


def _judge(planned: Plan, base: list[str], proof: Proof) -> None:
    """Note what is wrong with the request of a plan."""
    proof.requests += 1
    proof.compacted += planned.decision is not None
    said = {warning.reason for warning in planned.warnings}
    if "invariant" in said:
        proof.wrong.append(f"invariant: {[w.data for w in planned.warnings]}")
    if broken_pairs(planned.view):
        proof.wrong.append("a call and its result were parted")
    if not base:
        proof.wrong += refusals(planned.view)
    if planned.reading is not None:
        budget = planned.reading.budget
        over = planned.prompt > budget.hard - budget.safety
        proof.unfit += "cannot_fit" in said
        if over and not said & {"cannot_fit", "overhead_too_large"}:
            proof.wrong.append(f"{planned.prompt} tokens of {budget.hard}")
